"""Special functions that ONNX lacks, in its operators."""

from ..graphs import GraphBuilder

#: Numbers are moved by so much, by the recurrence ``digamma(x + 1) = digamma(x) + 1 / x``.
SHIFT = 6
#: Coefficients of ``-1 / x^2k`` in the asymptotic series, ``B_2k / 2k``.
SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760)


def digamma(op: GraphBuilder, x: str) -> str:
    """Return the derivative of the logarithm of the gamma function, of positive numbers.

    Abramowitz and Stegun, "Handbook of Mathematical Functions", 1964, 6.3.5 and 6.3.18: 12 digits.
    """
    reciprocals = op.Reciprocal(x)
    for i in range(1, SHIFT):
        reciprocals = op.Add(reciprocals, op.Reciprocal(op.Add(x, float(i))))
    moved = op.Add(x, float(SHIFT))
    inverse = op.Reciprocal(moved)
    square = op.Mul(inverse, inverse)
    series = op.Mul(square, SERIES[-1])
    for coefficient in reversed(SERIES[:-1]):
        series = op.Mul(square, op.Add(series, coefficient))
    return op.Sub(op.Sub(op.Log(moved), op.Mul(inverse, 0.5)), op.Add(series, reciprocals))
