"""Checks of the attributes of ai.onnx.ml operators: onnxruntime trusts their lengths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ..differentiation.inference import infer_types
from ..exceptions import ConversionError
from ..graphs import TensorType, value_types
from .model_checks import all_nodes

__all__ = ["check_ml_nodes", "check_ml_widths"]

ML = "ai.onnx.ml"
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


class Invalid(Exception):
    """What is wrong with an attribute."""


class Attributes:
    """Attributes of a node, and the number of columns of its input.

    Parameters
    ----------
    node : onnx.NodeProto
        Node.
    columns : int or None
        Columns of its first input, where they are known.
    """

    def __init__(self, node: NodeProto, columns: int | None):
        self.node = node
        self.columns = columns
        self._values = {a.name: helper.get_attribute_value(a) for a in node.attribute}

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute."""
        return self._values.get(name, default)

    def array(self, *names: str) -> np.ndarray:
        """Return the first of some lists that is not empty, tensors among them; an empty one otherwise."""
        for name in names:
            value = self._values.get(name, [])
            value = numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)
            if value.size:
                return value.ravel()
        return np.empty(0)

    def floats(self, name: str) -> np.ndarray:
        """Return a list of numbers that may be given as a tensor."""
        return self.array(name, f"{name}_as_tensor")

    def expect(self, name: str, found: int, *allowed: int) -> None:
        """Raise an error where a list has another length than it may have."""
        if found not in allowed:
            wanted = " or ".join(map(str, dict.fromkeys(allowed)))
            raise Invalid(f"{name} has {found} values instead of {wanted}")

    def width(self, name: str, found: int, rows: int, *others: int) -> None:
        """Raise an error where a list does not hold so many rows of as many values as there are columns."""
        if rows < 1 or found < 1 or found % rows:
            raise Invalid(f"{name} has {found} values, which are no {rows} rows")
        if self.columns is not None and found // rows not in (self.columns, *others):
            raise Invalid(f"{name} has {found // rows} values in a row, and the input {self.columns} columns")

    def classes(self, integers: str = "classlabels_ints") -> int:
        """Return the number of classes."""
        found = self.array(integers, "classlabels_strings").size
        if not found:
            raise Invalid("it lists no classes")
        transform = self.get("post_transform", b"NONE")
        if transform.decode(errors="replace") not in TRANSFORMS:
            raise Invalid(f"post_transform is {transform!r}")
        return found


def check_ml_nodes(model: ModelProto, types: Mapping[str, TensorType], label: str) -> None:
    """Raise an error for attributes of ai.onnx.ml operators that do not fit together.

    Parameters
    ----------
    model : onnx.ModelProto
        Model.
    types : mapping of str to TensorType
        What is known of its tensors.
    label : str
        What the model was read from, in the plural.

    Raises
    ------
    ConversionError
        If there is one; the message names node and attribute.
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
    """Raise an error for linear operators and SVMs that are left, of inputs with an unknown width.

    onnxruntime would read beyond their coefficients where X has more columns than they expect.

    Parameters
    ----------
    model : onnx.ModelProto
        Model, after what can be written as plain operators was.

    Raises
    ------
    ConversionError
        If there is one.
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


def _nodes(a: Attributes) -> None:
    """Check the nodes of decision trees: lists of one length that form trees."""
    ids, trees = a.array("nodes_nodeids"), a.array("nodes_treeids")
    n_nodes = ids.size
    if not n_nodes:
        raise Invalid("it has no nodes")
    for name in ("treeids", "featureids", "modes", "truenodeids", "falsenodeids"):
        a.expect(f"nodes_{name}", a.array(f"nodes_{name}").size, n_nodes)
    a.expect("nodes_values", a.floats("nodes_values").size, n_nodes)
    for name in ("nodes_hitrates", "nodes_missing_value_tracks_true"):
        a.expect(name, a.floats(name).size, 0, n_nodes)
    _features(a, a.array("nodes_featureids")[a.array("nodes_modes") != b"LEAF"])
    places = {key: i for i, key in enumerate(zip(trees.tolist(), ids.tolist(), strict=True))}
    if len(places) < n_nodes:
        raise Invalid("a tree has two nodes of one number")
    inner = np.flatnonzero(a.array("nodes_modes") != b"LEAF")
    sides = [a.array(f"nodes_{side}nodeids")[inner].tolist() for side in ("true", "false")]
    owners = trees[inner].tolist()
    children = [[places.get(key, -1) for key in zip(owners, side, strict=True)] for side in sides]
    _forest(n_nodes, np.repeat(inner[:, None], 2, axis=1), np.array(children, dtype=np.int64).T)


