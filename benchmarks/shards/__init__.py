"""Averaging over shards: losses simulated on one machine, and costs of rounds on a cluster."""
