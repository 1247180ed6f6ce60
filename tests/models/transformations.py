"""Compare the graph of a transformer with scikit-learn."""

import numpy as np

from ortlearn.graphs import TensorType
from ortlearn.models import all_covered, write_model
from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session


def transformed(model, samples, dtype):
    """Return what the graph of a transformer of numbers gives in onnxruntime."""
    elem_type = 1 if dtype == np.float32 else 11
    written = write_model(model, {"X": TensorType(elem_type, (None, samples.shape[1]))}, dtype)
    return make_session(written.model, Device("cpu")).run(None, {"X": samples.astype(dtype)})[0]


def assert_same_transformation(model, samples, double, single):
    """Check the graph of a transformer in both types, to tolerances relative to values above one."""
    assert all_covered(model)
    expected = model.transform(samples.copy())
    expected = expected.toarray() if hasattr(expected, "toarray") else expected
    scale = max(1.0, np.nanmax(np.abs(expected), initial=0))
    for dtype, tolerance in ((np.float64, double), (np.float32, single)):
        found = transformed(model, samples, dtype)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)
