"""Steps that stay in scikit-learn, because ONNX has none or does something else."""
