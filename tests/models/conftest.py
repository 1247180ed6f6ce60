"""What tests of definitions share."""

import pytest


@pytest.fixture(scope="session")
def run(run_onnx):
    """Run a model by onnxruntime, as checks of definitions ask for it."""
    return lambda model, feeds: run_onnx(model, **feeds)
