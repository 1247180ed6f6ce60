"""Coverage and width of intervals beside other packages: ``python -m benchmarks.intervals``."""
