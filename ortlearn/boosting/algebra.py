"""Algebra on vectors with an element per sample: sums with few terms, and nodes that are written once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from onnx import helper

from ..graphs import GraphBuilder

__all__ = ["Algebra", "Form"]

#: Most tensors in the sum of a form; further ones are written as nodes.
MOST_TERMS = 2
#: Operators whose result changes its sign with the operand, or does not change.
ODD = {"Asinh", "Atan", "Erf", "Sign", "Sinh", "Tanh"}
EVEN = {"Abs", "Cosh"}

#: Operators whose results are conditions.
COMPARISONS = {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}
CONDITIONS = COMPARISONS | {"And", "Not", "Or"}


class Form(NamedTuple):
    """A sum of tensors with factors, sorted by name, and a constant."""

    terms: tuple[tuple[str, float], ...] = ()
    constant: float = 0.0

    def scaled(self, factor: float) -> Form:
        """Return the form times a number."""
        if factor == 0:
            return Form()
        return Form(tuple((name, factor * own) for name, own in self.terms), factor * self.constant)


class Algebra:
    """Writes arithmetic on forms as nodes of a builder: constants are folded, equal nodes written once."""

    def __init__(self, op: GraphBuilder):
        self.op = op
        self._known: dict[Any, str] = {}
        self._made: dict[str, Any] = {}

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Return the result of a node of these inputs, a new one if there is none."""
        names = tuple(sorted(inputs)) if op_type in ("Add", "Mul", "Equal", "And", "Or") else inputs
        key = op_type, names, tuple(sorted((name, str(own)) for name, own in attributes.items()))
        if key not in self._known:
            self._known[key] = self.op.node(op_type, *names, **attributes)
            self._made[self._known[key]] = key
        return self._known[key]

    def tensor(self, form: Form) -> str:
        """Return the tensor of a form."""
        if not form.terms:
            return self._number(form.constant)
        (name, factor), *others = form.terms
        if others:
            size = self.split(Form(form.terms))[0]
            terms = [(own, share / abs(size)) for own, share in form.terms]
            added = [self._times(own, share) for own, share in terms if share > 0]
            removed = [self._times(own, -share) for own, share in terms if share < 0]
            name = self.node("Sub" if added and removed else "Add", *added, *removed)
            factor = abs(size) if added else -abs(size)
        if factor == -1 and form.constant:
            return self.node("Sub", self._number(form.constant), name)
        name = self._times(name, factor)
        return self.node("Add", name, self._number(form.constant)) if form.constant else name

    def add(self, left: Form, right: Form) -> Form:
        """Return a sum."""
        constant, totals = left.constant + right.constant, dict(left.terms)
        for name, factor in right.terms:
            totals[name] = totals.get(name, 0.0) + factor
        terms = tuple(sorted((name, factor) for name, factor in totals.items() if factor))
        if len(terms) <= MOST_TERMS:
            return Form(terms, constant)
        long, short = (left, right) if len(left.terms) >= len(right.terms) else (right, left)
        short = short if len(short.terms) < MOST_TERMS else self._as_tensor(short)
        return self.add(self._as_tensor(long), short)

    def multiply(self, left: Form, right: Form) -> Form:
        """Return a product."""
        for one, other in ((left, right), (right, left)):
            if not one.terms:
                return other.scaled(one.constant)
        (factor, left), (second, right) = self.split(left), self.split(right)
        for one, other in ((left, right), (right, left)):
            if self._condition(one):  # the other factor matters only where the condition holds
                share, other = self._where(one.terms[0][0], other)
                if not other.terms:
                    return one.scaled(factor * second * share * other.constant)
                left, right, factor = one, other, factor * share
                break
        names = self.tensor(left), self.tensor(right)
        for name, whole in (names, names[::-1]):
            made = self._made.get(whole, ("", ()))
            if self._condition(Form(((name, 1.0),))) and made[0] == "Mul" and name in made[1]:
                return Form(((whole, factor * second),))
        return Form(((self.node("Mul", *names), factor * second),))

    def divide(self, left: Form, right: Form) -> Form:
        """Return a quotient."""
        if not right.terms:
            return left.scaled(1 / right.constant) if right.constant else self.result("Div", left, right)
        (factor, left), (second, right) = self.split(left), self.split(right)
        return self.result("Div", left, right).scaled(factor / second)

    def result(self, op_type: str, *forms: Form, **attributes: Any) -> Form:
        """Return the result of another operator."""
        if op_type in ODD | EVEN and forms[0].terms:
            factor, form = self.split(forms[0])
            size = abs(factor) if op_type in ("Abs", "Sign") else 1.0
            if size == abs(factor):
                sign = 1.0 if op_type in EVEN else np.sign(factor)
                outer = sign * (size if op_type == "Abs" else 1.0)
                return Form(((self.node(op_type, self.tensor(form), **attributes), outer),))
        if op_type == "Clip" and len(forms) == 3 and not forms[1].terms and forms[2] == forms[1].scaled(-1):
            factor, form = self.split(forms[0])
            if abs(factor) == 1:
                return Form(((self.node("Clip", *map(self.tensor, (form, *forms[1:]))), factor),))
        if op_type in COMPARISONS and any(form.terms for form in forms):
            lead = forms[0] if forms[0].terms else forms[1]
            if self.split(lead)[0] < 0:
                forms = forms[1].scaled(-1), forms[0].scaled(-1)
        return Form(((self.node(op_type, *map(self.tensor, forms), **attributes), 1.0),))

    def mask(self, condition: str) -> Form:
        """Return one where a condition holds, and zero elsewhere."""
        made = self._made.get(condition)
        if made and made[0] == "Not":
            return self.add(Form((), 1.0), self.mask(made[1][0]).scaled(-1))
        elem_type = helper.np_dtype_to_tensor_dtype(self.op.float_dtype)
        return Form(((self.node("Cast", condition, to=elem_type), 1.0),))

    def is_positive(self, form: Form) -> Form:
        """Return one where a form is above zero, and zero elsewhere."""
        if not form.terms:
            return Form((), float(form.constant > 0))
        factor, core = self.split(form)
        if factor > 0 and self._condition(core):
            return core
        return self.mask(self.node("Greater", self.tensor(form), self._number(0.0)))

    def is_condition(self, form: Form) -> bool:
        """Return whether a form is the result of a comparison."""
        return bool(form.terms) and self._made.get(form.terms[0][0], ("",))[0] in CONDITIONS

    def split(self, form: Form) -> tuple[float, Form]:
        """Return a factor, and the form without it: with the first sign of a positive number."""
        sizes = {abs(factor) for _, factor in form.terms}
        size = sizes.pop() if len(sizes) == 1 and not form.constant else 1.0
        sign = np.sign(form.constant or form.terms[0][1])
        return float(sign * size), form.scaled(float(sign / size))

    def _as_tensor(self, form: Form) -> Form:
        """Return a form whose sum of tensors is one tensor."""
        factor, rest = self.split(Form(form.terms))
        return Form(((self.tensor(rest), factor),), form.constant)

    def _times(self, name: str, factor: float) -> str:
        if factor == 1:
            return name
        return self.node("Neg", name) if factor == -1 else self.node("Mul", name, self._number(factor))

    def _number(self, value: float) -> str:
        return self.op.constant(np.asarray(value, self.op.float_dtype))

    def _condition(self, form: Form) -> str | None:
        """Return the condition whose mask a form is, or None."""
        if len(form.terms) != 1 or form.constant or form.terms[0][1] != 1:
            return None
        made = self._made.get(form.terms[0][0])
        return made[1][0] if made and made[0] == "Cast" else None

    def _where(self, mask: str, form: Form) -> tuple[float, Form]:
        """Return a factor and a form whose product has the values of a form where a mask is one."""
        made = self._made.get(self._made[mask][1][0])
        constant, equal = form.constant, made[1] if made and made[0] == "Equal" else ("", "")
        totals: dict[str, float] = {}
        for name, factor in form.terms:
            if name == mask:
                constant += factor
            else:
                name = equal[0] if name == equal[1] else name
                totals[name] = totals.get(name, 0.0) + factor
        found = Form(tuple(sorted((name, factor) for name, factor in totals.items() if factor)), constant)
        return self.split(found) if found.terms else (1.0, found)
