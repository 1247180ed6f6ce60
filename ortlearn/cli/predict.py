"""Write the predictions of a model for the samples of a data file.

All outputs of an ONNX file are written, in their order: one column each, or one per class or quantile. For
other models these are predictions, and probabilities of classifiers. DATA is read and written in parts, and
may be larger than memory.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..evaluation.data_files import Table, TableParts, column_options
from ..evaluation.messages import shown
from ..evaluation.model_files import load_model
from ..evaluation.onnx_model import OnnxModel
from ..evaluation.predictions import Model, used_columns
from .output_files import OutputFile
from .parser import add_data_options, add_model
from .report import number, table

__all__ = ["add_arguments", "as_text", "run"]

SUFFIXES = (".csv", ".parquet")
#: Columns of --interval.
INTERVAL = ("prediction", "lower", "upper")
SHOWN = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_model(parser, "model")
    add_data_options(parser, label_help="column with labels, which is not a feature")
    parser.add_argument("--out", metavar="FILE", required=True, help="file to write: .csv or .parquet")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.add_argument(
        "--interval", action="store_true", help="write prediction, lower and upper of a model with intervals"
    )
    parser.add_argument(
        "--group",
        metavar="COLUMN",
        help="column of the groups that a model with intervals was calibrated for",
    )


def run(options: argparse.Namespace) -> dict:
    """Write the predictions, and return what was written."""
    out = OutputFile.checked(options.out, SUFFIXES, options.force, "--out")
    model = load_model(options.model, options.trust)
    parts = TableParts(options.data, by=options.group, used=used_columns(model), **column_options(options))
    result: dict[str, Any] = {"model": options.model, "data": options.data, "rows": len(parts)}

    def frames() -> Iterator[Any]:
        for part in parts:
            frame = _predictions(model, part, options)
            if "columns" not in result:
                result["unused_columns"] = model.unused_columns(parts.feature_names)
                result["columns"] = list(frame.columns)
                first = frame.head(SHOWN).to_numpy(object).tolist()
                result["first"] = [[_shown(cell) for cell in row] for row in first]
            yield frame

    out.write_frames(frames())
    return {**result, "output": options.out}


def _predictions(model: Model, samples: Table, options: argparse.Namespace) -> Any:
    """Return the predictions for a part of the samples as a frame."""
    from pandas import DataFrame

    if options.group is not None and options.group not in (model.column_names or ()):
        samples = replace(samples, features=samples.features.drop(columns=options.group, errors="ignore"))
    columns = _columns(model, samples)
    if options.interval:
        missing = [name for name in INTERVAL if name not in columns]
        if missing:
            raise ValueError(
                f"{options.model} has no outputs {shown(missing)}: train intervals with "
                "ortlearn.OrtIntervalRegressor, and write get_trained_onnx() to the file."
            )
        columns = {name: columns[name] for name in INTERVAL}
    return DataFrame(columns)


def _columns(model: Model, samples: Table) -> dict[str, Any]:
    """Return the columns to write by name."""
    if isinstance(model, OnnxModel):
        about = model.intervals
        names = {
            "quantiles": about.get("levels"),
            "set": about.get("classes"),
            "calibrated": about.get("classes"),
        }
        names["probabilities"] = None if model.classes is None else model.classes.tolist()
        found: dict[str, Any] = {}
        for name, values in model.outputs_of(samples).items():
            found |= _parts(name, values, len(samples), names.get(name))
        return found
    predicted = model.predict(samples)
    found = {"prediction": predicted.values}
    if predicted.probabilities is not None:
        classes = None if model.classes is None else model.classes.tolist()
        found |= _parts("probability", predicted.probabilities, len(samples), classes)
    return found


def _parts(name: str, values: Any, n_samples: int, labels: list | None) -> dict[str, np.ndarray]:
    """Return the columns of an output; maps of ZipMap have one per class."""
    if isinstance(values, list):
        labels, values = list(values[0]), np.array([list(item.values()) for item in values])
    if len(values) != n_samples:
        raise ValueError(
            f"Output {name!r} has {len(values)} values for {n_samples} samples, not one for each."
        )
    matrix = np.asarray(values).reshape(n_samples, -1)
    if matrix.shape[1] == 1:
        return {name: matrix[:, 0]}
    labels = labels if labels is not None and len(labels) == matrix.shape[1] else list(range(matrix.shape[1]))
    return {f"{name}_{label}": matrix[:, number] for number, label in enumerate(labels)}


def _shown(cell: Any) -> Any:
    """Return a cell with four digits, if it is a number with decimals."""
    return number(cell) if isinstance(cell, float) else cell


def as_text(result: dict) -> str:
    """Return the first rows as a table."""
    lines = [f"{result['output']}: {result['rows']} predictions of {result['model']} for {result['data']}"]
    lines.append(table([result["columns"], *result["first"]], "  "))
    if result["rows"] > SHOWN:
        lines.append("  ...")
    if result["unused_columns"]:
        lines.append(f"columns not used: {', '.join(result['unused_columns'])}")
    return "\n".join(lines)
