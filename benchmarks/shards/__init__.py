"""What averaging over shards costs and gains: statistics on one machine, and costs of rounds on a cluster."""
