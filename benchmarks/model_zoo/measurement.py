"""Facts of a case, each with a reason if it is false."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.model_zoo.case import Case
from benchmarks.model_zoo.convert import convert
from benchmarks.model_zoo.data import load
from benchmarks.model_zoo.defaults import trains_with_defaults
from benchmarks.model_zoo.in_float64 import in_float64
from benchmarks.model_zoo.learned import learned_attributes
from benchmarks.model_zoo.predictions import LARGE, difference, predictions, run_file, same_outputs
from benchmarks.model_zoo.slopes import Slopes, gradient_errors, gradients_at, measure_slopes
from benchmarks.model_zoo.training import (
    DISTANCES,
    Prepared,
    messages,
    perturbed,
    prepare,
    train_from,
    with_own_weights,
)
from benchmarks.model_zoo.written import written_back
from ortlearn.differentiation import cpp_builder
from ortlearn.exceptions import GradientError, NoTrainableWeightError, OrtlearnError
from ortlearn.models import all_covered
from ortlearn.trainable.explanation import explain

__all__ = ["Fact", "Measurement", "TOLERANCES", "if_explained", "first_line"]

#: Largest error of a gradient that counts as correct: computed in float32, and in float64.
TOLERANCES = {"float32": 1e-2, "float64": 1e-5}
#: Largest difference between our predictions and those of the exported file.
SAME = 1e-5
#: Largest relative difference between the losses of two ways to train.
SAME_LOSS = 1e-3
EPOCHS = 6
#: Relative decreases of the objective for which learning rates are chosen, in the order they are tried.
SHARES = (0.05, 0.005, 0.0005, 5e-5, 5e-6)

Fact = dict[str, Any]


class Measurement:
    """The facts of a case.

    Parameters
    ----------
    case : Case
        Model and data.
    """

    def __init__(self, case: Case):
        self.case = case
        self.samples = load(case.data)
        self.model: Any = None
        self.graph: Any = None
        self.prepared: Prepared | None = None
        self.point: dict[str, np.ndarray] = {}
        self.slopes: Slopes | None = None
        self.target: Any = None
        self.trained: dict[str, Any] = {}
        self.rates: dict[str, float] = {}

    def fits(self) -> Fact:
        """Fit with scikit-learn."""
        X, y = self.samples
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model = self.case.make().fit(X, y)
        return {"ok": True}

    def converts(self) -> Fact:
        """Convert with skl2onnx alone, and compare with scikit-learn."""
        self.graph = convert(self.model, self.samples.X)
        fact: Fact = {"ok": True, "operators": sorted({node.op_type for node in self.graph.graph.node})}
        try:
            found = predictions(self.model, self.samples.X)
            fact["difference"] = same_outputs(found, run_file(self.graph, self.samples.X))
        except Exception as error:
            fact["difference"] = None
            fact["reason"] = first_line(error)
        return fact

    def learned(self) -> Fact:
        """Find the learned attributes in the graph."""
        found = learned_attributes(self.model, self.graph)
        return {"ok": bool(found), "attributes": found[:8], "count": len(found)}

    def defaults(self) -> Fact:
        """Train the estimator with default parameters only."""
        if self.case.make_default is None:
            return {"ok": None, "reason": "it is not the main case of its estimator"}
        plain = Measurement(replace(self.case, make=self.case.make_default))
        plain.fits()
        prepared = plain.prepares()
        if not prepared["ok"]:
            return {**prepared, "ok": None if "plain" in prepared else False}
        return trains_with_defaults(self.case.make_default(), plain.model, self.samples.X, plain.target)

    def prepares(self) -> Fact:
        """Convert, and select the weights to train."""
        error: Exception | None = None
        for name, target in self._targets():
            try:
                self.prepared = prepare(self.model, self.samples.X, target)
            except (OrtlearnError, ValueError) as failed:
                error = error or failed
                continue
            self.target = target
            return {
                "ok": True,
                "target": name,
                "weights": list(self.prepared.weights),
                "loss": type(self.prepared.task.objective.loss).__name__,
                "warnings": self.prepared.messages,
            }
        assert error is not None
        fact = {"ok": False, "reason": first_line(error), **if_explained(error)}
        if isinstance(error, NoTrainableWeightError):
            rows = explain(self.model, self.samples.X, self.samples.y).rows
            fact["explained"] = next((row.reason for row in rows if row.advice), "")
            fact["covered"] = all_covered(self.model)
        return fact

    def _targets(self) -> Iterator[tuple[str, Any]]:
        """Yield the possible targets: y, none, or outputs of the fitted model."""
        X, y = self.samples
        labelled = self.case.kind in ("classifier", "regressor")
        if labelled or (self.case.kind == "pipeline" and hasattr(self.model, "predict")):
            yield "y", y
        if labelled:
            return
        if not any(hasattr(self.model, name) for name in ("transform", "kneighbors")) or self.case.kind in (
            "clusterer",
            "density",
        ):
            yield "nothing", None
        if self.case.kind == "outliers":
            yield "inliers and outliers", np.where(np.arange(len(X)) % 7 == 0, -1, self.model.predict(X))
        if hasattr(self.model, "transform"):
            values = self.model.transform(X)
            yield "its output", np.asarray(values.toarray() if hasattr(values, "toarray") else values)
        elif hasattr(self.model, "kneighbors"):
            yield "its distances", self.model.kneighbors(X)[0]

    def gradient_rules(self) -> Fact:
        """Compare the gradient by the rules of ortlearn with finite differences."""
        self._move_away()
        return self._gradient("rules")

    def gradient_ort(self) -> Fact:
        """Compare the gradient of onnxruntime-training with finite differences."""
        if not cpp_builder.is_available():
            return {"ok": None, "reason": "onnxruntime-training is not installed"}
        return self._gradient("ort")

    def _move_away(self) -> None:
        """Perturb the fitted weights by the largest distance with a finite objective."""
        assert self.prepared is not None
        for distance in DISTANCES:
            self.point = perturbed(self.prepared.weights, distance)
            slopes = measure_slopes(self.prepared.objective, self.prepared.columns, self.point)
            if np.isfinite(slopes.value):
                self.slopes = slopes
                return
        raise ArithmeticError("The objective is not finite near the fitted weights.")

    def _gradient(self, backend: str) -> Fact:
        prepared, slopes = self.prepared, self.slopes
        if prepared is None or slopes is None:
            return {"ok": False, "reason": "there are no finite differences to compare with"}
        try:
            found = gradients_at(prepared.objective, prepared.output, prepared.columns, self.point, backend)
        except GradientError as error:
            return {"ok": False, "reason": first_line(error), "plain": True}
        not_finite = [name for name, gradient in found.items() if not np.isfinite(gradient).all()]
        if not_finite:  # training raises an error
            return {"ok": False, "reason": f"the gradient of {not_finite} is not finite", "plain": True}
        errors = {"float32": gradient_errors(found, slopes), "float64": self._exact_errors(backend, slopes)}
        wrong = {
            f"{name} ({kind})": error
            for kind, own in errors.items()
            for name, error in own.items()
            if not error <= TOLERANCES[kind]
        }
        fact: Fact = {
            "ok": not wrong,
            "largest": {k: max(v.values(), default=None) for k, v in errors.items()},
        }
        if wrong:
            worst = max(wrong, key=lambda name: wrong[name])
            fact.update(reason=f"gradient of {worst} is off by {wrong[worst]:.2g}", wrong=sorted(wrong))
        elif not slopes.found or not any(slope for *_, slope, _ in slopes.found):
            fact.update(ok=False, reason="the objective does not change with any weight")
        fact["idle"] = [name for name, gradient in found.items() if not gradient.any()]
        fact["kinks"] = slopes.kinks
        return fact

    def _exact_errors(self, backend: str, slopes: Slopes) -> dict[str, float]:
        """Return the errors of the gradient in float64; none if kernels are missing."""
        prepared = self.prepared
        assert prepared is not None
        columns, point = _doubles(prepared.columns), _doubles(self.point)
        try:
            found = gradients_at(in_float64(prepared.objective), prepared.output, columns, point, backend)
            return gradient_errors(found, slopes)
        except Exception:  # onnxruntime raises errors of every kind
            return {}

    def forward(self) -> Fact:
        """Compare our estimator, with the weights of the model, with scikit-learn."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            trained = with_own_weights(self.model, self.samples.X, self.target)
        expected = predictions(self.model, self.samples.X)
        gaps = {
            name: difference(values, expected[name])
            for name, values in predictions(trained, self.samples.X).items()
            if name in expected
        }
        scores = gaps.pop("decision_function", None)  # the trained scores: only their shape is compared
        if not gaps:
            return {"ok": False, "reason": "the estimator has no method that predicts", "plain": True}
        worst = max(gaps, key=lambda name: gaps[name])
        issued = messages(caught)
        fact = {"ok": gaps[worst] <= LARGE, "difference": gaps[worst], "scores": scores, "warnings": issued}
        if not fact["ok"]:
            fact.update(reason=f"{worst} differs from scikit-learn's by {gaps[worst]:.2g}")
            fact.update({"plain": True} if issued else {})
        return fact

    def decreases_rules(self) -> Fact:
        """Train a few steps by the rules of ortlearn; the loss must decrease."""
        return self._decreases("rules")

    def decreases_ort(self) -> Fact:
        """Train a few steps by onnxruntime-training; the loss must decrease."""
        if not cpp_builder.is_available():
            return {"ok": None, "reason": "onnxruntime-training is not installed"}
        return self._decreases("ort")

    def _decreases(self, gradient: str) -> Fact:
        losses: list[float] = []
        for share in SHARES:
            rate = self._rate(share)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    trained = train_from(
                        self.model, self.samples.X, self.target, self.point, rate, EPOCHS, gradient
                    )
                except ArithmeticError:
                    continue
            losses = trained.train_losses_
            if losses[-1] < losses[0]:
                self.trained[gradient], self.rates[gradient] = trained, rate
                origins = trained.weights_to_train_
                return {
                    "ok": True,
                    "losses": [losses[0], losses[-1]],
                    "origins": sorted(set(origins.values())),
                    "unknown": [name for name, origin in origins.items() if not origin],
                }
        return {"ok": False, "reason": f"the loss does not decrease: {losses}"}

    def two_calls(self) -> Fact:
        """Train with two calls per batch; the losses must be the same."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trained = train_from(
                self.model,
                self.samples.X,
                self.target,
                self.point,
                self.rates["rules"],
                EPOCHS,
                "auto",
                two_calls=True,
            )
        expected = self.trained["rules"].train_losses_
        if np.allclose(trained.train_losses_, expected, rtol=SAME_LOSS):
            return {"ok": True}
        return {"ok": False, "reason": f"losses {trained.train_losses_}, in one graph they are {expected}"}

    def _rate(self, share: float) -> float:
        """Return the rate for which a step decreases the objective by a share, to first order."""
        prepared, slopes = self.prepared, self.slopes
        assert prepared is not None and slopes is not None
        found = gradients_at(prepared.objective, prepared.output, prepared.columns, self.point, "rules")
        total = sum(float(np.sum(np.square(g, dtype=np.float64))) for g in found.values())
        return share * max(abs(slopes.value), 1e-3) / max(total, 1e-30)

    def exported(self) -> Fact:
        """Compare the trained estimator with the file that it exports."""
        trained = self.trained.get("rules") or self.trained.get("ort")
        if trained is None:
            return {"ok": None, "reason": "nothing was trained"}
        trainable = trained._fitted.problem.trainable
        steps = trainable.entry.sklearn_steps  # run in scikit-learn
        X = self.samples.X if steps is None else steps.transform(self.samples.X)
        found = predictions(trained, self.samples.X)
        if trainable.scores.transformed is None:  # transform is then to_sklearn's
            found.pop("transform", None)
        gap = same_outputs(found, run_file(trained.onnx_, X))
        if gap <= SAME:
            return {"ok": True, "difference": gap}
        return {"ok": False, "reason": f"predictions of the exported file differ by {gap:.2g}"}

    def written(self) -> Fact:
        """Compare the trained estimator with its ``to_sklearn()``."""
        trained = self.trained.get("rules") or self.trained.get("ort")
        if trained is None:
            return {"ok": None, "reason": "nothing was trained"}
        return written_back(trained, self.samples.X, self.target)


def _doubles(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in arrays.items()}


def first_line(error: Exception) -> str:
    """Return the class of an error and its first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:600]


def if_explained(error: Exception) -> Fact:
    """Return the fact that a user reads the reason, for errors of ortlearn."""
    return {"plain": True} if isinstance(error, OrtlearnError | ValueError) else {}
