"""Measure how well a model predicts the labels of a data file.

Classifiers: accuracy, and with probabilities log loss, Brier score and ROC AUC (the mean of one-vs-rest
for more than two classes). Regressors: R2, mean absolute error and root mean squared error. DATA is read in
parts, and may be larger than memory: only labels and predictions are kept.
"""

from __future__ import annotations

import argparse

from ..evaluation.data_files import TableParts, column_options
from ..evaluation.model_files import load_model
from ..evaluation.predictions import used_columns
from ..evaluation.scored_samples import scored_samples
from .parser import add_data_options, add_model
from .report import number, table

__all__ = ["add_arguments", "as_text", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_model(parser, "model")
    add_data_options(parser, label_help="column with the labels (required)")


def run(options: argparse.Namespace) -> dict:
    """Return the scores."""
    if options.label is None:
        raise ValueError("scores need labels. Name their column with --label COLUMN.")
    model = load_model(options.model, options.trust)
    parts = TableParts(options.data, used=used_columns(model), **column_options(options))
    samples = scored_samples(parts, [model])
    return {
        "model": options.model,
        "data": options.data,
        "rows": len(samples),
        "task": model.task,
        "unused_columns": model.unused_columns(parts.feature_names),
        "scores": samples.scores(model),
    }


def as_text(result: dict) -> str:
    """Return the scores as lines."""
    lines = [f"{result['model']} on {result['rows']} samples of {result['data']} ({result['task']})"]
    lines.append(table([(name, number(value)) for name, value in result["scores"].items()], "  "))
    if result["unused_columns"]:
        lines.append(f"columns not used: {', '.join(result['unused_columns'])}")
    return "\n".join(lines)
