"""The differentiated output of a model, with the values and the shape that its method returns."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from ..differentiation.reach import gradient_reach
from ..exceptions import GradientError, limit_address
from ..graphs import (
    GraphBuilder,
    append_nodes,
    graph_names,
    make_value_info,
    opset_versions,
    prune,
    value_types,
)
from ..graphs.arithmetic import softplus
from ..graphs.editing import with_fields
from ..graphs.patterns import PatternView
from ..models import Scores
from ..models.trees.nodes import FusedTrees
from ..onnx_files.running_statistics import for_evaluation
from ..preprocessing.estimator_checks import is_trainer, last_step
from ..quiet import quiet
from .sources import Source

__all__ = ["METHODS", "check_is_smooth", "with_output"]

METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "score_samples")
RAW = "raw_score"
#: Probabilities of two classes.
PAIR = ("Concat", ("Sub", 1, ("Sigmoid", "z")), ("Sigmoid", "z"))


def with_output(source: Source, output: str) -> ModelProto:
    """Return the graph with one output: a method's result, the raw scores, or an output of the file."""
    model = for_evaluation(source.model)
    types, names = value_types(model), graph_names(model.graph)
    of_file = {value.name: value for value in model.graph.output}
    dtype = source.schema.float_dtype if source.scores is None else source.scores.dtype
    op = GraphBuilder(
        opset_versions(model)[""], dtype=dtype, existing_names=names, types=types, prefix="function_"
    )
    if source.estimator is None and output in of_file:
        return prune(with_fields(model, output=[of_file[output]]))
    elif output in (*METHODS, RAW):
        tensor = _Outputs(op, source, PatternView(model, types)).tensor(output)
    else:
        raise ValueError(
            f"output={output!r} is unknown: use one of {[*METHODS, RAW]}, or of an ONNX file the name of an "
            f"output, {list(of_file)}."
        )
    name = output if op.claim(output) else op.unique(output)
    op.node("Identity", tensor, outputs=[name])
    info = make_value_info(name, op.type(tensor))
    return prune(append_nodes(model, op, outputs=[info]))


