"""Rules of operators of onnxruntime's own domains."""
