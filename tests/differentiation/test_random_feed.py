"""Random inputs of models."""

from __future__ import annotations

import numpy as np
import pytest

from ortlearn.differentiation.random_feed import random_feed
from tests.differentiation.evaluation import _load_onnxruntime
from tests.differentiation.models import parse

MODEL = parse("""g (float[N,M,3] x, double[2] d, int64[N] i, bool b, string[N] s, float[1] w)
    => (float[N,M,3] y) <float[1] w = {1.0}> { y = Mul(x, w) }""")


def test_shapes_and_types():
    feeds = random_feed(MODEL, batch=4, empty_dimension=2)
    assert {name: value.shape for name, value in feeds.items()} == {
        "x": (4, 2, 3), "d": (2,), "i": (4,), "b": (), "s": (4,)
    }  # fmt: skip
    assert [str(value.dtype) for value in feeds.values()] == ["float32", "float64", "int64", "bool", "object"]


def test_inputs_of_a_session():
    session = _load_onnxruntime(parse("g (float[N,M] x) => (float[N,M] y) { y = Exp(x) }"))
    feeds = random_feed(session.get_inputs())
    assert feeds["x"].shape == (10, 1)
    assert session.run(None, feeds)[0].shape == (10, 1)


def test_seed():
    first, again, other = (random_feed(MODEL, random_state=seed)["x"] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_sequences_are_rejected():
    model = parse("g (seq(float[N]) x) => (int64 y) { y = SequenceLength(x) }")
    with pytest.raises(TypeError, match="'x' is not a dense tensor"):
        random_feed(model)
