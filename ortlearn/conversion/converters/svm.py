"""Support vector machines, whose decision scores keep the sign and the shape that scikit-learn gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper
from scipy.sparse import issparse
from sklearn.svm import OneClassSVM

from ...exceptions import ConversionError
from ...graphs import GraphBuilder
from ...models.coupling import pair_table
from .writing import add_nodes, float_input, new_builder

__all__ = ["convert_classifier", "convert_regressor", "votes_and_confidences"]

ML = "ai.onnx.ml"
KERNELS = ("linear", "poly", "rbf", "sigmoid")


def convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    """Write the label of SVC or NuSVC, and its probabilities or ``decision_function``.

    Two classes have the columns -z and z, with z the decision; skl2onnx has them the other way round,
    and one-against-rest then takes the wrong one. More have votes and confidences, or one column per
    pair of classes, as ``decision_function_shape`` says. With ``break_ties`` the label is the class of
    the largest one.
    """
    svc, op = operator.raw_operator, new_builder(scope)
    label, output = (variable.full_name for variable in operator.outputs)
    decides = container.get_options(svc, {"raw_scores": False})["raw_scores"] or len(svc.probA_) == 0
    binary = len(svc.classes_) == 2
    confident = svc.decision_function_shape == "ovr" and not binary
    attributes = _classifier_attributes(svc) | ({} if decides else _calibration(svc))
    voted, scores = op.node(
        "SVMClassifier",
        float_input(op, operator),
        domain=ML,
        outputs=[
            op.unique("label") if svc.break_ties and confident and decides else label,
            op.unique("scores"),
        ],
        **attributes,
    )
    decisions = scores
    if decides and binary:
        decision = op.Slice(scores, [0], [1], [1])  # the operator has it first
        decisions = op.Concat(op.Neg(decision), decision, axis=1)
    elif decides and confident:
        decisions = votes_and_confidences(op, scores, len(svc.classes_))
        if svc.break_ties:
            best = op.ArgMax(decisions, axis=1, keepdims=0)
            op.node("Gather", _class_table(svc.classes_), best, outputs=[label], axis=0)
    op.node("Cast", decisions, outputs=[output], to=_float_type(operator.outputs[1]))
    add_nodes(container, op)


def convert_regressor(scope: Any, operator: Any, container: Any) -> None:
    """Write the prediction of SVR or NuSVR, or the label and the decision of OneClassSVM."""
    model, op = operator.raw_operator, new_builder(scope)
    score = op.node(
        "SVMRegressor",
        float_input(op, operator),
        domain=ML,
        coefficients=_flat(model.dual_coef_),
        rho=_flat(model.intercept_),
        n_supports=len(model.support_),
        **_kernel_attributes(model),
    )
    is_detector = isinstance(model, OneClassSVM)
    output = operator.outputs[1 if is_detector else 0]
    op.node("Cast", score, outputs=[output.full_name], to=_float_type(output))
    if is_detector:
        inlier = op.Cast(op.Greater(score, 0.0), to=TensorProto.INT64)
        op.node("Sub", op.Mul(inlier, 2), 1, outputs=[operator.outputs[0].full_name])
    add_nodes(container, op)


def _kernel_attributes(model: Any) -> dict[str, Any]:
    if model.kernel not in KERNELS:
        kernel = model.kernel if isinstance(model.kernel, str) else "of a function"
        raise ConversionError(f"a kernel {kernel!r} has no form in ONNX, only {', '.join(KERNELS)} have.")
    return {
        "kernel_type": model.kernel.upper(),
        "kernel_params": [float(model._gamma), float(model.coef0), float(model.degree)],
        "support_vectors": _flat(model.support_vectors_),
    }


def _classifier_attributes(svc: Any) -> dict[str, Any]:
    """Return the attributes without calibration; of two classes the operator scores the first one."""
    sign = -1 if len(svc.classes_) == 2 else 1
    labels: dict[str, list]
    if svc.classes_.dtype.kind in "OUS":
        labels = {"classlabels_strings": [str(c) for c in svc.classes_]}
    else:
        labels = {"classlabels_ints": [int(c) for c in svc.classes_]}
    return {
        "coefficients": _flat(sign * svc.dual_coef_),
        "rho": _flat(sign * svc.intercept_),
        "vectors_per_class": svc.n_support_.tolist(),
        **_kernel_attributes(svc),
        **labels,
    }


def _calibration(svc: Any) -> dict[str, Any]:
    return {"prob_a": _flat(svc.probA_), "prob_b": _flat(svc.probB_)}


def _flat(array: Any) -> list[float]:
    dense = array.toarray() if issparse(array) else np.asarray(array)
    return dense.astype(np.float32).ravel().tolist()


def _class_table(classes: np.ndarray) -> np.ndarray:
    return classes.astype(object) if classes.dtype.kind in "OUS" else classes.astype(np.int64)


def _float_type(variable: Any) -> int:
    is_double = type(variable.type).__name__.startswith("Double")
    return TensorProto.DOUBLE if is_double else TensorProto.FLOAT


def votes_and_confidences(
    op: GraphBuilder, pairs: str, n_classes: int, elem_type: int = TensorProto.FLOAT
) -> str:
    """Return ``votes + s / (3 (|s| + 1))``, s the sum of the scores of a class in its pairs.

    As in ``_ovr_decision_function`` of scikit-learn; a pair is lost below zero.
    """
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    zero, half, one, three, rest = (np.array(x, dtype) for x in (0, 0.5, 1, 3, n_classes - 1))
    table = pair_table(n_classes)
    lost = op.Cast(op.Less(pairs, zero), to=TensorProto.INT32)
    signs = op.Sub(np.array(1, dtype=np.int32), op.Add(lost, lost))
    balance = op.Cast(op.MatMul(signs, table), to=elem_type)
    votes = op.Mul(op.Add(balance, rest), half)
    sums = op.MatMul(pairs, op.Cast(table, to=elem_type))
    return op.Add(votes, op.Div(sums, op.Mul(op.Add(op.Abs(sums), one), three)))
