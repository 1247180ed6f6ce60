"""Attributes of a fused node, and helpers that write its replacement."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from ...graphs import GraphBuilder
from ...graphs.external_tensors import tensor_array
from ...graphs.nodes import attributes_of
from ...models.formulas.distances import reduced

#: Constants of onnxruntime's inverse error function (approximation by Winitzki, 2008).
WINITZKI, PI = 0.147, 3.14159
NEGLIGIBLE = 1e-7  # SOFTMAX_ZERO treats scores up to this magnitude as zero


def _softmax_zero(op: GraphBuilder, scores: str) -> str:
    # softmax over the scores that are not zero; zeros are unchanged
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
    # avoids the infinite gradient of the root at zero
    square = op.Max(op.Sub(inner, c), float(np.finfo(np.float32).tiny))
    return op.Mul(op.Mul(op.Sign(x), op.Sqrt(square)), math.sqrt(2))


#: Values of ``post_transform``, and their functions of raw float32 scores of shape (n, columns).
LINKS: dict[str, Callable[[GraphBuilder, str], str]] = {
    "NONE": lambda op, scores: scores,
    "LOGISTIC": lambda op, scores: op.Sigmoid(scores),
    "SOFTMAX": lambda op, scores: op.Softmax(scores, axis=1),
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}


class Fused:
    """A fused node and the builder of its replacement; attributes are checked, since onnxruntime does not."""

    def __init__(self, node: NodeProto, op: GraphBuilder):
        self.node, self.op = node, op
        self.attribute: Callable[..., Any] = attributes_of(node).get

    def text(self, name: str, default: str, known: Any) -> str:
        """Return the value of a text attribute; raise a ValueError for unknown values."""
        value = self.attribute(name, default.encode()).decode(errors="replace")
        if value not in known:
            raise ValueError(f"{name} is {value!r} instead of one of {sorted(known)}")
        return value

    def link(self) -> str:
        """Return the name of the post-transform."""
        return self.text("post_transform", "NONE", LINKS)

    def linear(self, coefficients: np.ndarray, intercepts: np.ndarray) -> str:
        """Append linear scores of the input, one for each row of coefficients."""
        intercepts = intercepts if intercepts.size else np.zeros(len(coefficients), dtype=np.float32)
        product = self.op.MatMul(self.float_input(), self.weight("coef", coefficients.T))
        return self.op.Add(product, self.weight("intercept", intercepts))

    def linked(self, scores: str, n_outputs: int) -> str:
        """Append the post-transform of a regressor, which onnxruntime does not apply to a single output."""
        link = self.link()
        return scores if n_outputs == 1 and link != "PROBIT" else LINKS[link](self.op, scores)

    def array(self, name: str, *sizes: int) -> np.ndarray:
        """Return a list or a tensor as a vector; raise a ValueError unless its length is one of ``sizes``."""
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
        """Return a value for each column of the input, or a single value."""
        return self.array(name, 1, self.columns or max(self.array(name).size, 1))

    def matrix(self, name: str, n_rows: int) -> np.ndarray:
        """Return float32 values as a matrix of shape (n_rows, n_columns), with the columns of the input."""
        values = self.floats(name)
        if n_rows < 1 or not values.size or values.size % n_rows:
            raise ValueError(f"{name} has {values.size} values, not a multiple of {n_rows} rows")
        width = values.size // n_rows
        if self.columns not in (None, width):
            raise ValueError(f"{name} has {width} values in a row, but the input has {self.columns} columns")
        return values.reshape(n_rows, -1)

    def classes(self, integers: str = "classlabels_ints") -> np.ndarray:
        """Return the classes of a classifier, of int64 or text; ``integers`` is the attribute of int64."""
        numbers = self.integers(integers)
        texts = [text.decode() for text in self.attribute("classlabels_strings", [])]
        if not numbers.size and not texts:
            raise ValueError("it has no classes")
        return numbers if numbers.size else np.asarray(texts, dtype=object)

    @property
    def columns(self) -> int | None:
        """Number of columns of the first input, if known."""
        shape = self.op.shape(self.node.input[0])
        return shape[-1] if shape and isinstance(shape[-1], int) else None

    def float_input(self, index: int = 0) -> str:
        """Return an input cast to float32, the type of fused operators."""
        name = self.node.input[index]
        known = self.op.type(name)
        if known is not None and known.elem_type == TensorProto.FLOAT:
            return name
        return self.op.Cast(name, to=TensorProto.FLOAT)

    def weight(self, stem: str, values: np.ndarray) -> str:
        """Add an initializer, without sharing equal ones, and return its name."""
        name = stem if self.op.claim(stem) else self.op.unique(stem)
        self.op.initializers.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        self.op.set_type(name, helper.np_dtype_to_tensor_dtype(values.dtype), values.shape)
        return name

    def set_output(self, result: str, output: str | None = None) -> bool:
        """Set an output of the node, the first by default, and return True."""
        output = output or self.node.output[0]
        if list(self.op.nodes[-1].output) == [result]:
            self.op.nodes[-1].output[0] = output
        else:
            self.op.Identity(result, outputs=[output])
        return True

    def set_typed_output(self, result: str, shape: tuple | None, elem_type: int = TensorProto.FLOAT) -> bool:
        """Set the first output and its type, which onnx does not infer."""
        self.op.set_type(self.node.output[0], elem_type, shape)
        return self.set_output(result)

    def set_scores(self, scores: str, link: str = "NONE") -> bool:
        """Set the second output, with a new name if it is unused, to post-transformed scores."""
        has_name = len(self.node.output) > 1 and self.node.output[1]
        output = self.node.output[1] if has_name else self.op.unique("scores")
        return self.set_output(LINKS[link](self.op, scores), output)

    def set_label(self, classes: np.ndarray, scores: str) -> None:
        """Set the first output, if it is used, to the class with the largest score."""
        if self.node.output[0]:
            self.set_class(classes, self.op.ArgMax(scores, axis=1, keepdims=0))

    def set_class(self, classes: np.ndarray, indices: str) -> None:
        """Set the first output to the classes at indices of shape (n,)."""
        self.set_output(self.op.Gather(self.op.constant(classes), indices, axis=0))

    def set_two_classes(self, classes: np.ndarray, score: str, link: str) -> bool:
        """Set the outputs for a score s of two classes: (-s, s), or sigmoids; the second class if s > 0."""
        op = self.op
        scores = op.Concat(op.Neg(score), score, axis=1)
        self.set_label(classes, scores)  # from raw scores, since large ones have equal sigmoids
        if link == "LOGISTIC":
            positive = op.Sigmoid(score)
            scores = op.Concat(op.Sub(1.0, positive), positive, axis=1)
        return self.set_scores(scores)
