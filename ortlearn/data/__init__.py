"""Data larger than memory: sources that yield blocks of samples, chunks of equal size, and prefetching."""
