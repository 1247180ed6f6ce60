"""Choice of the gradient backend."""

import pytest

from ortlearn.differentiation import build_gradient
from ortlearn.exceptions import GradientError


@pytest.mark.parametrize(
    "backend, expected",
    [("auto", "rules"), ("rules", "rules"), ("straight_through", "rules"), ("ort", "ort")],
)
def test_only_ort_is_the_builder(backend, expected):
    assert build_gradient(backend, lambda: "rules", lambda: "ort") == expected


def test_unknown_backend():
    with pytest.raises(GradientError, match="'torch' is unknown"):
        build_gradient("torch", lambda: "rules", lambda: "ort")
