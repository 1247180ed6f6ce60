"""ortlearn beside scikit-learn, torch, skorch and JAX: ``python -m benchmarks.run``."""