class _Outputs:
    """Writes the result of each method."""

    def __init__(self, op: GraphBuilder, source: Source, view: PatternView):
        self.op, self.source, self.view = op, source, view

    def tensor(self, output: str) -> str:
        """Append the nodes of an output, and return its tensor."""
        source, scores = self.source, self.source.scores
        method = "predict_proba" if output == "predict_log_proba" else output
        if source.estimator is not None and output != RAW and not hasattr(source.estimator, output):
            raise ValueError(f"{source.name} has no {output}: use one of {self._available()}.")
        if scores is None:
            raise ValueError(f"The graph of {source.name} has no {output}: pass the name of an output.")
        found = scores.score if method == RAW else getattr(self, f"_{method}")(scores)
        if not found:
            raise GradientError(
                f"The graph of {source.name} does not compute {output}: use one of {self._available(output)}."
            )
        return self._logarithms(found) if output == "predict_log_proba" else found

    def _logarithms(self, shares: str) -> str:
        """Append logarithms of probabilities, of scores if possible: small probabilities become zero."""
        op, softmax, pair = self.op, self.view.match(shares, ("Softmax", "z")), self.view.match(shares, PAIR)
        if softmax is not None:
            return self._typed(op.LogSoftmax(softmax["z"], axis=1), shares, 2)
        if pair is not None:  # log(sigmoid(z)) = -softplus(-z)
            columns = softplus(op, pair["z"]), softplus(op, op.Neg(pair["z"]))
            return self._typed(op.Neg(op.Concat(*columns, axis=1)), shares, 2)
        return self._typed(op.Log(shares), shares, 2)

    def _available(self, without: str = "predict_log_proba") -> list[str]:
        source = self.source
        has = {"predict_proba": "probabilities", "decision_function": "decided", "transform": "transformed"}
        if source.estimator is not None:
            found = [name for name in METHODS if hasattr(source.estimator, name)]
        else:  # an ONNX file
            found = [name for name, tensor in has.items() if getattr(source.scores, tensor, None)]
        return [name for name in (*found, RAW) if name != without]

    def _typed(self, name: str, like: str, rank: int) -> str:
        known = self.op.type(like)
        elem_type = TensorProto.FLOAT if known is None else known.elem_type
        return self.op.set_type(name, elem_type, (None,) * rank)

    def _flat(self, name: str) -> str:
        return self._typed(self.op.Reshape(name, [-1]), name, 1)

    def _width(self, name: str) -> int | None:
        shape = self.op.shape(name)
        return shape[1] if shape is not None and len(shape) == 2 and isinstance(shape[1], int) else None

    def _predict(self, scores: Scores) -> str:
        if scores.label is not None or scores.task in ("classification", "multilabel"):
            raise GradientError(
                f"predict of {self.source.name} is piecewise constant, since it returns classes or "
                f"indices: differentiate one of {self._available('predict')}."
                f"{limit_address('outputs-without-derivative')}"
            )
        found = scores.predicted
        rank = len(self.op.shape(found) or (None, None))
        if scores.n_outputs == 1 and rank == 2 and not self._predicts_columns():
            return self._flat(found)
        return found

    def _predicts_columns(self) -> bool:
        """Return whether a regressor with one output predicts a column."""
        if self.source.y_ndim is not None:
            return self.source.y_ndim > 1
        shape: tuple[int, ...] = ()
        with suppress(Exception), quiet():
            shape = self.source.estimator.predict(np.zeros((1, self.source.schema.n_features or 1))).shape
        return len(shape) > 1

    def _predict_proba(self, scores: Scores) -> str:
        op, shares = self.op, scores.probabilities
        if not shares:
            return ""
        if isinstance(shares, tuple):
            return self._typed(op.Concat(*shares, axis=1), shares[0], 2)
        if scores.label is None and shares == scores.score:  # the output of a file has raw scores
            shares = op.Sigmoid(shares) if scores.n_outputs == 1 else op.Softmax(shares, axis=1)
            self._typed(shares, scores.score, 2)
        if scores.task == "classification" and scores.positions is None and self._width(shares) == 1:
            rest = op.Sub(op.constant(1.0, op.dtype(shares)), shares)
            return self._typed(op.Concat(rest, shares, axis=1), shares, 2)
        return shares

    def _decision_function(self, scores: Scores) -> str:
        decided = scores.decided
        if not decided or scores.positions is not None:
            return decided
        width, classes = self._width(decided) or scores.n_outputs, self.source.classes
        if width == 1:
            return self._flat(decided)
        if width == 2 and classes is not None and not isinstance(classes, list) and len(classes) == 2:
            if scores.task == "classification":
                parts = [self.op.Gather(decided, index, axis=1) for index in (1, 0)]
                return self._typed(self.op.Sub(*parts), decided, 1)
        return decided

    def _transform(self, scores: Scores) -> str:
        return scores.transformed or ""

    def _score_samples(self, scores: Scores) -> str:
        if scores.likelihood is not None:
            return self._flat(scores.likelihood)
        model = self.source.estimator
        model = model.to_sklearn() if is_trainer(model) else model
        offset = getattr(last_step(model) or model, "offset_", None)
        if offset is None or not scores.decided:
            return ""
        decided = self._flat(scores.decided)
        return self._typed(
            self.op.Add(decided, self.op.constant(np.asarray(offset).ravel(), self.op.dtype(decided))),
            decided,
            1,
        )


def check_is_smooth(source: Source, model: ModelProto, output: str, wrt: Any) -> list[str]:
    """Return the inputs that a gradient reaches; raise a GradientError if there is none."""
    needed, blockers = gradient_reach(model, model.graph.output[0].name)
    reached = [name for name in wrt if name in needed]
    if reached:
        return reached
    trees = any(isinstance(form, FusedTrees) for form in source.fused)
    if trees:
        advice = (
            "ortlearn.inspection.integrated_gradients gives exact attributions of its jumps, and "
            "differentiable(model, smooth=width) differentiates a function with smoothed thresholds."
        )
    else:
        advice = "differentiate another output, or the model after its steps that bin, rank or vote."
    operators = ", ".join(dict.fromkeys(node.op_type for node in blockers)) or "no operator"
    raise GradientError(
        f"{output} of {source.name} is piecewise constant: its gradient is zero wherever it exists (X is "
        f"read only through {operators}). Instead, {advice}{limit_address('outputs-without-derivative')}"
    )
