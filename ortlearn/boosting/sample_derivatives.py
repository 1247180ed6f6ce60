"""Derivatives of losses whose graphs are read sample by sample: few nodes, and results written in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

import numpy as np
from onnx import ModelProto, helper

from ..differentiation.gradient_model import gradient_model
from ..differentiation.stable_softplus import with_softplus
from ..graphs import TensorType, make_value_info, prune
from ..graphs.editing import with_fields
from ..runtime.calls import ArrayCall
from ..runtime.devices import Device
from ..runtime.sessions import make_session
from .algebra import Form
from .sample_graphs import RUNTIME_RULES, SampleGraph, Values

__all__ = ["LARGEST_STEP", "NEAREST", "SampleDerivatives"]

#: Bytes of the scores of one call, whose intermediate results stay in the cache of the processor.
BLOCK = 262144
#: Most nodes without intermediate results to keep there, and the factor of the size of their blocks.
FEW_NODES, LARGER = 2, 8
#: Most samples of a call that allocates its results, which starts faster.
FEW_SAMPLES = 4096
#: Smallest distance of a score from a label in the slope of a secant, relative to the mean distance.
NEAREST = 0.1
#: Largest step of scores that are no predictions, such as those of classes.
LARGEST_STEP = 10.0
LARGEST, TOTAL, OUTPUT = "ortlearn_largest", "ortlearn_total", "ortlearn_output_{}"
#: Name of labels, after those of scores: differences begin with scores.
TARGET = "ortlearn_target"


class SampleDerivatives:
    """Runs the graphs of a loss, its gradient, and its second derivative or curvature.

    The graph of the losses, its only output, reads labels and scores. Scores that predict no labels take
    steps of at most ``largest_step``; ``predicts_labels`` says whether they do, and whether they may. Other
    operators, such as sums over samples, raise UnreadGraphError.
    """

    def __init__(
        self,
        losses: ModelProto,
        n_scores: int,
        dtype: Any,
        predicts_labels: tuple[bool, bool],
        largest_step: float,
        n_jobs: int | None,
    ):
        self.dtype, self._n_jobs = np.dtype(dtype), n_jobs
        label, score = (value.name for value in losses.graph.input)
        is_matrix = len(losses.graph.input[0].type.tensor_type.shape.dim) > 1
        self.labels = [f"{TARGET}_{column}" for column in range(n_scores if is_matrix else 1)]
        self.scores = [f"{score}_{column}" for column in range(n_scores)]
        (self._mirrors, self._may_mirror), self._largest_step = predicts_labels, largest_step
        self._graph = SampleGraph(dtype, (*self.labels, *self.scores), LARGEST if n_scores > 1 else "")
        values = {label: _forms(self.labels), score: _forms(self.scores)}
        (found,) = self._graph.read(with_softplus(losses), values).values()
        (self._losses,) = found
        self._compiled: dict[str, tuple[Any, list[str], list[Form], int]] = {}

    def run(self, kind: str, labels: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
        """Return ``"losses"``, ``"gradient"``, or gradient and ``"hessian"`` or ``"curvature"``."""
        n, width = scores.shape
        if kind == "losses":
            found = [np.empty((n, 1), self.dtype)]
        else:
            found = [np.empty_like(scores, self.dtype) for _ in range(1 + (kind != "gradient"))]
        labels = labels.reshape(n, -1)
        sources = {name: labels[:, column] for column, name in enumerate(self.labels)}
        sources |= {name: scores[:, column] for column, name in enumerate(self.scores)}
        results = [array[:, column] for array in found for column in range(array.shape[1])]
        tried = "hessian" if kind == "curvature" and not self._limits_steps else kind
        call, size = self._call(tried, sources, results)
        start = 0
        while start < n:
            stop = min(start + size, n)
            if call is not None:
                call(start, stop)
            if tried != kind and not all(array[start:stop].min() > 0 for array in results[width:]):
                tried = kind
                call, size = self._call(tried, sources, results)
                continue
            start = stop
        return found if kind != "losses" else [found[0][:, 0]]

    def _call(
        self, kind: str, sources: Mapping[str, np.ndarray], results: list[np.ndarray]
    ) -> tuple[Callable[[int, int], None] | None, int]:
        """Return the call of a graph and the number of samples of a block, and write constant results."""
        if kind not in self._compiled:
            self._compiled[kind] = self._compile(kind)
        session, names, forms, factor = self._compiled[kind]
        targets = {}
        for number, (form, result) in enumerate(zip(forms, results, strict=True)):
            if form.terms:
                targets[OUTPUT.format(number)] = result
            else:
                result[...] = form.constant
        size = min(len(results[0]), max(factor * BLOCK // (self.dtype.itemsize * len(self.scores)), 1))
        if session is None:
            return None, size
        inputs = {name: sources[name] for name in names}
        if len(results[0]) <= FEW_SAMPLES:
            return partial(_run_whole, session, inputs, targets, self.dtype), len(results[0])
        return ArrayCall(session, inputs, targets, self.dtype, size), size

    def _compile(self, kind: str) -> tuple[Any, list[str], list[Form], int]:
        """Return a session (None if results are constants), inputs, results, and the factor of blocks."""
        forms = {
            "losses": lambda: [self._losses],
            "gradient": lambda: self._firsts,
            "hessian": lambda: [*self._firsts, *self._seconds],
            "curvature": lambda: [*self._firsts, *self.curvatures],
        }[kind]()
        named = {OUTPUT.format(number): form for number, form in enumerate(forms) if form.terms}
        if not named:
            return None, [], forms, LARGER
        final = SampleGraph(self.dtype, self._graph.inputs, self._graph.largest, RUNTIME_RULES)
        values = {name: _forms([name]) for name in (*final.inputs, final.largest)}
        results = final.read(self._graph.model(named), values)
        model = final.model({name: form for name, (form,) in results.items()})
        if any(LARGEST in node.input for node in model.graph.node):
            first = helper.make_node("Max", self.scores, [LARGEST])
            model = with_fields(model, node=[first, *model.graph.node])
        read = {name for node in model.graph.node for name in node.input}
        inputs = [value for value in model.graph.input if value.name in read and value.name != LARGEST]
        session = make_session(with_fields(model, input=inputs), Device("cpu"), self._n_jobs)
        names = [value.name for value in inputs]
        return session, names, forms, LARGER if len(model.graph.node) <= FEW_NODES else 1

    @cached_property
    def _firsts(self) -> list[Form]:
        """The gradient, by score."""
        return self._derivatives(self._losses, self.scores)

    @cached_property
    def _seconds(self) -> list[Form]:
        """The diagonal of the Hessian, by score."""
        pairs = zip(self._firsts, self.scores, strict=True)
        return [self._derivatives(first, [score])[0] for first, score in pairs]

    @cached_property
    def curvatures(self) -> list[Form]:
        """The second derivative where it is positive, and a slope elsewhere, by score."""
        algebra = self._graph.algebra
        if self._mirrors:
            slopes = [algebra.divide(algebra.result("Abs", self._rise()), self._distance())]
        else:
            slopes = [algebra.result("Abs", first).scaled(1 / self._largest_step) for first in self._firsts]
            slopes = [self._not_below_mean(slope) for slope in slopes]
        found = []
        for second, slope in zip(self._seconds, slopes, strict=True):
            positive = algebra.is_positive(second)
            # A secant's slope is a mean of second derivatives, not above those that are not zero and equal.
            if self._mirrors and second.terms and algebra.split(second)[1] == positive:
                found.append(algebra.result("Max", second, slope))
                continue
            rest = algebra.multiply(algebra.add(Form((), 1.0), positive.scaled(-1)), slope)
            found.append(algebra.add(algebra.multiply(positive, second), rest))
        if not self._limits_steps:
            return found
        least = algebra.divide(algebra.result("Abs", self._firsts[0]), self._distance().scaled(2))
        return [algebra.result("Max", *found, least)]

    @cached_property
    def _limits_steps(self) -> bool:
        """Whether second derivatives may be so small that a step ends beyond the mirror image of a score."""
        if not self._may_mirror or not self._seconds[0].terms:
            return False
        algebra, (second,) = self._graph.algebra, self._seconds
        return algebra.split(second)[1] != algebra.is_positive(second)

    def _distance(self) -> Form:
        """Return the distance between label and score, at least a share of its mean."""
        algebra, (label,), (score,) = self._graph.algebra, self.labels, self.scores
        distance = algebra.result("Abs", Form(tuple(sorted([(label, 1.0), (score, -1.0)]))))
        return self._not_below_mean(distance, float(np.finfo(np.float32).tiny))

    def _not_below_mean(self, form: Form, least: float = 0.0) -> Form:
        """Return the larger of a form and a share of its mean, to which a number is added."""
        algebra = self._graph.algebra
        mean = Form(((algebra.node("ReduceMean", algebra.tensor(form), keepdims=0), NEAREST),), least)
        return algebra.result("Max", form, mean)

    def _rise(self) -> Form:
        """Return half of the rise of the gradient between a score and its mirror image."""
        (label,), (score,) = self.labels, self.scores
        mirrored = Form(tuple(sorted([(label, 2.0), (score, -1.0)])))
        other = self._derivatives(self._losses, [score], {score: (mirrored,)})[0]
        return self._graph.algebra.add(self._firsts[0], other.scaled(-1)).scaled(0.5)

    def _derivatives(
        self, form: Form, scores: list[str], values: Mapping[str, Values] | None = None
    ) -> list[Form]:
        """Return the derivatives of a form by scores, also for other values of them."""
        if not form.terms:
            return [Form()] * len(scores)
        model = self._graph.model({"ortlearn_losses": form})
        nodes = [*model.graph.node, helper.make_node("ReduceSum", ["ortlearn_losses"], [TOTAL], keepdims=0)]
        total = make_value_info(TOTAL, TensorType(helper.np_dtype_to_tensor_dtype(self.dtype), ()))
        model = with_fields(model, node=nodes, output=[total])
        model = gradient_model(model, TOTAL, scores, keep_outputs=False)
        given = {value.name: _forms([value.name]) for value in model.graph.input}
        return [found for (found,) in self._graph.read(prune(model), {**given, **(values or {})}).values()]


def _run_whole(
    session: Any, inputs: Mapping[str, np.ndarray], results: Mapping[str, np.ndarray], dtype: Any, *_: int
) -> None:
    """Run a session once, and write its results."""
    feeds = {name: np.ascontiguousarray(array, dtype) for name, array in inputs.items()}
    for target, result in zip(results.values(), session.run(None, feeds), strict=True):
        target[...] = result


def _forms(names: list[str]) -> Values:
    """Return tensors as forms."""
    return tuple(Form(((name, 1.0),)) for name in names)
