"""check_penalty accepts the built-in penalties and detects errors."""

import pytest

from ortlearn import plugins
from ortlearn.penalties import BasePenalty, L1Penalty, resolve_penalty
from ortlearn.testing import check_penalty


def built_in():
    return sorted(i.name for i in plugins.list_plugins(plugins.PENALTIES) if i.distribution == "ortlearn")


@pytest.mark.parametrize("name", built_in())
def test_built_in_penalties(name):
    check_penalty(resolve_penalty(name))


class Apart(BasePenalty):
    def forward(self, op, weight):
        return op.Mul(weight, weight)


class Negative(BasePenalty):
    def forward(self, op, weight):
        return op.Neg(op.ReduceSum(op.Mul(weight, weight), keepdims=0))


class Away(L1Penalty):
    def proximal_step(self, op, weight, rate):
        return op.Add(weight, op.Mul(op.Sign(weight), rate))


class Flat(L1Penalty):
    def proximal_step(self, op, weight, rate):
        return op.Reshape(super().proximal_step(op, weight, rate), [-1, 1])


class Foreign(BasePenalty):
    def forward(self, op, weight):
        return op.ReduceSum(op.node("Gelu", weight, domain="com.microsoft"), keepdims=0)


class Doubled(L1Penalty):
    strengths = ("l1",)

    def forward(self, op, weight):
        return op.Mul(op.ReduceSum(op.Abs(weight), keepdims=0), 2 * float(self.l1))


class Ignored(L1Penalty):
    strengths = ("l1",)

    def forward(self, op, weight):
        return op.Mul(op.ReduceSum(op.Abs(weight), keepdims=0), 0.5 if self.l1 == 0.5 else 1.0)


@pytest.mark.parametrize(
    "penalty, message",
    [
        (Apart(), "scalar|shape"),
        (Negative(), "must be 0 or above"),
        (Away(), "its proximal step increases its objective from"),
        (Flat(), "shape"),
        (Foreign(), "not standard"),
        (Doubled(), "strengths .* must be operands"),
        (Ignored(), "strengths .* must be operands"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_wrong_penalties(penalty, message):
    with pytest.raises(AssertionError, match=message):
        check_penalty(penalty)
