"""Decompose fused operators into standard operators, whose weights are the attributes."""

# A decomposition raises a ValueError for invalid attributes, and returns False to leave the node unchanged.

from functools import partial

from onnx import ModelProto, NodeProto

from ...exceptions import ConversionError
from ...graphs import GraphBuilder, replace_nodes
from ...graphs.nodes import all_nodes, subgraphs
from ..rewrites import rewrite_forms
from . import other_operators as others
from .common import Fused
from .svm_operators import exact_couplings, svm_classifier, svm_regressor
from .tree_ensemble import tree_ensemble, with_tree_opset
from .tree_operators import tree_classifier, tree_regressor

__all__ = ["DECOMPOSITIONS", "decompose_operators", "exact_couplings"]

DECOMPOSITIONS = {
    ("", "LpNormalization"): others.lp_normalization,
    ("ai.onnx.ml", "ArrayFeatureExtractor"): others.array_feature_extractor,
    ("ai.onnx.ml", "CategoryMapper"): others.category_mapper,
    ("ai.onnx.ml", "FeatureVectorizer"): others.feature_vectorizer,
    ("ai.onnx.ml", "Imputer"): others.imputer,
    ("ai.onnx.ml", "LabelEncoder"): others.label_encoder,
    ("ai.onnx.ml", "LinearClassifier"): others.linear_classifier,
    ("ai.onnx.ml", "LinearRegressor"): others.linear_regressor,
    ("ai.onnx.ml", "Normalizer"): others.normalizer,
    ("ai.onnx.ml", "Scaler"): others.scaler,
    ("ai.onnx.ml", "OneHotEncoder"): others.one_hot_encoder,
    ("ai.onnx.ml", "SVMClassifier"): svm_classifier,
    ("ai.onnx.ml", "SVMRegressor"): svm_regressor,
    ("ai.onnx.ml", "TreeEnsemble"): tree_ensemble,
    ("ai.onnx.ml", "TreeEnsembleClassifier"): tree_classifier,
    ("ai.onnx.ml", "TreeEnsembleRegressor"): tree_regressor,
    ("com.microsoft", "CDist"): others.cdist,
}
#: Operators whose decomposition depends on the shapes of inputs.
SHAPED = (("", "LpNormalization"), ("ai.onnx.ml", "ArrayFeatureExtractor"), ("com.microsoft", "CDist"))
#: Operators whose input onnxruntime reads without a check of its number of columns.
UNCHECKED = ("LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor")


def decompose_operators(model: ModelProto) -> ModelProto:
    """Return a model of differentiable standard operators, with attributes as initializers."""
    rules = {key: partial(_replace, key) for key in DECOMPOSITIONS}
    plain = replace_nodes(model, rules)
    # again, since onnx infers no shapes after fused operators
    plain = replace_nodes(plain, {key: rules[key] for key in SHAPED})
    bodies = (graph for node in plain.graph.node for graph in subgraphs(node))
    for node in (node for graph in bodies for node in all_nodes(graph) if node.domain == "ai.onnx.ml"):
        if node.op_type in UNCHECKED:
            raise ConversionError(f"{node.op_type} (node {node.name!r}) is in a subgraph: move it out.")
        if (node.domain, node.op_type) in rules:  # check attributes without a replacement
            rules[node.domain, node.op_type](node, GraphBuilder())
    return rewrite_forms(with_tree_opset(plain))


def _replace(key: tuple[str, str], node: NodeProto, op: GraphBuilder) -> bool:
    try:
        return DECOMPOSITIONS[key](Fused(node, op))
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise ConversionError(
            f"{node.op_type} (node {node.name!r}) has invalid attributes: "
            f"{str(error).rstrip('.')}. Export the model again."
        ) from error
