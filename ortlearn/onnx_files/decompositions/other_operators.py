"""Decompositions of linear models, scalers, imputers, encoders and column selections."""

import numpy as np
from onnx import TensorProto

from ...models.formulas.distances import pairwise_distances, reduced
from .common import Fused

#: Post-transforms of two classes for which one column of scores is sufficient.
BINARY_LINKS = {"NONE", "LOGISTIC"}


def linear_regressor(fused: Fused) -> bool:
    """Decompose a linear regressor."""
    targets = int(fused.attribute("targets", 1))
    coefficients, intercepts = fused.matrix("coefficients", targets), fused.floats("intercepts", 0, targets)
    return fused.set_output(fused.linked(fused.linear(coefficients, intercepts), targets))


def linear_classifier(fused: Fused) -> bool:
    """Decompose a linear classifier; two classes with opposite coefficients have one column of scores."""
    link, classes = fused.link(), fused.classes()
    if len(classes) < 2:
        raise ValueError("it has fewer than two classes")
    intercepts = fused.floats("intercepts", 0, len(classes), 1 if len(classes) == 2 else len(classes))
    rows = intercepts.size or len(classes)
    coefficients = fused.matrix("coefficients", rows)
    if np.array_equal(coefficients, [[-1], [1]]) and link in BINARY_LINKS and not intercepts.any():
        return fused.set_two_classes(classes, fused.float_input(), link)  # the input is a score
    if rows == 2 and link in BINARY_LINKS and _opposite(coefficients) and _opposite(intercepts):
        coefficients, intercepts, rows = coefficients[1:], intercepts[1:], 1
    if rows == 1 and link not in BINARY_LINKS:
        raise ValueError(f"post_transform is {link!r} for two classes with one row of coefficients")
    raw = fused.linear(coefficients, intercepts)
    if rows == 1:
        return fused.set_two_classes(classes, raw, link)
    fused.set_label(classes, raw)
    return fused.set_scores(raw, link)


def _opposite(values: np.ndarray) -> bool:
    """Return whether the values of two classes are opposite or empty."""
    return bool(np.array_equal(values[:1], -values[1:]))


def scaler(fused: Fused) -> bool:
    """Decompose a scaler into ``(x - offset) * scale``."""
    offset, scale = (fused.per_column(name).astype(np.float32) for name in ("offset", "scale"))
    centred = fused.op.Sub(fused.float_input(), fused.weight("offset", offset))
    result = fused.op.Mul(centred, fused.weight("scale", scale))
    return fused.set_typed_output(result, fused.op.shape(fused.node.input[0]))


def imputer(fused: Fused) -> bool:
    """Decompose an imputer into a choice between its input and the imputed value of the column."""
    x, op = fused.node.input[0], fused.op
    known = op.type(x)
    integers = known is not None and known.elem_type == TensorProto.INT64
    values = fused.per_column("imputed_value_int64s" if integers else "imputed_value_floats")
    if known is None or known.elem_type not in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64):
        return False
    missing = fused.attribute("replaced_value_int64" if integers else "replaced_value_float", 0)
    imputed = fused.weight("imputed_value", values.astype(op.dtype(x)))
    chosen = op.IsNaN(x) if np.isnan(missing) else op.Equal(x, op.constant(missing, op.dtype(x)))
    return fused.set_typed_output(op.Where(chosen, imputed, x), known.shape, known.elem_type)


def normalizer(fused: Fused) -> bool:
    """Decompose a normalizer; MAX divides by the largest value, not by the largest absolute value."""
    norm = fused.text("norm", "MAX", ("MAX", "L1", "L2"))
    result = _normalized(fused, fused.float_input(), norm, -1)
    return fused.set_typed_output(result, fused.op.shape(fused.node.input[0]))


def lp_normalization(fused: Fused) -> bool:
    """Decompose a normalization by the L1 or L2 norm."""
    norm = {1: "L1", 2: "L2"}[fused.attribute("p", 2)]
    return fused.set_output(_normalized(fused, fused.node.input[0], norm, fused.attribute("axis", -1)))


