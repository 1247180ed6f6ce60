"""State of the parameters of a model and the steps of a pipeline: trained or not, with reasons."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from sklearn.pipeline import Pipeline

from ..differentiation import gradient_reach
from ..graphs.view import GraphView
from ..models import find_definition, unwrapped
from ..models.parameters import ADAPTED, CONSTANT, Parameter
from .trainable_model import TrainableModel

__all__ = ["COLUMNS", "OF_FILES", "Row", "explained_rows", "rows_table", "states", "untrainable_steps"]

_INDEX = re.compile(r"\[\d+\]")
BEFORE_THE_GRAPH = "cannot be converted to ONNX, or precedes such a step: it runs once, in scikit-learn"
NO_PARAMETER = "its fitted attributes are not floating-point weights of the graph"
IN_A_PIPELINE = "put it in a pipeline before a model: the step is computed once, and the model is trained"
SMOOTH = "use a model with a differentiable output, such as LogisticRegression, SVC or an MLP"
NOT_SELECTED = "not selected by weights_to_train"
NOT_A_WEIGHT = "not a factor of a product, a bias of one, or a table"


class Row(NamedTuple):
    """Row of the table of :func:`explain`: parameters of one kind, or a step without any."""

    step: str  # of the pipeline, or empty; for an ONNX file, the node that reads the parameters
    operator: str  # ONNX operators that read the parameters
    weights: tuple[str, ...] = ()  # original names in the graph
    attribute: str = ""  # empty if unknown; [*] stands for every index
    trainable: bool = False  # whether the parameters are trained
    reason: str = ""  # constraint of trained parameters, or why they are not trained
    advice: str = ""
    shapes: tuple[tuple[int, ...], ...] = ()  # in an ONNX file
    numbers: int = 0  # of elements, in an ONNX file


#: Columns of a table of rows.
COLUMNS = ("step", "operator", "weights", "attribute", "shapes", "numbers", "trainable", "reason", "advice")
#: Columns that only the table of an ONNX file has.
OF_FILES = ("shapes", "numbers")
MAX_ITEMS = 3  # of a tuple in a table


def explained_rows(model: TrainableModel, fitted: Any = None) -> list[Row]:
    """Return rows for the parameters by kind, or by node of a file, and for steps without parameters.

    Rows are in the order of the steps of ``fitted``, the estimator, or of the nodes.
    """
    readers = GraphView(model.reparametrisation.undone(model.model)).readers
    is_file = fitted is None and not model.declared
    groups: dict[tuple, list[str]] = {}
    for name, (trained, reason, advice) in states(model).items():
        parameter = model.parameters[name]
        attribute = _INDEX.sub("[*]", parameter.attribute or "")
        types = {node.op_type for node in readers.get(name, ()) if reason != CONSTANT}
        node = parameter.nodes[0] if is_file and parameter.nodes and reason != CONSTANT else ""
        if advice and node and parameter.learned and node not in parameter.operators:
            advice = f"weights_to_train={node!r} trains it"
        key = (parameter.step or node, ", ".join(sorted(types)), attribute, trained, reason, advice)
        groups.setdefault(key, []).append(name)
    shapes = {tensor.name: tuple(tensor.dims) for tensor in model.model.graph.initializer}
    rows = [_row(key, names, model, shapes) for key, names in groups.items()]
    if is_file:
        order = [node.name for node in model.model.graph.node]
    else:
        steps = _steps(fitted)
        rows += list(_without_parameters(steps, model, rows))
        order = [name for name, _ in steps]
    return sorted(rows, key=lambda row: _position(row, order))


def _position(row: Row, order: list[str]) -> tuple[int, bool]:
    """Return a sort key of a row: steps in their order, constants last."""
    index = order.index(row.step) if row.step in order else len(order)
    return (len(order) if row.reason == CONSTANT else index), row.reason == CONSTANT


def _row(key: tuple, names: list[str], model: TrainableModel, shapes: Mapping[str, tuple[int, ...]]) -> Row:
    """Return the row of parameters with the same step, operator, attribute, state, reason and advice."""
    step, operator, attribute, trained, reason, advice = key
    if len(names) == 1:
        attribute = model.parameters[names[0]].attribute or ""
    originals = tuple(model.original_names.get(name, name) for name in names)
    sizes = () if model.declared else tuple(shapes[name] for name in names)
    numbers = sum(map(math.prod, sizes))
    return Row(step, operator, originals, attribute, trained, reason, advice, sizes, numbers)


def states(model: TrainableModel) -> dict[str, tuple[bool, str, str]]:
    """Return for each parameter whether it is trained, its constraint or the reason why not, and advice."""
    part = model.objective_graph()
    reached, stops = gradient_reach(part, model.objective_tensor)
    blockers = ", ".join(sorted({node.op_type for node in stops}))
    present = {tensor.name for tensor in part.graph.initializer}

    def state(name: str, parameter: Parameter) -> tuple[bool, str, str]:
        if name in model.statistics:
            return name in model.trained, "running statistic that batches update: it has no gradient", ""
        if name in model.trained:
            constraint = model.constraints.get(name)
            return True, "" if constraint is None else constraint.text, ""
        if parameter.reason in (CONSTANT, ADAPTED):
            return False, parameter.reason, ""
        if parameter.learned and name not in present:
            return False, "comes after the trained output", ""
        if name in present and name not in reached:
            return False, f"every path to the trained output passes {blockers}, which has no gradient", ""
        named = ".".join(
            part for part in (parameter.step, parameter.attribute) if part and parameter.attribute
        )
        pattern = _INDEX.sub("[*]", named or model.original_names.get(name, name))
        advice = f"weights_to_train={pattern!r} trains it" if name in present else ""
        return False, parameter.reason or (NOT_SELECTED if parameter.learned else NOT_A_WEIGHT), advice

    return {name: state(name, parameter) for name, parameter in model.parameters.items()}


def _steps(fitted: Any) -> list[tuple[str, Any]]:
    """Return the steps of a pipeline without passthrough; other estimators are a single unnamed step."""
    if fitted is None:
        return []
    fitted = unwrapped(fitted)
    if isinstance(fitted, Pipeline):
        return [(name, step) for name, step in fitted.steps if step not in (None, "passthrough")]
    return [("", fitted)]


def _without_parameters(
    steps: list[tuple[str, Any]], model: TrainableModel, rows: list[Row]
) -> Iterator[Row]:
    """Yield a row for each step without parameters, and for the last step if nothing is trained."""
    in_scikit_learn = {name for name, _ in getattr(model.entry.sklearn_steps, "steps", ())}
    for name, step in steps:
        has_parameters = any(row.step == name and row.attribute for row in rows)
        last = name == steps[-1][0]
        if has_parameters and not (last and not any(row.trainable for row in rows)):
            continue
        row = _row_of_step(name, step)
        row = row._replace(reason=BEFORE_THE_GRAPH, advice="") if name in in_scikit_learn else row
        yield row if last else row._replace(advice="")


def _row_of_step(name: str, step: Any) -> Row:
    """Return a row with the reason why a step has no trainable parameters, and advice."""
    definition = find_definition(step)
    if definition is None or not definition.untrained:
        return Row(name, type(step).__name__, reason=NO_PARAMETER)
    advice = IN_A_PIPELINE if hasattr(step, "transform") else SMOOTH
    return Row(name, type(step).__name__, reason=definition.untrained, advice=advice)


def untrainable_steps(fitted: Any) -> list[Row]:
    """Return rows for the steps without trainable parameters, for a model that cannot be converted."""
    rows = [_row_of_step(name, step) for name, step in _steps(fitted)]
    return [row for row in rows if row.reason != NO_PARAMETER]


def rows_table(rows: Collection[Row]) -> str:
    """Return rows as a table with titles, without empty columns."""
    cells = [[_cell(getattr(row, column)) for column in COLUMNS] for row in rows]
    shown = [i for i in range(len(COLUMNS)) if any(line[i] for line in cells)]
    lines = [[line[i] for i in shown] for line in (COLUMNS, *cells)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
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
