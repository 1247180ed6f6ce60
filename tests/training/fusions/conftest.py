"""Fixtures that compare graphs before and after passes, on random inputs."""

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import helper, parser

from ortlearn.runtime.devices import Device
from ortlearn.runtime.sessions import make_session
from ortlearn.training.fusions import PASSES, fuse_step

TOLERANCE = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}


@pytest.fixture(scope="session")
def run():
    """Run a model on numpy arrays: outputs by name."""

    def run(model, feeds):
        session = make_session(model, Device("cpu"))
        names = [value.name for value in session.get_outputs()]
        wanted = {value.name for value in session.get_inputs()}
        return dict(
            zip(names, session.run(None, {k: v for k, v in feeds.items() if k in wanted}), strict=True)
        )

    return run


@pytest.fixture(scope="session")
def assert_same(run):
    """Check that two graphs give the same results up to rounding."""

    def check(model, other, feeds):
        for one in (model, other):
            onnx.checker.check_model(one, full_check=True)
        assert [v.name for v in other.graph.output] == [v.name for v in model.graph.output]
        expected, got = run(model, feeds), run(other, feeds)
        for name, array in expected.items():
            assert (got[name].dtype, got[name].shape) == (array.dtype, array.shape), name
            tolerance = TOLERANCE.get(array.dtype, 0) * np.abs(array).max(initial=0)
            np.testing.assert_allclose(got[name], array, rtol=0, atol=tolerance, err_msg=name)

    return check


@pytest.fixture(scope="session")
def fuse(assert_same):
    """Apply passes to a graph in text form, check the results, and return the remaining operators."""

    def fuse(text, *passes, feeds=(), opset=18):
        model = parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {text}')
        fused = fuse_step(model, passes or PASSES)
        values = {**_random_feeds(model), **dict(feeds)}
        assert_same(model, fused, values)
        return Counter(node.op_type for node in fused.graph.node)

    return fuse


def _random_feeds(model):
    rng = np.random.RandomState(0)
    feeds = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [dim.dim_value or 3 for dim in tensor.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        array = rng.normal(size=shape) * (3 if dtype.kind == "i" else 1)
        feeds[value.name] = np.asarray(array).astype(dtype)
    return feeds
