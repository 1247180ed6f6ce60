"""onnxruntime: sessions, devices, tensors, and errors; the only importer of onnxruntime."""
