"""Write arithmetic expressions in text as nodes of a graph, without evaluating Python."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from ..exceptions import PluginError
from .builder import GraphBuilder

__all__ = ["parse_expression", "softplus", "uses", "write_expression"]

#: Largest number of characters of an expression.
MAX_LENGTH = 2000
BINARY = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.Pow: "Pow"}
COMPARISONS = {
    ast.Lt: "Less",
    ast.LtE: "LessOrEqual",
    ast.Gt: "Greater",
    ast.GtE: "GreaterOrEqual",
    ast.Eq: "Equal",
}
BOOLEAN = {ast.And: "And", ast.Or: "Or"}
OF_ONE = "abs ceil cos erf exp floor log relu sigmoid sign sin sqrt tan tanh".split()


def _operator(kind: str) -> Callable[..., str]:
    """Return the function that writes an operator of one input."""
    return lambda op, x: getattr(op, kind)(x)


def softplus(op: GraphBuilder, x: str) -> str:
    """Write ``log(1 + exp(x))`` without overflow in float64, and with the derivative 1/2 at zero."""
    size = op.Abs(x)
    return op.Add(op.Mul(op.Add(x, size), 0.5), op.Softplus(op.Neg(size)))


#: Functions by name: the number of arguments, and what writes them.
FUNCTIONS: dict[str, tuple[int, Callable[..., str]]] = {
    **{name: (1, _operator(name.capitalize())) for name in OF_ONE},
    "log1p": (1, lambda op, x: op.Log(op.Add(x, 1.0))),
    "expm1": (1, lambda op, x: op.Sub(op.Exp(x), 1.0)),
    "softplus": (1, softplus),
    "square": (1, lambda op, x: op.Mul(x, x)),
    "maximum": (2, lambda op, a, b: op.Max(a, b)),
    "minimum": (2, lambda op, a, b: op.Min(a, b)),
    "clip": (3, lambda op, x, low, high: op.Min(op.Max(x, low), high)),
    "where": (3, lambda op, condition, a, b: op.Where(condition, a, b)),
}
#: Functions whose first argument is a condition.
CONDITIONAL = "where"


def parse_expression(text: str, names: tuple[str, ...]) -> ast.expr:
    """Return the syntax tree of an expression of numbers and names; raise a PluginError for anything else."""
    if len(text) > MAX_LENGTH:
        raise PluginError(f"The expression has {len(text)} characters; at most {MAX_LENGTH} are allowed.")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        is_condition = _check(tree, names)
    except SyntaxError as error:
        where = f" at character {error.offset}" if error.offset else ""
        raise PluginError(f"The expression {text!r} is not valid{where}: {error.msg}.") from error
    except (RecursionError, MemoryError, ValueError) as error:
        raise PluginError(
            f"The expression {text[:100]!r} cannot be parsed: {str(error).rstrip('.')}."
        ) from error
    if is_condition:
        raise PluginError(
            f"The expression {text!r} is a condition, not a number: use where(condition, a, b)."
        )
    return tree


def uses(tree: ast.expr) -> set[str]:
    """Return the functions and names that an expression uses."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _check(node: ast.expr, names: tuple[str, ...]) -> bool:
    """Check an expression, and return whether it is a condition."""

    def number(part: ast.expr) -> None:
        if _check(part, names):
            raise _error(part, "is a condition, and a number is expected: use where(condition, a, b)")

    def condition(part: ast.expr) -> None:
        if not _check(part, names):
            raise _error(part, "is a number, and a condition such as label > score is expected")

    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return False
    if isinstance(node, ast.Name) and node.id in names:
        return False
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        number(node.left)
        number(node.right)
        return False
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        number(node.operand)
        return False
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        condition(node.operand)
        return True
    if isinstance(node, ast.Compare) and all(type(sign) in (*COMPARISONS, ast.NotEq) for sign in node.ops):
        for part in (node.left, *node.comparators):
            number(part)
        return True
    if isinstance(node, ast.BoolOp):
        for part in node.values:
            condition(part)
        return True
    if isinstance(node, ast.IfExp):
        condition(node.test)
        number(node.body)
        number(node.orelse)
        return False
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        count = FUNCTIONS[node.func.id][0]
        if node.keywords or len(node.args) != count:
            raise _error(node, f"must have {count} arguments without names")
        for index, part in enumerate(node.args):
            (condition if node.func.id == CONDITIONAL and index == 0 else number)(part)
        return False
    raise _error(
        node,
        f"is not allowed: use numbers, {', '.join(names)}, + - * / **, comparisons, and, or, not, "
        f"and the functions {', '.join(sorted(FUNCTIONS))}",
    )


def _error(node: ast.expr, what: str) -> PluginError:
    return PluginError(f"{ast.unparse(node)!r} {what}.")


def write_expression(op: GraphBuilder, node: ast.expr, values: Mapping[str, str]) -> str:
    """Append the nodes of a checked expression, and return its tensor."""

    def write(part: ast.expr) -> str:
        return write_expression(op, part, values)

    if isinstance(node, ast.Constant):
        return op.constant(float(node.value))  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and node.right.value == 2:
            base = write(node.left)
            return op.Mul(base, base)
        return op.node(BINARY[type(node.op)], write(node.left), write(node.right))
    if isinstance(node, ast.UnaryOp):
        kind = {ast.USub: "Neg", ast.UAdd: "Identity", ast.Not: "Not"}[type(node.op)]
        return op.node(kind, write(node.operand))
    if isinstance(node, ast.Compare):
        operands = [write(part) for part in (node.left, *node.comparators)]
        found = [
            _comparison(op, sign, *pair)
            for sign, pair in zip(node.ops, zip(operands, operands[1:], strict=False), strict=True)
        ]
        return _joined(op, "And", found)
    if isinstance(node, ast.BoolOp):
        return _joined(op, BOOLEAN[type(node.op)], [write(part) for part in node.values])
    if isinstance(node, ast.IfExp):
        return op.Where(write(node.test), write(node.body), write(node.orelse))
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return FUNCTIONS[node.func.id][1](op, *map(write, node.args))


def _comparison(op: GraphBuilder, sign: ast.cmpop, left: str, right: str) -> str:
    if isinstance(sign, ast.NotEq):
        return op.Not(op.Equal(left, right))
    return op.node(COMPARISONS[type(sign)], left, right)


def _joined(op: GraphBuilder, kind: str, parts: list[Any]) -> str:
    found = parts[0]
    for part in parts[1:]:
        found = op.node(kind, found, part)
    return found
