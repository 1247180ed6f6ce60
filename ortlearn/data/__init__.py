"""Data larger than memory: sources that yield blocks of rows, chunks of equal size, and prefetching."""
