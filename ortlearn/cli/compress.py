"""Make a model smaller: distil it, prune it, quantise it, in this order.

The samples of DATA, and a share of them that is held out for the scores, decide. The table of each step has
scores with bootstrap intervals, bytes and latencies, before and after.
"""

from __future__ import annotations

import argparse
from typing import Any

from ..compress import Compressed, distill, prune, quantize
from ..evaluation.model_files import load_model
from ..evaluation.predictions import explain_values, match_labels
from .output_files import OutputFile
from .parser import UsageError, add_data_options, add_max_samples, add_model, drawn
from .report import table

__all__ = ["add_arguments", "as_text", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_model(parser, "model")
    add_data_options(parser, label_help="column with the labels (default: the answers of the model)")
    parser.add_argument("--student", metavar="SIZE", help="distil to 'mlp:64,32', 'linear' or 'trees:20x4'")
    parser.add_argument(
        "--sparsity", type=float, metavar="SHARE", help="prune this share of units, trees or features"
    )
    parser.add_argument(
        "--to", choices=["int8", "int4", "int3"], help="quantise the weights of networks to this type"
    )
    parser.add_argument(
        "--grade",
        choices=["calibration", "scales", "training"],
        default="calibration",
        help="parameters to train in a quantisation (default: none)",
    )
    parser.add_argument(
        "--calibration",
        choices=["minmax", "percentile", "entropy", "mse"],
        default="minmax",
        help="how ranges of activations are chosen (default: minmax)",
    )
    parser.add_argument(
        "--max-loss",
        type=float,
        metavar="NUMBER",
        help="largest loss of accuracy or R2: a quantisation keeps layers in float",
    )
    parser.add_argument(
        "--keep-float", action="append", default=[], metavar="NAME", help="weight or node that stays in float"
    )
    parser.add_argument(
        "--held-out",
        type=float,
        default=0.3,
        metavar="SHARE",
        help="share of DATA for the scores (default: 0.3)",
    )
    add_max_samples(parser)
    parser.add_argument("--random-state", type=int, default=0, help="seed (default: 0)")
    parser.add_argument("--out", metavar="FILE.onnx", help="write the compressed model")
    parser.add_argument("--force", action="store_true", help="replace files that exist")


def run(options: argparse.Namespace) -> dict:
    """Compress, write the file, and return the results."""
    if options.student is None and options.sparsity is None and options.to is None:
        raise UsageError("nothing to do: name --student SIZE, --sparsity SHARE or --to int8.")
    if options.sparsity is not None and options.label is None:
        raise UsageError("pruning needs labels. Name their column with --label COLUMN.")
    out = OutputFile.checked(options.out, (".onnx",), options.force, "--out")
    model = load_model(options.model, options.trust)
    samples, n_seen = drawn(options, options.data)
    X, y = model.features(samples), None
    if samples.labels is not None:
        y = match_labels(samples, model)
    common = {"held_out": options.held_out, "random_state": options.random_state}
    source, steps = model.source, list[dict[str, Any]]()
    with explain_values(samples, model.column_names):
        if options.student is not None:
            found = distill(source, options.student, X, y, **common)
            source = _step(steps, "distil", found)
        if options.sparsity is not None:
            found = prune(source, X, y, sparsity=options.sparsity, **common)
            source = _step(steps, "prune", found)
        if options.to is not None:
            found = quantize(
                source,
                X,
                y,
                to=options.to,
                grade=options.grade,
                calibration=options.calibration,
                max_loss=options.max_loss,
                keep_float=options.keep_float,
                **common,
            )
            _step(steps, "quantise", found)
    if options.out:
        out.write(found.onnx.SerializeToString())
    return {
        "model": options.model,
        "data": options.data,
        "rows": len(samples),
        "rows_of_data": n_seen,
        "steps": steps,
        "out": options.out,
    }


def _step(steps: list[dict[str, Any]], name: str, found: Compressed) -> Any:
    """Add the record of a step, and return its model."""
    names = ("scores", "n_bytes", "seconds", "layers", "facts")
    steps.append({"step": name, "table": found.rows(), **{key: getattr(found, key) for key in names}})
    return found.onnx if found.model is None else found.model


def as_text(result: dict) -> str:
    """Return a table of each step."""
    lines = [f"{result['model']} on {result['rows']} samples of {result['data']}"]
    if result["rows"] < result["rows_of_data"]:
        lines.append(f"drawn at random from {result['rows_of_data']}")
    for step in result["steps"]:
        lines += [f"{step['step']}:", table(step["table"], "  ")]
        lines += [f"  {name}: {text}" for name, text in step["layers"].items()]
    return "\n".join(lines + ([f"wrote {result['out']}"] if result["out"] else []))
