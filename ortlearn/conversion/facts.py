"""Which weights of a model and steps of a pipeline are trained, with reasons."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline

from ..differentiation import gradient_reach
from ..graphs.view import GraphView
from ..models import find_definition, unwrapped
from ..models.weight import ADAPTED, CONSTANT, Weight
from .trainable_model import TrainableModel

__all__ = ["COLUMNS", "OF_FILES", "Fact", "facts_of", "facts_table", "untrainable_steps"]

_INDEX = re.compile(r"\[\d+\]")
BEFORE_THE_GRAPH = "cannot be converted to ONNX, or precedes such a step: it runs once, in scikit-learn"
NO_PARAMETER = "its fitted attributes are not floating-point weights of the graph"
IN_A_PIPELINE = "put it in a pipeline before a model: the step is computed once, and the model is trained"
SMOOTH = "use a model with a differentiable output, such as LogisticRegression, SVC or an MLP"
NOT_SELECTED = "not selected by weights_to_train"
NOT_A_WEIGHT = "not a factor of a product, a bias of one, or a table"


@dataclass(frozen=True)
class Fact:
    """Whether weights of one kind are trained, or why a step has no weights.

    Attributes
    ----------
    step : str
        Step of the pipeline, or empty. For an ONNX file, the node that reads the weights.
    operator : str
        ONNX operators that read the weights.
    weights : tuple of str
        Original names in the graph.
    attribute : str
        Fitted attribute, empty if unknown; ``[*]`` stands for every index.
    trainable : bool
        Whether they are trained by default.
    reason : str
        Constraint of trained weights, or why the weights are not trained.
    advice : str
        Advice, or empty.
    shapes : tuple of tuple of int
        Shapes of the weights, in an ONNX file.
    numbers : int
        Number of elements, in an ONNX file.
    """

    step: str
    operator: str
    weights: tuple[str, ...]
    attribute: str
    trainable: bool
    reason: str = ""
    advice: str = ""
    shapes: tuple[tuple[int, ...], ...] = ()
    numbers: int = 0


def facts_of(model: TrainableModel, fitted: Any = None) -> list[Fact]:
    """Return facts of the weights by kind, or by node of a file, and of steps without weights.

    Facts are in the order of the steps of ``fitted``, the estimator, or of the nodes.
    """
    groups: dict[tuple, list[str]] = {}
    part = model.objective_graph()
    reached, stops = gradient_reach(part, model.objective_tensor)
    blockers = ", ".join(sorted({node.op_type for node in stops}))
    present = {tensor.name for tensor in part.graph.initializer}
    readers = GraphView(model.reparametrisation.undone(model.model)).readers
    operators = {name: ", ".join(sorted({n.op_type for n in nodes})) for name, nodes in readers.items()}
    is_file = fitted is None and not model.declared
    for name, weight in model.weights.items():
        reason, advice = _reason_and_advice(name, weight, model, present, reached, blockers)
        attribute = _INDEX.sub("[*]", weight.attribute or "")
        operator = "" if reason == CONSTANT else operators.get(name, "")
        node = weight.nodes[0] if is_file and weight.nodes and reason != CONSTANT else ""
        if advice and node and weight.learned and node not in weight.operators:
            advice = f"weights_to_train={node!r} trains it"
        key = (weight.step or node, operator, attribute, name in model.trained, reason, advice)
        groups.setdefault(key, []).append(name)
    shapes = {tensor.name: tuple(tensor.dims) for tensor in model.model.graph.initializer}
    facts = [_fact(key, names, model, shapes) for key, names in groups.items()]
    if is_file:
        order = [node.name for node in model.model.graph.node]
    else:
        steps = _steps(fitted)
        facts += list(_without_weights(steps, model, facts))
        order = [name for name, _ in steps]
    return sorted(facts, key=lambda fact: _position(fact, order))


def _position(fact: Fact, order: list[str]) -> tuple[int, bool]:
    """Return a sort key of a fact: steps in their order, constants last."""
    index = order.index(fact.step) if fact.step in order else len(order)
    return (len(order) if fact.reason == CONSTANT else index), fact.reason == CONSTANT


def _fact(key: tuple, names: list[str], model: TrainableModel, shapes: Mapping[str, tuple[int, ...]]) -> Fact:
    """Return the fact of weights with the same step, operator, attribute, state, reason and advice."""
    step, operator, attribute, trainable, reason, advice = key
    if len(names) == 1:
        attribute = model.weights[names[0]].attribute or ""
    originals = tuple(model.original_names.get(name, name) for name in names)
    sizes = () if model.declared else tuple(shapes[name] for name in names)
    numbers = sum(map(math.prod, sizes))
    return Fact(step, operator, originals, attribute, trainable, reason, advice, sizes, numbers)


def _reason_and_advice(
    name: str,
    weight: Weight,
    model: TrainableModel,
    present: Collection[str],
    reached: Collection[str],
    blockers: str,
) -> tuple[str, str]:
    """Return the constraint of a trained weight or the reason why it is not trained, and advice."""
    if name in model.statistics:
        return "running statistic that batches update: it has no gradient", ""
    if name in model.trained:
        constraint = model.constraints.get(name)
        return ("" if constraint is None else constraint.text), ""
    if weight.reason in (CONSTANT, ADAPTED):
        return weight.reason, ""
    if weight.learned and name not in present:
        return "comes after the trained output", ""
    if name in present and name not in reached:
        return f"affects the trained output only through {blockers}, without a gradient", ""
    named = f"{weight.step}.{weight.attribute}" if weight.step and weight.attribute else weight.attribute
    pattern = _INDEX.sub("[*]", named or model.original_names.get(name, name))
    advice = f"weights_to_train={pattern!r} trains it" if name in present else ""
    return weight.reason or (NOT_SELECTED if weight.learned else NOT_A_WEIGHT), advice


def _steps(fitted: Any) -> list[tuple[str, Any]]:
    """Return the steps of a pipeline without passthrough; other estimators are a single unnamed step."""
    if fitted is None:
        return []
    fitted = unwrapped(fitted)
    if isinstance(fitted, Pipeline):
        return [(name, step) for name, step in fitted.steps if step not in (None, "passthrough")]
    return [("", fitted)]


def _without_weights(
    steps: list[tuple[str, Any]], model: TrainableModel, facts: list[Fact]
) -> Iterator[Fact]:
    """Yield a fact for each step without weights, and for the last step if nothing is trained."""
    in_scikit_learn = {name for name, _ in getattr(model.entry.front, "steps", ())}
    for name, step in steps:
        has_weights = any(fact.step == name and fact.attribute for fact in facts)
        last = name == steps[-1][0]
        if has_weights and not (last and not any(fact.trainable for fact in facts)):
            continue
        reason, advice = (BEFORE_THE_GRAPH, "") if name in in_scikit_learn else _reason_of(step)
        yield Fact(name, type(step).__name__, (), "", False, reason, advice if last else "")


def _reason_of(step: Any) -> tuple[str, str]:
    """Return why a step has no trainable weights, and advice."""
    definition = find_definition(step)
    reason = "" if definition is None else definition.untrained
    if not reason:
        return NO_PARAMETER, ""
    return reason, IN_A_PIPELINE if hasattr(step, "transform") else SMOOTH


def untrainable_steps(fitted: Any) -> list[Fact]:
    """Return facts of the steps without trainable parameters, for a model that cannot be converted."""
    found = [
        Fact(name, type(step).__name__, (), "", False, *_reason_of(step)) for name, step in _steps(fitted)
    ]
    return [fact for fact in found if fact.reason != NO_PARAMETER]


#: Columns of a table of facts.
COLUMNS = ("step", "operator", "weights", "attribute", "shapes", "numbers", "trainable", "reason", "advice")
#: Columns that only the table of an ONNX file has.
OF_FILES = ("shapes", "numbers")
MAX_ITEMS = 3  # of a tuple in a table


def facts_table(facts: Collection[Fact]) -> str:
    """Return facts as a table with titles, without empty columns."""
    rows = [[_cell(getattr(fact, column)) for column in COLUMNS] for fact in facts]
    shown = [i for i in range(len(COLUMNS)) if any(row[i] for row in rows)]
    lines = [[line[i] for i in shown] for line in (COLUMNS, *rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        more = f", ... ({len(value)})" if len(value) > MAX_ITEMS else ""
        return ", ".join(str(item).replace(",)", ")") for item in value[:MAX_ITEMS]) + more
    if isinstance(value, int):
        return f"{value:,}" if value else ""
    return value
