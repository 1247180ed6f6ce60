"""The version of ai.onnx.ml that the operators of decision trees need."""

from __future__ import annotations

from onnx import ModelProto

from ...graphs import copy_model, opset_versions

__all__ = ["NEW_TREES", "with_tree_opset"]

#: Version that has TreeEnsemble and no longer the operators it replaces.
NEW_TREES = 5
OLD_TREES = {"TreeEnsembleClassifier", "TreeEnsembleRegressor"}


def with_tree_opset(model: ModelProto) -> ModelProto:
    """Return a model with a version of ai.onnx.ml that has its operators of decision trees.

    Parameters
    ----------
    model : onnx.ModelProto
        Model whose TreeEnsemble operators are decomposed.

    Returns
    -------
    onnx.ModelProto
        Model of the version before the older operators went, where it has any; the others are the same
        in both versions.
    """
    kinds = {node.op_type for node in model.graph.node if node.domain == "ai.onnx.ml"}
    version = opset_versions(model).get("ai.onnx.ml", 0)
    if version < NEW_TREES or not kinds & OLD_TREES or "TreeEnsemble" in kinds:
        return model
    result = copy_model(model)
    for item in result.opset_import:
        if item.domain == "ai.onnx.ml":
            item.version = NEW_TREES - 1
    return result
