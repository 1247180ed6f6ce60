"""Parameters that must stay in a set, and parameters that a graph holds more than once."""
