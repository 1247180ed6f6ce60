"""ONNX files that ship inside of packages: differentiated, checked, trained, and told on a page of the docs."""
