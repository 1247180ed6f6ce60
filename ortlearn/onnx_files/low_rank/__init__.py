"""Low-rank adapters of ONNX files."""
