"""Classifiers of several outputs, whose members may be pipelines or have no probabilities."""

from __future__ import annotations

from typing import Any

from .members import column, member, outputs_of

__all__ = ["convert_classifier"]


def convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    """Write the classifier of every output on the same features: labels side by side, scores apart."""
    from skl2onnx.algebra.onnx_ops import OnnxConcat, OnnxIdentity, OnnxSequenceConstruct

    version = container.target_opset
    members = [member(own, operator.inputs[0], container) for own in operator.raw_operator.estimators_]
    labels, scores = zip(*map(outputs_of, members), strict=True)
    columns = [column(label, container) for label in labels]
    names = operator.outputs
    joined = OnnxConcat(*columns, axis=1, op_version=version, output_names=[names[0]])
    joined.add_to(scope=scope, container=container)
    matrices = [OnnxIdentity(score, op_version=version) for score in scores]
    OnnxSequenceConstruct(*matrices, op_version=version, output_names=[names[1]]).add_to(scope, container)
