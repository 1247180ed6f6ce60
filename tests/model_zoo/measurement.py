"""Facts of a case, each with a reason if it does not hold."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from ortlearn.conversion import explain
from ortlearn.differentiation import ort_backend
from ortlearn.exceptions import GradientError, NoTrainableWeightError, OrtlearnError
from ortlearn.models import all_covered
from tests.model_zoo.case import Case
from tests.model_zoo.convert import convert
from tests.model_zoo.data import load
from tests.model_zoo.in_float64 import in_float64
from tests.model_zoo.learned import learned_attributes
from tests.model_zoo.predictions import LARGE, difference, predictions, run_file, same_outputs
from tests.model_zoo.slopes import Slopes, gradient_errors, gradients_at, measure_slopes
from tests.model_zoo.training import DISTANCES, Posed, messages, perturbed, pose, train_from, untouched
from tests.model_zoo.written import written_back

__all__ = ["Fact", "Measurement", "TOLERANCES", "plainly", "say"]

#: Largest error of a gradient that counts as correct: computed in float32, and in float64.
TOLERANCES = {"float32": 1e-2, "float64": 1e-5}
#: Largest difference between our predictions and those of the exported file.
SAME = 1e-5
#: Largest relative difference between the losses of two ways to train.
SAME_LOSS = 1e-3
EPOCHS = 6
#: The share of the objective that a step should take off, tried in turn.
SHARES = (0.05, 0.005, 0.0005, 5e-5, 5e-6)

Fact = dict[str, Any]


class Measurement:
    """The facts of a case.

    Parameters
    ----------
    case : Case
        What to measure.
    """

    def __init__(self, case: Case):
        self.case = case
        self.rows = load(case.data)
        self.model: Any = None
        self.graph: Any = None
        self.posed: Posed | None = None
        self.point: dict[str, np.ndarray] = {}
        self.slopes: Slopes | None = None
        self.target: Any = None
        self.trained: dict[str, Any] = {}
        self.rates: dict[str, float] = {}

    def fits(self) -> Fact:
        """Fit with scikit-learn."""
        X, y = self.rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model = self.case.make().fit(X, y)
        return {"ok": True}

    def converts(self) -> Fact:
        """Convert with skl2onnx alone, and compare with scikit-learn."""
        self.graph = convert(self.model, self.rows.X)
        fact: Fact = {"ok": True, "operators": sorted({node.op_type for node in self.graph.graph.node})}
        try:
            found = predictions(self.model, self.rows.X)
            fact["difference"] = same_outputs(found, run_file(self.graph, self.rows.X))
        except Exception as error:
            fact["difference"] = None
            fact["reason"] = say(error)
        return fact

    def learned(self) -> Fact:
        """Find the learned attributes that the graph holds."""
        found = learned_attributes(self.model, self.graph)
        return {"ok": bool(found), "attributes": found[:8], "count": len(found)}

    def poses(self) -> Fact:
        """Find out what our estimator would train."""
        error: Exception | None = None
        for name, target in self._targets():
            try:
                self.posed = pose(self.model, self.rows.X, target)
            except (OrtlearnError, ValueError) as failed:
                error = error or failed
                continue
            self.target = target
            return {
                "ok": True,
                "target": name,
                "weights": list(self.posed.weights),
                "loss": type(self.posed.task.objective.loss).__name__,
                "warnings": self.posed.messages,
            }
        assert error is not None
        fact = {"ok": False, "reason": say(error), **plainly(error)}
        if isinstance(error, NoTrainableWeightError):
            rows = explain(self.model, self.rows.X, self.rows.y).rows
            fact["explained"] = next((row.reason for row in rows if row.advice), "")
            fact["covered"] = all_covered(self.model)
        return fact

    def _targets(self) -> Iterator[tuple[str, Any]]:
        """Yield what the model may be trained on: y, nothing, or what the model itself gives."""
        X, y = self.rows
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
        """Compare the gradient of our own rules with finite differences."""
        self._move_away()
        return self._gradient("rules")

    def gradient_ort(self) -> Fact:
        """Compare the gradient of onnxruntime-training with finite differences."""
        if not ort_backend.is_available():
            return {"ok": None, "reason": "onnxruntime-training is not installed"}
        return self._gradient("ort")

    def _move_away(self) -> None:
        """Move the weights away from where scikit-learn left them, as far as the objective stays finite."""
        assert self.posed is not None
        for distance in DISTANCES:
            self.point = perturbed(self.posed.weights, distance)
            slopes = measure_slopes(self.posed.objective, self.posed.columns, self.point)
            if np.isfinite(slopes.value):
                self.slopes = slopes
                return
        raise ArithmeticError("The objective is not finite near the fitted weights.")

    def _gradient(self, backend: str) -> Fact:
        posed, slopes = self.posed, self.slopes
        if posed is None or slopes is None:
            return {"ok": False, "reason": "There are no slopes to compare with."}
        try:
            found = gradients_at(posed.objective, posed.output, posed.columns, self.point, backend)
        except GradientError as error:
            return {"ok": False, "reason": say(error), "plain": True}
        endless = [name for name, gradient in found.items() if not np.isfinite(gradient).all()]
        if endless:  # training stops there, and says so
            return {"ok": False, "reason": f"the gradient of {endless} is not finite", "plain": True}
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
        """Return the errors of the gradient in float64; nothing where no runtime has the kernels."""
        posed = self.posed
        assert posed is not None
        columns, point = _doubles(posed.columns), _doubles(self.point)
        try:
            found = gradients_at(in_float64(posed.objective), posed.output, columns, point, backend)
            return gradient_errors(found, slopes)
        except Exception:  # onnxruntime raises errors of every kind
            return {}

    def forward(self) -> Fact:
        """Compare our estimator, its weights untouched, with scikit-learn."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ours = untouched(self.model, self.rows.X, self.target)
        expected = predictions(self.model, self.rows.X)
        gaps = {
            name: difference(values, expected[name])
            for name, values in predictions(ours, self.rows.X).items()
            if name in expected
        }
        scores = gaps.pop("decision_function", None)  # the trained scores: only their shape is compared
        if not gaps:
            return {"ok": False, "reason": "our estimator has no method to predict with", "plain": True}
        worst = max(gaps, key=lambda name: gaps[name])
        said = messages(caught)
        fact = {"ok": gaps[worst] <= LARGE, "difference": gaps[worst], "scores": scores, "warnings": said}
        if not fact["ok"]:
            fact.update(reason=f"{worst} differs from scikit-learn's by {gaps[worst]:.2g}")
            fact.update({"plain": True} if said else {})
        return fact

    def falls_rules(self) -> Fact:
        """Train a few steps with our own rules: the loss must fall."""
        return self._falls("rules")

    def falls_ort(self) -> Fact:
        """Train a few steps with the gradient of onnxruntime-training: the loss must fall."""
        if not ort_backend.is_available():
            return {"ok": None, "reason": "onnxruntime-training is not installed"}
        return self._falls("ort")

    def _falls(self, gradient: str) -> Fact:
        losses: list[float] = []
        for share in SHARES:
            rate = self._rate(share)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    ours = train_from(
                        self.model, self.rows.X, self.target, self.point, rate, EPOCHS, gradient
                    )
                except ArithmeticError:
                    continue
            losses = ours.train_losses_
            if losses[-1] < losses[0]:
                self.trained[gradient], self.rates[gradient] = ours, rate
                origins = ours.weights_to_train_
                return {
                    "ok": True,
                    "losses": [losses[0], losses[-1]],
                    "origins": sorted(set(origins.values())),
                    "unknown": [name for name, origin in origins.items() if not origin],
                }
        return {"ok": False, "reason": f"the loss does not fall: {losses}"}

    def two_calls(self) -> Fact:
        """Train the same with forward and backward apart: the losses must be the same."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = train_from(
                self.model,
                self.rows.X,
                self.target,
                self.point,
                self.rates["rules"],
                EPOCHS,
                "auto",
                apart=True,
            )
        expected = self.trained["rules"].train_losses_
        if np.allclose(ours.train_losses_, expected, rtol=SAME_LOSS):
            return {"ok": True}
        return {"ok": False, "reason": f"losses {ours.train_losses_}, in one graph they are {expected}"}

    def _rate(self, share: float) -> float:
        """Return the rate at which a step would take a share off the objective, were it a plane."""
        posed, slopes = self.posed, self.slopes
        assert posed is not None and slopes is not None
        gradients = gradients_at(posed.objective, posed.output, posed.columns, self.point, "rules").values()
        total = sum(float(np.sum(np.square(g, dtype=np.float64))) for g in gradients)
        return share * max(abs(slopes.value), 1e-3) / max(total, 1e-30)

    def exported(self) -> Fact:
        """Compare our estimator after training with the file it exports."""
        ours = self.trained.get("rules") or self.trained.get("ort")
        if ours is None:
            return {"ok": None, "reason": "nothing was trained"}
        trainable = ours._fitted.problem.trainable
        steps = trainable.entry.front  # run in scikit-learn
        X = self.rows.X if steps is None else steps.transform(self.rows.X)
        found = predictions(ours, self.rows.X)
        if trainable.head.transformed is None:  # transform is then to_sklearn's
            found.pop("transform", None)
        gap = same_outputs(found, run_file(ours.onnx_, X))
        if gap <= SAME:
            return {"ok": True, "difference": gap}
        return {"ok": False, "reason": f"the exported file predicts otherwise, by {gap:.2g}"}

    def written(self) -> Fact:
        """Compare our estimator after training with the scikit-learn model it gives back."""
        ours = self.trained.get("rules") or self.trained.get("ort")
        return (
            {"ok": None, "reason": "nothing was trained"} if ours is None else written_back(ours, self.rows.X)
        )


def _doubles(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in arrays.items()}


def say(error: Exception) -> str:
    """Return the kind of an error and its first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:600]


def plainly(error: Exception) -> Fact:
    """Return whether an error is one of ortlearn with advice."""
    return {"plain": True} if isinstance(error, OrtlearnError | ValueError) else {}