def _normalized(fused: Fused, x: str, norm: str, axis: int) -> str:
    """Return a tensor divided by its norm along an axis, or unchanged if the norm is zero."""
    op, dtype = fused.op, fused.op.dtype(x)
    if norm == "MAX":
        size = reduced(op, "ReduceMax", x, axis)
    else:
        size = op.ReduceSum(op.Abs(x) if norm == "L1" else op.Mul(x, x), [axis])
    safe = op.Where(op.Equal(size, op.constant(0.0, dtype)), op.constant(1.0, dtype), size)
    return op.Div(x, op.Sqrt(safe) if norm == "L2" else safe)


def cdist(fused: Fused) -> bool:
    """Decompose Euclidean distances between the rows of two matrices, not other metrics."""
    metric = fused.attribute("metric", b"sqeuclidean").decode()
    if metric not in ("sqeuclidean", "euclidean"):
        return False
    a, b = fused.node.input
    return fused.set_output(pairwise_distances(fused.op, a, b, metric))


#: Suffixes of the attribute with the keys of an encoder, by element type.
KEYS = {TensorProto.STRING: "strings", TensorProto.INT64: "int64s", TensorProto.FLOAT: "floats"}
MAX_COLUMNS = 2**20  # of an input of FeatureVectorizer


def array_feature_extractor(fused: Fused) -> bool:
    """Decompose a selection of columns by indices of any shape; a vector has one row."""
    op, (x, columns) = fused.op, fused.node.input
    shape, indices_shape = op.shape(x), op.shape(columns)
    if shape is None:
        return False
    if indices_shape is None or len(indices_shape) != 1:
        columns = op.Reshape(columns, [-1])
    chosen = op.Gather(x, columns, axis=-1)
    return fused.set_output(op.Unsqueeze(chosen, [0]) if len(shape) == 1 else chosen)


def feature_vectorizer(fused: Fused) -> bool:
    """Decompose a concatenation of inputs with the declared numbers of columns."""
    op, inputs = fused.op, fused.node.input
    sizes = fused.integers("inputdimensions", len(inputs)).tolist()
    if not all(0 < size <= MAX_COLUMNS for size in sizes) or fused.columns not in (None, sizes[0]):
        raise ValueError(f"inputdimensions are {sizes[:10]}, but the first input has {fused.columns} columns")
    shapes = [op.shape(name) for name in inputs]
    if [shape[1] if shape is not None and len(shape) == 2 else None for shape in shapes] != sizes:
        return False
    result = op.Concat(*map(fused.float_input, range(len(sizes))), axis=1)
    return fused.set_typed_output(result, ((shapes[0] or (None,))[0], sum(sizes)))


def label_encoder(fused: Fused) -> bool:
    """Decompose an encoder to floats into a table, whose last entry is for unknown values."""
    (kind, keys), (values_kind, values) = _entries(fused, "keys"), _entries(fused, "values")
    if keys.size != values.size:
        raise ValueError(f"it has {keys.size} keys and {values.size} values")
    labels = fused.attribute(f"keys_{kind}")
    if kind == "tensor":
        kind, labels = KEYS.get(labels.data_type, ""), keys.tolist()
    if not keys.size or not kind or values.dtype.kind != "f":
        return False
    if values_kind == "tensor":
        default, dtype = [*fused.array("default_tensor"), 0.0][:1], values.dtype
    else:
        default, dtype = [fused.attribute("default_float", -0.0)], np.dtype(np.float32)
    indices = fused.op.node(
        "LabelEncoder",
        fused.node.input[0],
        domain="ai.onnx.ml",
        values_int64s=list(range(len(values))),
        default_int64=len(values),
        **{f"keys_{kind}": labels},
    )
    table = np.append(values, default).astype(dtype)
    return fused.set_output(fused.op.Gather(fused.weight("table", table), indices, axis=0))


def _entries(fused: Fused, stem: str) -> tuple[str, np.ndarray]:
    """Return the keys or values of an encoder, after the suffix of their attribute."""
    found = {kind: fused.array(f"{stem}_{kind}") for kind in ("strings", "int64s", "floats", "tensor")}
    return next(((kind, array) for kind, array in found.items() if array.size), ("", np.empty(0)))


def category_mapper(fused: Fused) -> bool:
    """Check the attributes of a category mapper, which is not decomposed."""
    fused.array("cats_strings", fused.array("cats_int64s").size)
    return False


def one_hot_encoder(fused: Fused) -> bool:
    """Check the attributes of a one-hot encoder, which is not decomposed."""
    if not fused.array("cats_int64s").size and not fused.array("cats_strings").size:
        raise ValueError("it has no categories")
    return False
