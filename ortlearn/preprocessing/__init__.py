"""What comes before the trained part: X as people have it, steps in scikit-learn, steps by skl2onnx."""
