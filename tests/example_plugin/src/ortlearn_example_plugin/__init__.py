"""One plugin of every kind, found by its entry point."""
