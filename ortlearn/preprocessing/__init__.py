"""Samples as inputs of a graph, steps that stay in scikit-learn, steps that skl2onnx writes."""