def _features(a: Attributes, features: np.ndarray) -> None:
    if features.size and (features.min() < 0 or (a.columns is not None and features.max() >= a.columns)):
        raise Invalid(f"nodes_featureids names columns that the input of {a.columns} columns does not have")


def _forest(n_nodes: int, parents: np.ndarray, children: np.ndarray) -> None:
    """Raise an error where nodes and their children are no trees: one would be routed in circles."""
    children, parents = children.ravel(), parents.ravel()
    if children.size and (children.min() < 0 or children.max() >= n_nodes):
        raise Invalid("a node has a child that the tree does not have")
    waiting = np.bincount(children, minlength=n_nodes)
    order = np.argsort(parents, kind="stable")
    starts = np.searchsorted(parents[order], np.arange(n_nodes + 1))
    children = children[order].tolist()
    ready = np.flatnonzero(waiting == 0).tolist()
    seen = 0
    while ready:
        node = ready.pop()
        seen += 1
        for child in children[starts[node] : starts[node + 1]]:
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    if seen < n_nodes:
        raise Invalid("the nodes of a tree lead back to themselves")


def _leaves(a: Attributes, prefix: str, n_outputs: int) -> None:
    weights = a.floats(f"{prefix}_weights").size
    if not weights:
        raise Invalid(f"{prefix}_weights is empty")
    for name in ("ids", "nodeids", "treeids"):
        a.expect(f"{prefix}_{name}", a.array(f"{prefix}_{name}").size, weights)
    outputs = a.array(f"{prefix}_ids")
    if outputs.min() < 0 or outputs.max() >= n_outputs:
        raise Invalid(f"{prefix}_ids names outputs beyond the {n_outputs} that there are")
    known = set(zip(a.array("nodes_treeids").tolist(), a.array("nodes_nodeids").tolist(), strict=True))
    used = (a.array(f"{prefix}_{name}").tolist() for name in ("treeids", "nodeids"))
    if not known.issuperset(zip(*used, strict=True)):
        raise Invalid(f"{prefix}_nodeids names nodes that the trees do not have")


def _tree_regressor(a: Attributes) -> None:
    _nodes(a)
    n_targets = a.get("n_targets", 1)
    _leaves(a, "target", n_targets)
    a.expect("base_values", a.floats("base_values").size, 0, n_targets)


def _tree_classifier(a: Attributes) -> None:
    n_classes = a.classes("classlabels_int64s")
    _nodes(a)
    _leaves(a, "class", n_classes)
    a.expect("base_values", a.floats("base_values").size, 0, n_classes, 1 if n_classes == 2 else 0)


def _tree_ensemble(a: Attributes) -> None:
    features, leaves = a.array("nodes_featureids"), a.array("leaf_weights").size
    n_nodes = features.size
    a.expect("leaf_targetids", a.array("leaf_targetids").size, leaves)
    targets, n_targets = a.array("leaf_targetids"), a.get("n_targets", 1)
    if not n_nodes or not leaves or targets.min() < 0 or targets.max() >= n_targets:
        raise Invalid(f"it has no nodes or leaves, or leaf_targetids beyond the {n_targets} targets")
    _features(a, features)
    sides = []
    for side in ("true", "false"):
        ids, are_leaves = a.array(f"nodes_{side}nodeids"), a.array(f"nodes_{side}leafs")
        a.expect(f"nodes_{side}nodeids", ids.size, n_nodes)
        a.expect(f"nodes_{side}leafs", are_leaves.size, n_nodes)
        limits = np.where(are_leaves != 0, leaves, n_nodes)
        if np.any(ids < 0) or np.any(ids >= limits):
            raise Invalid(f"nodes_{side}nodeids names nodes or leaves that there are not")
        sides.append(np.where(are_leaves != 0, n_nodes + ids, ids))
    roots = a.array("tree_roots")
    if not roots.size or roots.min() < 0 or roots.max() >= n_nodes:
        raise Invalid("tree_roots names nodes that there are not")
    for name in ("nodes_splits", "nodes_modes"):
        a.expect(name, a.array(name).size, n_nodes)
    for name in ("nodes_hitrates", "nodes_missing_value_tracks_true"):
        a.expect(name, a.array(name).size, 0, n_nodes)
    parents = np.repeat(np.arange(n_nodes)[:, None], 2, axis=1)
    _forest(n_nodes + leaves, parents, np.array(sides, dtype=np.int64).T)


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
    "TreeEnsemble": _tree_ensemble,
    "TreeEnsembleClassifier": _tree_classifier,
    "TreeEnsembleRegressor": _tree_regressor,
}
#: Operators whose input's columns onnxruntime does not compare with their attributes.
_READS_BLINDLY = ("LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor")
