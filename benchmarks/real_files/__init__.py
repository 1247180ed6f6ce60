"""ONNX files that ship inside of packages: differentiated, checked, trained, and listed on a page."""
