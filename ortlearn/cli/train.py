"""Train a model on the samples of a data file.

The model is scored before and after on samples that are not used for training: a share of DATA, or the file
--test.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import time
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..estimators import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ..evaluation.data_files import Table, TableParts, column_options, read_table
from ..evaluation.messages import check_installed
from ..evaluation.model_files import ONNX, SAVED, SKOPS, load_model
from ..evaluation.onnx_model import OnnxModel, with_column_names
from ..evaluation.predictions import Model, explain_values, match_labels, used_columns
from ..evaluation.scored_samples import scored_samples
from ..evaluation.sklearn_model import SklearnModel
from ..exceptions import ConversionError, FallbackWarning
from ..saving.public import packed_estimator
from .estimator_options import add_nested, add_parameters, check_parameters, given_parameters, set_nested
from .output_files import OutputFile
from .parser import add_data_options, add_model
from .report import number, table

__all__ = ["add_arguments", "as_text", "run"]

CURVES = (".png", ".svg")
#: Seed of the test samples without --random-state.
SEED = 0
#: Names of weights that the summary lists.
SHOWN = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_model(parser, "model")
    add_data_options(parser, label_help="column with the labels; required for classifiers and regressors")
    _add_files(parser)
    parser.add_argument(
        "--test-share",
        type=float,
        default=0.2,
        metavar="SHARE",
        help="share of the samples to score on, which are not used for training; 0 for none (default: 0.2)",
    )
    parser.add_argument("--test", metavar="DATA", help="file of samples to score on, instead of --test-share")
    parser.add_argument(
        "--stream",
        action="store_true",
        help="read DATA in parts, as it is larger than memory; scores are those of --test",
    )
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show a progress bar on stderr (default: if stderr is a terminal and rich is installed)",
    )
    parser.add_argument(
        "--two-calls",
        action="store_true",
        help="train with OrtGradientForwardBackwardOptimizer, in which forward and backward are two calls",
    )
    add_parameters(parser, OrtGradientOptimizer)
    add_nested(parser)


def _add_files(parser: argparse.ArgumentParser) -> None:
    """Add the files to write."""
    parser.add_argument(
        "--out",
        required=True,
        metavar="FILE",
        help="trained model: .onnx, .skops if MODEL is a scikit-learn model, or .zip with the complete "
        "estimator, to continue training",
    )
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    parser.add_argument("--curve", metavar="FILE", help="plot of the loss per epoch, .png or .svg")


def run(options: argparse.Namespace) -> dict:
    """Train, write the files, and return the results."""
    out = _checked_output(options)
    curve = _checked_curve(options)
    model = load_model(options.model, options.trust)
    trainer = _trainer(options, model)
    samples, test = _samples(options, model)
    before = _scores(model, test, options.label)
    start = time.perf_counter()
    _fit(trainer, model, samples, options)
    seconds = time.perf_counter() - start
    content = _content(trainer, model, out.suffix)
    out.write(content)
    if options.curve:
        curve.write(_picture(trainer, curve.suffix))
    trained = _trained_model(trainer, model, content, options.out)
    after = None if model.task is None else _scores(trained, test, options.label)
    losses = trainer.train_losses_ or [None]  # empty if the starting weights were kept
    return {
        "model": options.model,
        "out": options.out,
        "curve": options.curve,
        "task": model.task,
        "rows": len(samples),
        "test_rows": 0 if test is None else len(test),
        "unused_columns": model.unused_columns(samples.feature_names),
        "weights": sorted(trainer.trained_coef_),
        "epochs": trainer.n_iter_,
        "seconds": seconds,
        "loss": {"first": losses[0], "last": losses[-1]},
        "scores": {"before": before, "after": after},
    }


def _checked_output(options: argparse.Namespace) -> OutputFile:
    out = OutputFile.checked(options.out, (ONNX, SKOPS, SAVED), options.force, "--out")
    if out.suffix == SKOPS:
        if Path(options.model).suffix.lower() == ONNX:
            raise ValueError(f"--out {options.out}: an ONNX file is trained to an ONNX file, not to {SKOPS}.")
        check_installed("skops", "cli", f"{SKOPS} files")
    return out


def _checked_curve(options: argparse.Namespace) -> OutputFile:
    curve = OutputFile.checked(options.curve, CURVES, options.force, "--curve")
    if options.curve:
        check_installed("matplotlib", "plot", "pictures of training curves")
        os.environ.setdefault("MPLBACKEND", "agg")
    return curve


def _trainer(options: argparse.Namespace, model: Model) -> Any:
    """Return the estimator with all its parameters."""
    kind = OrtGradientForwardBackwardOptimizer if options.two_calls else OrtGradientOptimizer
    trainer = kind(model.source, **given_parameters(options, OrtGradientOptimizer))
    check_parameters(trainer)
    set_nested(trainer, options.nested)
    progress = options.progress
    if progress is None:
        progress = sys.stderr.isatty() and find_spec("rich") is not None
    elif progress:
        check_installed("rich", "progress", "progress bars")
    if model.task == "regression" and is_classifier(trainer):  # an ONNX file without an output of labels
        model.task = None
    return trainer.set_params(verbose=int(progress))


def _samples(
    options: argparse.Namespace, model: Model
) -> tuple[Table | TableParts, Table | TableParts | None]:
    """Return the samples to train on, and those to score on."""
    if not 0 <= options.test_share < 1:
        raise ValueError(f"--test-share {options.test_share}: must be 0 or more, and less than 1.")
    if options.label is None and model.task is not None:
        raise ValueError(f"a {model.task} model needs labels. Name their column with --label COLUMN.")
    columns = column_options(options)

    def parts(path: str) -> TableParts:
        return TableParts(path, used=used_columns(model), **columns)

    samples = parts(options.data) if options.stream else read_table(options.data, **columns)
    if options.test is not None:
        return samples, parts(options.test)
    if isinstance(samples, TableParts) or options.test_share == 0 or samples.labels is None:
        return samples, None
    seed = getattr(options, "random_state", None)
    return _split(samples, options.test_share, model.task, SEED if seed is None else seed)


def _split(samples: Table, share: float, task: str | None, seed: int) -> tuple[Table, Table]:
    """Return two parts of the samples, stratified by class if possible."""
    from sklearn.model_selection import train_test_split

    numbers, strata = np.arange(len(samples)), None
    if len(samples) <= np.ceil(share * len(samples)):
        raise ValueError(
            f"--test-share {share:g} leaves no sample of {samples.name} to train on, since it has "
            f"{len(samples)}. Use --test-share 0, or a file of other samples with --test."
        )
    if task == "classification" and samples.labels is not None:
        _, codes, counts = np.unique(samples.labels.astype(str), return_inverse=True, return_counts=True)
        small = int(np.ceil(share * len(samples)))
        if counts.min() > 1 and len(counts) <= min(small, len(samples) - small):
            strata = codes
    train, test = train_test_split(numbers, test_size=share, random_state=seed, stratify=strata)
    return samples.take(np.sort(train)), samples.take(np.sort(test))


def _scores(model: Model, test: Table | TableParts | None, label: str | None) -> dict[str, float] | None:
    """Return the scores on test samples; None if there are none or the model is not fitted."""
    if test is None or label is None or model.task is None or not getattr(model, "is_fitted", True):
        return None
    return scored_samples([test] if isinstance(test, Table) else test, [model]).scores(model)


def _fit(trainer: Any, model: Model, samples: Table | TableParts, options: argparse.Namespace) -> None:
    """Train, with the output of the training on stderr."""
    known = explain_values(samples, model.column_names)
    with contextlib.redirect_stdout(sys.stderr), known, warnings.catch_warnings():
        if options.out.lower().endswith(ONNX):  # the file would lack steps that run in scikit-learn
            warnings.simplefilter("error", FallbackWarning)
        try:
            if isinstance(samples, Table):
                trainer.fit(*_of_table(samples, model), sample_weight=samples.weights)
            else:
                trainer.fit_stream(lambda: _batches(samples, model))
        except FallbackWarning as warning:
            raise ConversionError(f"{warning} Write a {SKOPS} file, which has all steps.") from warning


def _of_table(samples: Table, model: Model) -> tuple[Any, Any]:
    """Return X and y of a table."""
    labels = None if samples.labels is None else match_labels(samples, model)
    return model.features(samples), labels


def _batches(samples: TableParts, model: Model) -> Iterator[tuple]:
    """Yield X, y and weights of each part."""
    for part in samples:
        weights = () if part.weights is None else (part.weights,)
        with explain_values(part, model.column_names):
            yield (*_of_table(part, model), *weights)


def _content(trainer: Any, model: Model, suffix: str) -> bytes:
    """Return the trained model as the content of a file."""
    if suffix == SAVED:
        return packed_estimator(trainer)
    if suffix == ONNX:
        return with_column_names(trainer.get_trained_onnx(), model.column_names).SerializeToString()
    from skops import io

    return io.dumps(trainer.to_sklearn())


def _trained_model(trainer: Any, model: Model, content: bytes, path: str) -> Model:
    """Return the trained model as it is loaded from the file."""
    suffix = Path(path).suffix.lower()
    if suffix == SKOPS or (suffix == SAVED and not isinstance(model, OnnxModel)):
        return SklearnModel(trainer.to_sklearn(), path)
    if suffix == SAVED:
        content = trainer.get_trained_onnx().SerializeToString()
    return OnnxModel(content, path, (trainer.loss_output_name, trainer.label_name, trainer.weight_name))


def _picture(trainer: Any, suffix: str) -> bytes:
    from ..inspection import TrainingCurveDisplay

    content = io.BytesIO()
    display = TrainingCurveDisplay.from_estimator(trainer)
    display.figure_.savefig(content, format=suffix[1:])
    return content.getvalue()


def _few(names: list[str]) -> list[str]:
    """Return the first names of many, with their number."""
    return names if len(names) <= SHOWN else [*names[:SHOWN], f"... ({len(names)} weights)"]


def as_text(result: dict) -> str:
    """Return a short summary."""
    loss, scores = result["loss"], result["scores"]
    lines = [
        f"trained {', '.join(_few(result['weights']))} of {result['model']} on {result['rows']} samples: "
        f"{result['epochs']} epochs in {result['seconds']:.1f} s",
        f"loss: {number(loss['first'])} in the first epoch, {number(loss['last'])} in the last one",
    ]
    if scores["after"] is not None:
        old = scores["before"] or {}
        rows = [(name, number(old.get(name)), number(new)) for name, new in scores["after"].items()]
        lines += [f"scores on {result['test_rows']} samples that were not trained on:"]
        lines += [table([("metric", "before", "after"), *rows], "  ")]
    elif result["test_rows"]:
        lines.append("no scores: the model does not predict labels")
    if result["unused_columns"]:
        lines.append(f"columns not used: {', '.join(result['unused_columns'])}")
    lines += [f"wrote {result[key]}" for key in ("out", "curve") if result[key]]
    return "\n".join(lines)
