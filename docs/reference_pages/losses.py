"""Losses: their labels in words, and the picture of a loss and its slope over the prediction."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from docs.reference_pages.pictures import Line, Panel, Picture
from docs.reference_pages.running import run, write_model
from ortlearn.differentiation import gradient_of_loss
from ortlearn.losses import BaseLoss, QuantilesLoss

__all__ = ["loss_facts", "loss_picture"]

LABELS = (-1.0, 0.0, 0.5, 1.0, 3.0)


def loss_facts(loss: BaseLoss) -> Iterator[str]:
    """Yield what a loss is for, in sentences."""
    if loss.tasks != {"regression"}:
        yield f"Tasks: {', '.join(sorted(loss.tasks))}."
    if "regression" in loss.tasks and (str(loss.domain), loss.link) != ("(-inf, inf)", "identity"):
        yield f"Regression: labels in `{loss.domain}`, link {loss.link}."
    if "classification" in loss.tasks:
        several = "one softmax" if loss.integer_labels else "one-vs-rest"
        yield f"More than two classes: {several}."
    if "unsupervised" in loss.tasks:
        yield "Also for models that are trained without labels."
    if loss.kinks:
        yield "Has kinks, which L-BFGS smooths."


def loss_picture(loss: BaseLoss) -> Picture:
    """Return the loss and its gradient, over the prediction or the score, for a few labels."""
    over, rows, slopes = _prediction(loss), [], []
    count, varied = _scores(loss)
    for label, expected, outputs in _cases(loss):
        shown = outputs[:, 0]
        if count > 1:
            expected, outputs = np.repeat(expected, count, axis=1), np.zeros((len(shown), count), np.float32)
            outputs[:, varied] = shown
        row, slope = _values(loss, expected, outputs, varied)
        rows.append(Line(shown, row, label))
        slopes.append(Line(shown, slope, label))
    panels = [Panel("loss of a sample", over, "", rows), Panel("gradient", over, "", slopes)]
    return Picture(panels, "loss and gradient")


def _scores(loss: BaseLoss) -> tuple[int, int]:
    """Return the number of scores that a loss takes at once, and the one to vary: the others stay zero."""
    if isinstance(loss, QuantilesLoss):
        return len(loss.levels), int(np.argmin(np.abs(np.asarray(loss.levels, float) - 0.5)))
    return 1, 0


def _prediction(loss: BaseLoss) -> str:
    if isinstance(loss, QuantilesLoss):
        return "score of the middle level"
    if not loss.tasks & {"regression", "unsupervised"}:
        return "score z"
    return "prediction f" if loss.link == "identity" else "raw output z = log f"


def _cases(loss: BaseLoss) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the name of a label, the label of every sample, and the raw outputs."""
    if "regression" in loss.tasks:
        ends = (-3.0, 5.0) if loss.link == "identity" else (-2.0, 2.0)
        outputs = np.linspace(*ends, 161, dtype=np.float32)[:, None]
        inside = [label for label in LABELS if loss.domain.contains(label)]
        for label in sorted({inside[0], inside[len(inside) // 2], inside[-1]}):
            yield f"y = {label:g}", np.full_like(outputs, label), outputs
        return
    outputs = np.linspace(-4, 4, 161, dtype=np.float32)[:, None]
    if not loss.tasks & {"classification", "multilabel"}:
        yield "y = 0", np.zeros_like(outputs), outputs
        return
    for label in (0, 1):
        numbers = loss.integer_labels and "classification" in loss.tasks
        shape, dtype = (len(outputs), np.int64) if numbers else (outputs.shape, np.float32)
        yield f"class {label}", np.full(shape, label, dtype), outputs


def _values(
    loss: BaseLoss, expected: np.ndarray, outputs: np.ndarray, varied: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss of each sample and its gradient by one score, by our own differentiation."""
    if loss.in_python:
        rows, slopes = loss.evaluate(expected, outputs)  # type: ignore[attr-defined]
        return rows, slopes[:, varied]
    feeds = {"expected": expected, "predicted": outputs}

    def write(op):
        rows = loss.forward(op, "expected", "predicted")
        return {"total": op.ReduceSum(rows, keepdims=0), "rows": rows}

    model = write_model(write, feeds, {"total": (), "rows": ("N",)})
    model = gradient_of_loss(model, "total", ["predicted"], backend="rules", keep_outputs=True)
    found = run(model, feeds)
    return found["rows"], found["predicted_grad"][:, varied]
