"""Training packages for other languages."""
