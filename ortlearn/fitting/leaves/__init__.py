"""Leaves of bagged trees: which trees have seen a sample, and values estimated from samples."""
