"""Any model, an estimator or an ONNX file, as a trainable graph."""
