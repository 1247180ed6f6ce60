"""ONNX files of other origin: what they compute is found by their operators."""
