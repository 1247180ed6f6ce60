"""Choice of the gradient backend, and errors if no backend has a gradient."""

import pytest

from ortlearn.differentiation import backends, build_gradient
from ortlearn.differentiation.rounding import RoundingError
from ortlearn.exceptions import GradientError, MissingRuntimeError


def fails(error):
    def build():
        raise error

    return build


@pytest.fixture(params=[True, False], ids=["training", "plain"])
def installed(request, monkeypatch):
    """Whether onnxruntime-training is installed."""
    monkeypatch.setattr(backends.ort_backend, "is_available", lambda: request.param)
    return request.param


@pytest.mark.parametrize(
    "backend, expected",
    [("auto", "rules"), ("rules", "rules"), ("straight_through", "rules"), ("ort", "ort")],
)
def test_rules_come_first(backend, expected, installed):
    assert build_gradient(backend, lambda: "rules", lambda: "ort") == expected


def test_builder_is_used_without_rule(installed):
    rules = fails(GradientError("Operator 'Odd' has no rule."))
    if installed:
        assert build_gradient("auto", rules, lambda: "ort") == "ort"
    else:
        with pytest.raises(GradientError, match=r"^Operator 'Odd' has no rule\.$"):
            build_gradient("auto", rules, lambda: "ort")
    for backend in ("rules", "straight_through"):
        with pytest.raises(GradientError, match=r"^Operator 'Odd' has no rule\.$"):
            build_gradient(backend, rules, lambda: "ort")


def test_error_has_both_reasons(installed):
    rules, ort = fails(GradientError("No rule.")), fails(GradientError("Refused."))
    with pytest.raises(GradientError) as caught:
        build_gradient("auto", rules, ort)
    assert str(caught.value).startswith("No rule.") and str(caught.value).endswith("Refused.") == installed


def test_other_errors_are_not_caught(installed):
    for error in (RoundingError.__new__(RoundingError), ValueError("Wrong."), MissingRuntimeError("None.")):
        with pytest.raises(type(error)):
            build_gradient("auto", fails(error), lambda: "ort")
        with pytest.raises(type(error)):
            build_gradient("ort", lambda: "rules", fails(error))
    with pytest.raises(GradientError, match="'torch' is unknown"):
        build_gradient("torch", lambda: "rules", lambda: "ort")
