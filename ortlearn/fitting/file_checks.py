"""Checks of the outputs of an ONNX file with samples, before it is trained."""

from __future__ import annotations

import numpy as np

from ..data.samples import Data
from ..exceptions import CalibrationWarning, ConversionError, warn_user
from ..inference.running import Inference
from ..onnx_files.loading import INTERVALS
from ..problem.configuration import Runtime
from ..problem.problem import Problem

__all__ = ["check_file", "check_shape_of_scores"]

#: Samples that are predicted, and the rounding error of their probabilities.
SAMPLES, TOLERANCE = 32, 1e-3
STALE = (
    "The file has intervals or sets that were calibrated for its weights, and lose their coverage by "
    "training. Fit OrtIntervalRegressor or OrtSetClassifier again."
)


def check_file(problem: Problem, data: Data, runtime: Runtime) -> None:
    """Raise an error if the scores of a file do not fit its labels or those of the samples."""
    check_shape_of_scores(problem, data, runtime)
    model = problem.trainable.model
    ends = {"lower", "set"} & {value.name for value in model.graph.output}
    if ends and any(entry.key == INTERVALS for entry in model.metadata_props):
        warn_user(STALE, CalibrationWarning)
    scores = problem.trainable.scores
    if scores is None or scores.task != "classification" or scores.positions is not None:
        return
    if not isinstance(scores.probabilities, str):
        return
    name = scores.probabilities
    inference, X = Inference(problem, model, runtime), data.X[:SAMPLES]
    shares = inference.predict_proba(X)
    takes_log = any(node.op_type == "Log" and scores.score in node.output for node in model.graph.node)
    if takes_log and (np.min(shares) < -TOLERANCE or np.max(shares) > 1 + TOLERANCE):
        raise ConversionError(
            f"The output {name!r} has values outside of 0 to 1, so that it has no probabilities, and is not "
            "known to be a decision function: append a Sigmoid or a Softmax, or choose another output by "
            "output_name."
        )
    if scores.label is None:
        return
    labels, classes = inference.predict(X), problem.targets.classes
    unknown = np.setdiff1d(labels, classes)
    if len(unknown):
        raise ValueError(
            f"The file predicts labels {unknown.tolist()}, and y has the classes "
            f"{np.asarray(classes).tolist()}: pass y with the labels of the file."
        )
    agree = np.mean(labels == classes[shares.argmax(axis=1)])
    if agree < 0.5:
        raise ConversionError(
            f"The labels of the file are those of the class with the largest output {name!r} for {agree:.0%} "
            "of the samples: classes have another order there, and the file cannot be trained."
        )


def check_shape_of_scores(problem: Problem, data: Data, runtime: Runtime) -> None:
    """Raise an error if the shape of scores of the first samples does not match the labels."""
    scores = Inference(problem, problem.trainable.model, runtime).scores(data.X[:3])
    if scores.shape[1:2] != data.y.shape[1:2] and None in (problem.encoder.label_type().shape or ())[1:]:
        raise ValueError(
            f"y has {data.y.shape[1]} labels per sample, and the model has {scores.shape[1]} scores for this "
            "X: y must have one label for each pixel, time step or element."
        )
