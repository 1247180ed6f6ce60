"""Convert samples to inputs of a graph, and split pipelines into scikit-learn steps and the graph."""
