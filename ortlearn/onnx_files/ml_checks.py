"""Checks of the attributes of ai.onnx.ml operators: onnxruntime trusts their lengths."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import ModelProto, NodeProto

from ..differentiation.inference import infer_types
from ..exceptions import ConversionError
from ..graphs import TensorType, value_types
from ..graphs.nodes import all_nodes
from .ml_attributes import Attributes, Invalid
from .ml_tree_checks import tree_classifier, tree_ensemble, tree_regressor

__all__ = ["check_ml_nodes", "check_ml_widths"]

ML = "ai.onnx.ml"


def check_ml_nodes(model: ModelProto, types: Mapping[str, TensorType], label: str) -> None:
    """Raise a ConversionError for attributes of ai.onnx.ml operators that do not fit together.

    The message names node and attribute; ``label`` says what the model was read from, in the plural.
    """
    for node in all_nodes(model.graph):
        check = _CHECKS.get(node.op_type) if node.domain == ML else None
        if check is None:
            continue
        try:
            check(Attributes(node, _columns(node, types)))
        except Invalid as error:
            raise ConversionError(
                f"{label} are not a valid ONNX model: {node.op_type} (node {node.name!r}): {error}."
            ) from error


def check_ml_widths(model: ModelProto) -> None:
    """Raise a ConversionError for linear operators and SVMs that are left, of inputs with an unknown width.

    onnxruntime would read beyond their coefficients where X has more columns than they expect. The model is
    one after the decomposition of operators.
    """
    left = [n for n in all_nodes(model.graph) if n.domain == ML and n.op_type in _READS_BLINDLY]
    types = value_types(infer_types(model), infer=False) if left else {}
    for node in left:
        if node.op_type == "LinearClassifier" and not Attributes(node, None).array("intercepts").size:
            raise ConversionError(f"LinearClassifier (node {node.name!r}) has no intercepts: add zeros.")
        if _columns(node, types) is None:
            raise ConversionError(
                f"The number of columns that {node.op_type} (node {node.name!r}) reads is not known: declare "
                "the shape of the model's input."
            )


def _columns(node: NodeProto, types: Mapping[str, TensorType]) -> int | None:
    known = types.get(node.input[0]) if node.input else None
    if known is None or not known.shape:
        return None
    return known.shape[-1] if isinstance(known.shape[-1], int) else None


def _linear_classifier(a: Attributes) -> None:
    n_classes, rho = a.classes(), a.array("intercepts").size
    if n_classes < 2:
        raise Invalid("it has one class")
    a.expect("intercepts", rho, 0, n_classes, 1 if n_classes == 2 else n_classes)
    a.width("coefficients", a.array("coefficients").size, rho or n_classes)


def _linear_regressor(a: Attributes) -> None:
    targets = a.get("targets", 1)
    a.width("coefficients", a.array("coefficients").size, targets)
    a.expect("intercepts", a.array("intercepts").size, 0, targets)


def _kernel(a: Attributes) -> None:
    a.expect("kernel_params", a.array("kernel_params").size, 0, 3)


def _svm_regressor(a: Attributes) -> None:
    _kernel(a)
    n_supports, coefficients = a.get("n_supports", 0), a.array("coefficients").size
    a.expect("rho", a.array("rho").size, 1)
    if n_supports:
        a.width("support_vectors", a.array("support_vectors").size, n_supports)
        a.expect("coefficients", coefficients, n_supports)
    else:
        a.width("coefficients", coefficients, 1)


def _svm_classifier(a: Attributes) -> None:
    _kernel(a)
    n_classes, rho = a.classes(), a.array("rho").size
    per_class, coefficients = a.array("vectors_per_class"), a.array("coefficients").size
    n_pairs = n_classes * (n_classes - 1) // 2
    if per_class.size:
        total = sum(map(int, per_class))
        if n_classes < 2 or min(per_class) < 0:
            raise Invalid("vectors_per_class has a negative number, or there is one class")
        a.expect("vectors_per_class", per_class.size, n_classes)
        a.width("support_vectors", a.array("support_vectors").size, total)
        a.expect("coefficients", coefficients, (n_classes - 1) * total)
        a.expect("rho", rho, n_pairs)
    else:
        a.width("coefficients", coefficients, n_classes)
        a.expect("rho", rho, 1, n_classes, n_pairs)
    for name in ("prob_a", "prob_b"):
        a.expect(name, a.array(name).size, 0 if not a.array("prob_a").size else n_pairs)


def _scaler(a: Attributes) -> None:
    for name in ("offset", "scale"):
        a.width(name, a.array(name).size, 1, 1)


def _imputer(a: Attributes) -> None:
    a.width("imputed values", a.array("imputed_value_floats", "imputed_value_int64s").size, 1, 1)


def _pairs(a: Attributes, keys: str, values: str) -> None:
    kinds = ("floats", "int64s", "strings", "tensor")
    found = [a.array(*(f"{stem}_{kind}" for kind in kinds)).size for stem in (keys, values)]
    a.expect(f"{values}_*", found[1], found[0])


def _label_encoder(a: Attributes) -> None:
    _pairs(a, "keys", "values")


def _category_mapper(a: Attributes) -> None:
    a.expect("cats_strings", a.array("cats_strings").size, a.array("cats_int64s").size)


def _one_hot_encoder(a: Attributes) -> None:
    if not a.array("cats_int64s", "cats_strings").size:
        raise Invalid("it lists no categories")


def _feature_vectorizer(a: Attributes) -> None:
    sizes = a.array("inputdimensions")
    a.expect("inputdimensions", sizes.size, len(a.node.input))
    if sizes.size and (sizes.min() < 1 or sizes.max() > 2**20):
        raise Invalid(f"inputdimensions are {sizes.tolist()[:10]}")
    if sizes.size and a.columns not in (None, sizes[0]):
        raise Invalid(f"inputdimensions begin with {sizes[0]}, and the first input has {a.columns} columns")


_CHECKS: dict[str, Callable[[Attributes], None]] = {
    "CategoryMapper": _category_mapper,
    "FeatureVectorizer": _feature_vectorizer,
    "Imputer": _imputer,
    "LabelEncoder": _label_encoder,
    "LinearClassifier": _linear_classifier,
    "LinearRegressor": _linear_regressor,
    "OneHotEncoder": _one_hot_encoder,
    "SVMClassifier": _svm_classifier,
    "SVMRegressor": _svm_regressor,
    "Scaler": _scaler,
    "TreeEnsemble": tree_ensemble,
    "TreeEnsembleClassifier": tree_classifier,
    "TreeEnsembleRegressor": tree_regressor,
}
#: Operators whose input's columns onnxruntime does not compare with their attributes.
_READS_BLINDLY = ("LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor")
