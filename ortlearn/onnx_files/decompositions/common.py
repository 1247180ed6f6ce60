"""Read a fused node and write its replacement, with the transform of its scores."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from ...graphs import GraphBuilder
from ...graphs.external_tensors import tensor_array
from ...graphs.nodes import attributes_of
from ...models.distances import reduced

#: Constants of the inverse error function in onnxruntime (approximation by Winitzki, 2008).
WINITZKI, PI = 0.147, 3.14159
NEGLIGIBLE = 1e-7  # largest magnitude that is zero for SOFTMAX_ZERO


def _softmax_zero(op: GraphBuilder, scores: str) -> str:
    # exp(s) / sum of exp(s) over the scores that are not zero; zeros stay
    present = op.Greater(op.Abs(scores), NEGLIGIBLE)
    shifted = op.Sub(scores, reduced(op, "ReduceMax", scores, 1))
    shares = op.Mul(op.Exp(shifted), op.Cast(present, to=TensorProto.FLOAT))
    return op.Div(shares, op.ReduceSum(shares, [1]))


def _probit(op: GraphBuilder, scores: str) -> str:
    # sqrt(2) erfinv(x), x = 2 s - 1: erfinv(x) = sign(x) sqrt(sqrt(c^2 - l / a) - c),
    # l = log(1 - x^2), c = 2 / (pi a) + l / 2
    x = op.Sub(op.Add(scores, scores), 1.0)
    log = op.Log(op.Mul(op.Sub(1.0, x), op.Add(x, 1.0)))
    c = op.Add(op.Mul(log, 0.5), 2 / (PI * WINITZKI))
    inner = op.Sqrt(op.Sub(op.Mul(c, c), op.Mul(log, 1 / WINITZKI)))
    # not the root of zero, whose gradient is infinite
    square = op.Max(op.Sub(inner, c), float(np.finfo(np.float32).tiny))
    return op.Mul(op.Mul(op.Sign(x), op.Sqrt(square)), math.sqrt(2))


#: Transform by name, of raw scores of shape (n, columns), float32.
LINKS: dict[str, Callable[[GraphBuilder, str], str]] = {
    "NONE": lambda op, scores: scores,
    "LOGISTIC": lambda op, scores: op.Sigmoid(scores),
    "SOFTMAX": lambda op, scores: op.Softmax(scores, axis=1),
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}


class Fused:
    """A fused node and the builder of its replacement; attributes are checked, as onnxruntime trusts them."""

    def __init__(self, node: NodeProto, op: GraphBuilder):
        self.node, self.op = node, op
        self.attribute: Callable[..., Any] = attributes_of(node).get

    def text(self, name: str, default: str, known: Any) -> str:
        """Return the value of a text attribute, which must be known."""
        value = self.attribute(name, default.encode()).decode(errors="replace")
        if value not in known:
            raise ValueError(f"{name} is {value!r}")
        return value

    def link(self) -> str:
        """Return the name of the transform of the scores."""
        return self.text("post_transform", "NONE", LINKS)

    def linear(self, coefficients: np.ndarray, intercepts: np.ndarray) -> str:
        """Append linear scores of the input, with a row of coefficients each."""
        intercepts = intercepts if intercepts.size else np.zeros(len(coefficients), dtype=np.float32)
        product = self.op.MatMul(self.float_input(), self.weight("coef", coefficients.T))
        return self.op.Add(product, self.weight("intercept", intercepts))

    def linked(self, scores: str, n_outputs: int) -> str:
        """Append the transform of a regressor's scores; onnxruntime does not apply it to a single column."""
        link = self.link()
        return scores if n_outputs == 1 and link != "PROBIT" else LINKS[link](self.op, scores)

    def array(self, name: str, *sizes: int) -> np.ndarray:
        """Return a list or a tensor as a vector of one of the given lengths, if any are given."""
        value = self.attribute(f"{name}_as_tensor", self.attribute(name, []))
        value = tensor_array(value) if isinstance(value, TensorProto) else np.asarray(value)
        if sizes and value.size not in sizes:
            wanted = " or ".join(map(str, dict.fromkeys(sizes)))
            raise ValueError(f"{name} has {value.size} values instead of {wanted}")
        return value.ravel()

    def floats(self, name: str, *sizes: int) -> np.ndarray:
        """Return an array of float32."""
        return self.array(name, *sizes).astype(np.float32)

    def integers(self, name: str, *sizes: int) -> np.ndarray:
        """Return an array of int64."""
        return self.array(name, *sizes).astype(np.int64)

    def per_column(self, name: str) -> np.ndarray:
        """Return a number for each column of the input, or one for all."""
        return self.array(name, 1, self.columns or max(self.array(name).size, 1))

    def rows(self, name: str, count: int) -> np.ndarray:
        """Return float32 numbers as a matrix of some rows, with a column for each one of the input."""
        values = self.floats(name)
        if count < 1 or not values.size or values.size % count:
            raise ValueError(f"{name} has {values.size} values, which do not make {count} rows")
        width = values.size // count
        if self.columns not in (None, width):
            raise ValueError(f"{name} has {width} values in a row, and the input {self.columns} columns")
        return values.reshape(count, -1)

    def classes(self, integers: str = "classlabels_ints") -> np.ndarray:
        """Return the classes of a classifier, int64 or text, by the attribute that lists integers."""
        numbers = self.integers(integers)
        texts = [text.decode() for text in self.attribute("classlabels_strings", [])]
        if not numbers.size and not texts:
            raise ValueError("it lists no classes")
        return numbers if numbers.size else np.asarray(texts, dtype=object)

    @property
    def columns(self) -> int | None:
        """Number of columns of the first input, if known."""
        shape = self.op.shape(self.node.input[0])
        return shape[-1] if shape and isinstance(shape[-1], int) else None

    def float_input(self, index: int = 0) -> str:
        """Return an input as float32, the type of fused operators."""
        name = self.node.input[index]
        known = self.op.type(name)
        if known is not None and known.elem_type == TensorProto.FLOAT:
            return name
        return self.op.Cast(name, to=TensorProto.FLOAT)

    def weight(self, stem: str, values: np.ndarray) -> str:
        """Add an initializer, never shared with an equal one, and return its name."""
        name = stem if self.op.claim(stem) else self.op.unique(stem)
        self.op.initializers.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        self.op.set_type(name, helper.np_dtype_to_tensor_dtype(values.dtype), values.shape)
        return name

    def give(self, result: str, output: str | None = None) -> bool:
        """Make a tensor an output, the first by default, and return True: the node is replaced."""
        output = output or self.node.output[0]
        if list(self.op.nodes[-1].output) == [result]:
            self.op.nodes[-1].output[0] = output
        else:
            self.op.Identity(result, outputs=[output])
        return True

    def give_like(self, result: str, shape: tuple | None, elem_type: int = TensorProto.FLOAT) -> bool:
        """Make a tensor the first output, and set its type, which onnx does not infer."""
        self.op.set_type(self.node.output[0], elem_type, shape)
        return self.give(result)

    def give_scores(self, scores: str, link: str = "NONE") -> bool:
        """Make transformed scores the second output, under a new name if it is not used."""
        has_name = len(self.node.output) > 1 and self.node.output[1]
        output = self.node.output[1] if has_name else self.op.unique("scores")
        return self.give(LINKS[link](self.op, scores), output)

    def give_label(self, classes: np.ndarray, scores: str) -> None:
        """Make the class of the largest score the first output, if it is used."""
        if self.node.output[0]:
            self.give_class(classes, self.op.ArgMax(scores, axis=1, keepdims=0))

    def give_class(self, classes: np.ndarray, numbers: str) -> None:
        """Make the classes of some numbers, of shape (n,), the first output."""
        self.give(self.op.Gather(self.op.constant(classes), numbers, axis=0))

    def give_two_classes(self, classes: np.ndarray, score: str, link: str) -> bool:
        """Make (-s, s), or the sigmoids of a score s, the second output: the second class wins above zero."""
        op = self.op
        scores = op.Concat(op.Neg(score), score, axis=1)
        self.give_label(classes, scores)  # from raw scores, as sigmoids of large ones are equal
        if link == "LOGISTIC":
            positive = op.Sigmoid(score)
            scores = op.Concat(op.Sub(1.0, positive), positive, axis=1)
        return self.give_scores(scores)
