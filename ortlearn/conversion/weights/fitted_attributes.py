"""The arrays a fitted scikit-learn estimator holds, under the expressions that give them."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from .attribute_tables import COMBINED, HELD, KERNEL, NOT_LEARNED, PRIVATE

__all__ = ["FittedArray", "common_expression", "fitted_arrays", "known_class", "trained_members"]

_INDEX = re.compile(r"\[\d+\]")


@dataclass(frozen=True, eq=False)
class FittedArray:
    """An array of floating-point numbers of a fitted estimator.

    Attributes
    ----------
    attribute : str
        Expression that gives it, from the step it belongs to: ``coef_``, ``estimators_[3].tree_.value``.
    step : str or None
        Step of the outermost pipeline; None where the estimator is no pipeline.
    values : ndarray
        Its values; those of the leaves only, for a tree.
    owner : str
        Class of the object that has it, as :func:`known_class` gives it.
    trained : bool
        Whether it belongs to a final estimator, rather than to what prepares its features.
    held : str
        Why it is not trained unless somebody names it: a fitted hyper-parameter, such as the length
        scale of a kernel, or something that follows from other attributes. Empty for the others.
    positive : bool
        Whether it belongs to an estimator that was fitted under ``positive=True``.
    frozen_member : bool
        Whether it belongs to an estimator given as ``FrozenEstimator``.
    """

    attribute: str
    step: str | None
    values: np.ndarray
    owner: str
    trained: bool = True
    held: str = ""
    positive: bool = False
    frozen_member: bool = False

    @property
    def group(self) -> tuple[str | None, str]:
        """Step and attribute with ``[*]`` for every number: the same one of all members."""
        return self.step, _INDEX.sub("[*]", self.attribute)

    @property
    def key(self) -> tuple[str, str]:
        """Class of the owner, and the name the attribute has there, without numbers."""
        return self.owner, _INDEX.sub("", self.attribute).rpartition(".")[2]

    @property
    def place(self) -> tuple[str | None, str]:
        """Step and expression of the object that has it."""
        name = self.key[1]
        return self.step, self.attribute[: self.attribute.rindex(name)]


def common_expression(attributes: Sequence[str]) -> str:
    """Return the expression of several members' attribute, ``[*]`` for the numbers in which they differ.

    Parameters
    ----------
    attributes : sequence of str
        Expressions that are equal but for numbers.

    Returns
    -------
    str
        Expression.

    Examples
    --------
    >>> from ortlearn.conversion.weights.fitted_attributes import common_expression
    >>> common_expression(["estimators_[2].trees_[0].value", "estimators_[2].trees_[1].value"])
    'estimators_[2].trees_[*].value'
    """
    parts = [re.split(f"({_INDEX.pattern})", attribute) for attribute in attributes]
    return "".join(same[0] if len(set(same)) == 1 else "[*]" for same in zip(*parts, strict=True))


def fitted_arrays(estimator: Any) -> list[FittedArray]:
    """Return the arrays of a fitted estimator, of its members and of its steps.

    Parameters of constructors are no fitted attributes. In a pipeline, wherever it is, only the
    last step counts as trained; so does no member given as ``FrozenEstimator``.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator or pipeline.

    Returns
    -------
    list of FittedArray
        In the order in which the estimator holds them.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from ortlearn.conversion.weights.fitted_attributes import fitted_arrays
    >>> model = make_pipeline(StandardScaler(), Ridge()).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> [(a.step, a.attribute, a.trained) for a in fitted_arrays(model)][-2:]
    [('ridge', 'coef_', True), ('ridge', 'intercept_', True)]
    """
    if isinstance(estimator, Pipeline):
        return [
            array for name, step, last in _steps(estimator) for array in _Walk(name).visit(step, "", last)
        ]
    return list(_Walk(None).visit(estimator, "", True))


def trained_members(estimator: Any, kinds: Container[str]) -> list[Any]:
    """Return the estimators inside a fitted one that are trained and of given classes.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator or pipeline.
    kinds : container of str
        Names of classes.

    Returns
    -------
    list of estimator
        Each once, where it is fitted.
    """
    found: list[Any] = []
    waiting = [estimator]
    seen: dict[int, Any] = {}
    while waiting:
        value = waiting.pop()
        parts = _parts_of(value)
        if parts is None or id(value) in seen:
            continue
        seen[id(value)] = value
        # A wrapper may keep the estimator that its fitted members are clones of.
        if known_class(value) in kinds and any(name.endswith("_") for name in vars(value)):
            found.append(value)
        waiting += [part for part, _, trained in parts(value) if trained][::-1]
    return found


class _Walk:
    """A walk over the attributes of one step."""

    def __init__(self, step: str | None):
        self.step = step
        self._seen: set[int] = set()
        self._alive: list[Any] = []  # an identity is only good as long as its object lives

    def visit(
        self,
        value: Any,
        path: str,
        trained: bool,
        owner: str = "",
        held: str = "",
        positive: bool = False,
    ) -> Iterator[FittedArray]:
        """Yield the arrays below a value."""
        if isinstance(value, float | np.floating):
            value = np.asarray(value)
        if issparse(value):
            value = value.data
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            if value.size:
                array = FittedArray(path, self.step, value, owner, trained, positive=positive)
                held = held or HELD.get(array.key) or HELD.get(("*", array.key[1]), "")
                yield replace(array, held=held)
            return
        parts = _parts_of(value)
        if parts is None or id(value) in self._seen:
            return
        self._seen.add(id(value))
        self._alive.append(value)
        held = held or (KERNEL if "Kernel" in _class_names(value) else "")
        for part, name, still in parts(value):
            inner, bound = owner, positive
            if name.startswith("."):
                inner, bound = known_class(value), getattr(value, "positive", False) is True
            below = self.visit(part, f"{path}{name}".lstrip("."), trained and still, inner, held, bound)
            if trained and parts is _of_frozen:
                below = (replace(array, frozen_member=True) for array in below)
            yield from below


#: A part of an object, how to write it after the object, and whether it is trained.
Part = tuple[Any, str, bool]


def known_class(value: Any) -> str:
    """Return the name of an object's class, that of scikit-learn's own for a subclass of one.

    Parameters
    ----------
    value : object
        Object.

    Returns
    -------
    str
        Name.
    """
    kinds = type(value).__mro__
    return next((kind for kind in kinds if kind.__module__.startswith("sklearn.")), kinds[0]).__name__


def _class_names(value: Any) -> list[str]:
    """Return the names of the classes of an object: asking by name imports nothing."""
    return [kind.__name__ for kind in type(value).__mro__]


def _parts_of(value: Any) -> Callable[[Any], Iterator[Part]] | None:
    """Return the function that takes an object apart; None for one that has no parts."""
    if isinstance(value, dict):
        return _items
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype.kind == "O"):
        return _elements
    if not type(value).__module__.startswith("sklearn.") and not isinstance(value, BaseEstimator):
        return None
    for name in _class_names(value):
        if name in PARTS:
            return PARTS[name]
    return _attributes if hasattr(value, "__dict__") else None


def _steps(pipeline: Any) -> list[tuple[str, Any, bool]]:
    """Return the steps of a pipeline that do something, and whether each is the last."""
    steps = [(name, step) for name, step in pipeline.steps if step not in (None, "passthrough")]
    return [(name, step, i == len(steps) - 1) for i, (name, step) in enumerate(steps)]


def _of_pipeline(value: Any) -> Iterator[Part]:
    for name, step, last in _steps(value):
        yield step, f"[{name!r}]", last


def _of_union(value: Any) -> Iterator[Part]:
    for name, transformer in value.transformer_list:
        yield transformer, f"[{name!r}]", True


def _of_columns(value: Any) -> Iterator[Part]:
    for name, transformer, _ in getattr(value, "transformers_", ()):
        yield transformer, f".named_transformers_[{name!r}]", True


def _of_frozen(value: Any) -> Iterator[Part]:
    yield value.estimator, ".estimator", False


def _of_tree(value: Any) -> Iterator[Part]:
    yield value.value[value.children_left < 0], ".value", True


def _of_predictor(value: Any) -> Iterator[Part]:
    yield value.nodes["value"][value.nodes["is_leaf"].astype(bool)], ".nodes['value']", True


#: How to take apart what keeps its parts in other places than attributes, by name of the class.
PARTS: dict[str, Callable[[Any], Iterator[Part]]] = {
    "ColumnTransformer": _of_columns,
    "FeatureUnion": _of_union,
    "FrozenEstimator": _of_frozen,
    "Pipeline": _of_pipeline,
    "Tree": _of_tree,
    "TreePredictor": _of_predictor,
}


def _items(value: Any) -> Iterator[Part]:
    for key, part in value.items():
        yield part, f"[{key!r}]", True


def _elements(value: Any) -> Iterator[Part]:
    if len(value) and all(isinstance(part, float) for part in value):
        yield np.asarray(value, dtype=np.float64), "", True
        return
    for i, part in enumerate(value):
        yield part, f"[{i}]", True


def _attributes(value: Any) -> Iterator[Part]:
    """Yield the fitted attributes of an object, public ones first."""
    given = set(value.get_params(deep=False)) if isinstance(value, BaseEstimator) else set()
    names = [name for name in vars(value) if name not in given and name not in NOT_LEARNED]
    if getattr(value, "fit_intercept", True) is False:
        names = [name for name in names if name != "intercept_"]
    if isinstance(value, BaseEstimator):
        # What fit learns ends with an underscore; SVC has a "nu", and others such leftovers too.
        public = [name for name in names if name.endswith("_") and not name.startswith("_")]
        names = public + [name for name in names if name in PRIVATE]
    for name in sorted(names, key=lambda name: name.startswith("_")):
        yield vars(value)[name], f".{name}", True
    for expression, compute in COMBINED.get(known_class(value), ()):
        with suppress(AttributeError), np.errstate(all="ignore"):
            yield compute(value), f".{expression}", True
