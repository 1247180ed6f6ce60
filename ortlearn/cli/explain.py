"""Show the weights of a model, which of them can be trained, and why others are not.

A scikit-learn model that is not fitted, or that reads text, needs DATA, of which at most 100,000 samples are
drawn at random.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from onnx import TensorProto

from .. import onnx_files
from ..differentiation.registry import NO_GRADIENT, load_rules
from ..evaluation.data_files import Table, column_options, read_sample
from ..evaluation.messages import shown
from ..evaluation.model_files import load_model
from ..evaluation.onnx_model import OnnxModel
from ..exceptions import ConversionError
from ..graphs import TensorType, opset_versions
from ..graphs.nodes import all_nodes
from ..onnx_files.low_rank.adapters import LoRA
from ..trainable.conversion import to_trainable
from ..trainable.explanation import Explanation, explain
from .parser import MOST_SAMPLES, add_data_options, add_model
from .report import table

__all__ = ["add_arguments", "as_text", "run"]

#: Largest rank of adapters.
MOST = 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_model(parser, "model")
    add_data_options(parser, optional=True, label_help="column with the labels")
    parser.add_argument(
        "--weights-to-train",
        action="append",
        metavar="NAME",
        help="name or pattern of weights to train, to preview the selection; may be repeated",
    )
    parser.add_argument("--lora", type=int, metavar="RANK", help="preview low-rank adapters of this rank")


def run(options: argparse.Namespace) -> dict:
    """Return the description of a model and its weights."""
    model = load_model(options.model, options.trust)
    samples = _samples(options)
    result: dict[str, Any] = {
        "model": options.model,
        "kind": model.kind,
        "task": model.task,
        "classes": model.classes,
        "columns": model.column_names,
    }
    if isinstance(model, OnnxModel):
        return {**result, **_of_graph(model), **_checked(_of_onnx(model, options), options)}
    X = None if samples is None else model.features(samples)
    asked = {"weights_to_train": options.weights_to_train, "lora": _adapters(options)}
    explanation = explain(model.source, X, None if samples is None else samples.labels, **asked)
    return {**result, "class": type(model.source).__name__, **_checked(_table_of(explanation), options)}


def _checked(result: dict, options: argparse.Namespace) -> dict:
    """Return a description, or raise an error if --weights-to-train cannot be trained."""
    if options.weights_to_train and result["problem"]:
        raise ConversionError(result["problem"])
    return result


def _samples(options: argparse.Namespace) -> Table | None:
    if options.data is None:
        if options.label is not None:
            raise ValueError("--label names a column of DATA, which is missing. Add DATA.")
        return None
    return read_sample(options.data, MOST_SAMPLES, 0, **column_options(options))[0]


def _table_of(explanation: Explanation) -> dict:
    return {
        "trainable": explanation.trainable,
        "problem": explanation.problem,
        "weights": [row._asdict() for row in explanation.rows],
        "table": str(explanation),
    }


def _of_graph(model: OnnxModel) -> dict:
    """Return inputs, outputs, versions and operators of an ONNX file."""
    nodes = Counter(_operator(node) for node in all_nodes(model.model.graph))
    return {
        "opset": opset_versions(model.model),
        "inputs": [_described(item.name, item.known) for item in model.schema.inputs],
        "outputs": [_described(name, model.types.get(name)) for name in model.outputs],
        "operators": dict(sorted(nodes.items())),
    }


def _adapters(options: argparse.Namespace) -> LoRA | None:
    if options.lora is None:
        return None
    if not 1 <= options.lora <= MOST:
        raise ValueError(f"--lora {options.lora}: must be between 1 and {MOST}.")
    return LoRA(options.lora)


def _of_onnx(model: OnnxModel, options: argparse.Namespace) -> dict:
    """Return the weights of an ONNX file, and the operators without a gradient."""
    asked = {"weights_to_train": options.weights_to_train, "lora": _adapters(options)}
    explanation = explain(model.source, **asked)
    try:
        graph = to_trainable(model.source, **asked).objective_graph()
    except ConversionError:
        graph = onnx_files.open(model.model, trainable=True)
    weights = [
        {
            "name": name,
            "node": fact.step,
            "shape": list(shape),
            "operator": fact.operator,
            "trained": fact.trainable,
            "reason": fact.reason,
            "advice": fact.advice,
        }
        for fact in explanation.rows
        for name, shape in zip(fact.weights, fact.shapes, strict=True)
    ]
    return {
        "trainable": explanation.trainable,
        "problem": explanation.problem,
        "weights": weights,
        "summary": "\n".join(filter(None, (explanation.summary, explanation.quantised))),
        "without_gradient": _without_gradient(graph),
    }


def _without_gradient(graph: Any) -> dict[str, str]:
    """Return the operators that our rules do not differentiate, and the reasons."""
    rules, found = load_rules(), {}
    for node in all_nodes(graph.graph):
        rule = rules.find(node.domain, node.op_type)
        if rule is None:
            found[_operator(node)] = "no rule is known"
        elif rule == NO_GRADIENT:
            found[_operator(node)] = "no gradient passes"
    return dict(sorted(found.items()))


def _operator(node: Any) -> str:
    return f"{node.domain}:{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def _described(name: str, known: TensorType | None) -> dict:
    if known is None:
        return {"name": name, "type": None, "shape": None}
    shape = None if known.shape is None else list(known.shape)
    return {"name": name, "type": TensorProto.DataType.Name(known.elem_type).lower(), "shape": shape}


def as_text(result: dict) -> str:
    """Return lines on the model, and a table of its weights."""
    name = f"scikit-learn {result['class']}" if "class" in result else "ONNX file"
    lines = [f"{result['model']}: {name}, {result['task'] or 'neither a classifier nor a regressor'}"]
    if result["classes"] is not None:
        lines.append(f"classes: {shown(result['classes'].tolist())}")
    if result["columns"] is not None:
        lines.append(f"columns: {shown(result['columns'])}")
    if "class" in result:
        return "\n".join([*lines, "", result["table"]])
    lines += [f"inputs: {_values(result['inputs'])}", f"outputs: {_values(result['outputs'])}"]
    versions = [f"{domain or 'ai.onnx'} {version}" for domain, version in result["opset"].items()]
    lines.append(f"opset: {', '.join(versions)}")
    lines.append(f"operators: {', '.join(f'{n} {op}' for op, n in result['operators'].items())}")
    stops = [f"{operator} ({reason})" for operator, reason in result["without_gradient"].items()]
    lines.append(f"without a gradient, before the scores: {', '.join(stops) or 'none'}")
    return "\n".join([*lines, "", *_weights(result)])


def _values(values: list[dict]) -> str:
    return ", ".join(
        f"{item['name']} {item['type']}{_shape(item['shape']) if item['shape'] is not None else ''}"
        for item in values
    )


def _shape(shape: list | None) -> str:
    return "" if shape is None else f"({', '.join('?' if n is None else str(n) for n in shape)})"


def _weights(result: dict) -> list[str]:
    lines = [result["problem"]] if result["problem"] else []
    rows = [
        (
            item["name"],
            item["node"],
            _shape(item["shape"]),
            item["operator"],
            "yes" if item["trained"] else "no",
            "; ".join(filter(None, (item["reason"], item["advice"]))),
        )
        for item in result["weights"]
    ]
    if not rows:
        return lines
    return [*lines, table([("weight", "node", "shape", "operator", "trained", ""), *rows]), result["summary"]]
