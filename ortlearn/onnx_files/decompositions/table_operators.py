"""Operators that select or join columns, or look up values."""

import numpy as np
from onnx import TensorProto

from .common import Fused

#: Suffix of the attribute of the keys of an encoder by element type.
KEYS = {TensorProto.STRING: "strings", TensorProto.INT64: "int64s", TensorProto.FLOAT: "floats"}
MAX_COLUMNS = 2**20  # of one input of a FeatureVectorizer


def array_feature_extractor(fused: Fused) -> bool:
    """Write a selection of columns by a list of any shape; of a vector, one row."""
    op, (x, columns) = fused.op, fused.node.input
    shape, places = op.shape(x), op.shape(columns)
    if shape is None:
        return False
    if places is None or len(places) != 1:
        columns = op.Reshape(columns, [-1])
    chosen = op.Gather(x, columns, axis=-1)
    return fused.give(op.Unsqueeze(chosen, [0]) if len(shape) == 1 else chosen)


def feature_vectorizer(fused: Fused) -> bool:
    """Write a concatenation of columns, if each tensor has as many as declared."""
    op, inputs = fused.op, fused.node.input
    sizes = fused.integers("inputdimensions", len(inputs)).tolist()
    if not all(0 < size <= MAX_COLUMNS for size in sizes) or fused.columns not in (None, sizes[0]):
        raise ValueError(f"inputdimensions are {sizes[:10]}, and the first input has {fused.columns} columns")
    shapes = [op.shape(name) for name in inputs]
    if [shape[1] if shape is not None and len(shape) == 2 else None for shape in shapes] != sizes:
        return False
    result = op.Concat(*map(fused.float_input, range(len(sizes))), axis=1)
    return fused.give_like(result, ((shapes[0] or (None,))[0], sum(sizes)))


def label_encoder(fused: Fused) -> bool:
    """Write an encoder to numbers as a table, with a last entry for unknown values."""
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
    places = fused.op.node(
        "LabelEncoder",
        fused.node.input[0],
        domain="ai.onnx.ml",
        values_int64s=list(range(len(values))),
        default_int64=len(values),
        **{f"keys_{kind}": labels},
    )
    table = np.append(values, default).astype(dtype)
    return fused.give(fused.op.Gather(fused.weight("table", table), places, axis=0))


def _entries(fused: Fused, stem: str) -> tuple[str, np.ndarray]:
    """Return the suffix of the attribute with the keys or values of an encoder, and the array."""
    found = {kind: fused.array(f"{stem}_{kind}") for kind in ("strings", "int64s", "floats", "tensor")}
    return next(((kind, array) for kind, array in found.items() if array.size), ("", np.empty(0)))


def category_mapper(fused: Fused) -> bool:
    """Check a mapper of texts to numbers, which stays."""
    fused.array("cats_strings", fused.array("cats_int64s").size)
    return False


def one_hot_encoder(fused: Fused) -> bool:
    """Check a one-hot encoder, which stays."""
    if not fused.array("cats_int64s").size and not fused.array("cats_strings").size:
        raise ValueError("it lists no categories")
    return False
