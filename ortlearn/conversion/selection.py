"""Choose the weights to train: those asked for, or the learned ones that a gradient reaches."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..differentiation import gradient_reach
from ..exceptions import ConversionError, NoTrainableWeightError
from ..graphs.name_patterns import matches_pattern
from ..models.weight import CONSTANT, STATISTIC, Weight
from .facts import facts_of, facts_table
from .trainable_model import TrainableModel

__all__ = ["asked_for", "in_place", "reached_weights", "select_weights", "with_trained_weights"]

#: Reasons of weights that are trained only where they are named exactly, and what these are called.
BY_NAME = {CONSTANT: "constants of formulas", STATISTIC: "running statistics"}


@dataclass(frozen=True)
class Asked:
    """The weights that one pattern is for.

    Attributes
    ----------
    exact : frozenset of str
        Those that it names.
    matched : frozenset of str
        Those that its wildcards match, or those of the step that it names. They are trained where they
        can be; constants of formulas and running statistics are none of them.
    """

    exact: frozenset[str]
    matched: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        """All of them."""
        return self.exact | self.matched


def asked_for(
    weights: dict[str, Weight], patterns: Sequence[str] | str, original_names: dict[str, str]
) -> list[Asked]:
    """Return the weights that each pattern is for, see :func:`select_weights`."""
    found = []
    known = {name: weight.names(original_names.get(name, name)) for name, weight in weights.items()}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        exact = frozenset(name for name, names in known.items() if pattern in names)
        wild = {name for name, names in known.items() if any(matches_pattern(n, pattern) for n in names)}
        if not exact:
            wild |= {name for name, weight in weights.items() if pattern in weight.steps}
            wild |= {
                name for name in known if in_place(weights[name], original_names.get(name, name), pattern)
            }
        matched = frozenset(name for name in wild - exact if weights[name].reason not in BY_NAME)
        if not exact and not matched:
            hint = "" if wild else _meant(pattern, known)
            reasons = {weights[name].reason for name in wild}
            kinds = " and ".join(kind for reason, kind in BY_NAME.items() if reason in reasons)
            what = f"{kinds} only; name one exactly to train it" if wild else ""
            raise NoTrainableWeightError(
                f"weights_to_train: {pattern!r} matches {what or 'no floating-point initializer'} among "
                f"{_known(weights, original_names)}{_steps(weights)}.{hint}"
            )
        found.append(Asked(exact, matched))
    return found


def in_place(weight: Weight, original: str, pattern: str) -> bool:
    """Return whether a weight of an ONNX file is learned, and its node, operator or layer fits a pattern."""
    layer = pattern.strip("/")
    return weight.learned and any(
        matches_pattern(name, pattern) or name == layer for name in weight.places(original)
    )


def select_weights(
    weights: dict[str, Weight],
    patterns: Sequence[str] | str | None,
    original_names: dict[str, str],
) -> list[str]:
    """Return the names of the weights to train, sorted.

    Parameters
    ----------
    weights : dict of str to Weight
        What :func:`find_weights` found, under stable names.
    patterns : str, sequence of str or None
        Names or patterns, of stable or original names, of attributes (``coef_``) or of steps and
        attributes (``pca.*``); ``*`` stands for any text, ``?`` for any character, brackets for
        themselves (``coefs_[*]``, ``estimators_[3]*``). The name of a step alone (``pca``, of a step
        inside another one ``columns__pca``) takes all that is its own. In an ONNX file, the name of a node,
        of an operator or of a layer, or a pattern of them, takes the learned weights there
        (:meth:`Weight.places`). None takes the learned ones.
    original_names : dict of str to str
        Original name by stable name.

    Returns
    -------
    list of str
        Stable names.

    Raises
    ------
    NoTrainableWeightError
        If nothing is left to train, or if a pattern matches nothing.

    Examples
    --------
    >>> from ortlearn.conversion import Weight, select_weights
    >>> weights = {"I0_coef": Weight("I0_coef", "weight", True), "I1_mean": Weight("I1_mean", "other", False)}
    >>> select_weights(weights, None, {"I0_coef": "coef", "I1_mean": "mean"})
    ['I0_coef']
    >>> select_weights(weights, ["mea*"], {"I0_coef": "coef", "I1_mean": "mean"})
    ['I1_mean']
    """
    if patterns is None:
        chosen = {name for name, weight in weights.items() if weight.learned}
    else:
        chosen = {name for asked in asked_for(weights, patterns, original_names) for name in asked.names}
    if not chosen:
        hint = f" Name some in weights_to_train if these are: {_known(weights, original_names)}."
        raise NoTrainableWeightError(
            "The model has no weight to train: no initializer is a factor of a product, an intercept, a "
            f"table or a fitted attribute.{hint if weights else ''}"
        )
    return sorted(chosen)


def with_trained_weights(model: TrainableModel, weights_to_train: Any, fitted: Any = None) -> TrainableModel:
    """Return a model with its weights to train chosen."""
    weights, names = model.weights, model.original_names
    if weights_to_train is not None:
        select_weights(weights, weights_to_train, names)  # an error for an empty list
        trained = _reached_of_asked(model, asked_for(weights, weights_to_train, names))
    else:
        try:
            trained = _reached(model, select_weights(weights, None, names))
        except NoTrainableWeightError as error:
            facts = facts_of(model, fitted)
            message = f"{error}\n{facts_table(facts)}" if facts else str(error)
            raise NoTrainableWeightError(message, facts) from None
    weights = {name: replace(w, learned=name in trained or w.learned) for name, w in weights.items()}
    return replace(model, weights=weights, trained=trained)


def _reached(model: TrainableModel, learned: list[str]) -> list[str]:
    """Return the learned weights that a gradient reaches."""
    part, output = model.objective_graph(), model.objective_tensor
    reached, blockers = gradient_reach(part, output)
    found = [name for name in learned if name in reached]
    if found:
        return found
    present = {tensor.name for tensor in part.graph.initializer}
    lost = [model.original_names.get(name, name) for name in learned if name not in present]
    raise NoTrainableWeightError(
        "The model has no weight to train: what is learned reaches what is trained only through "
        f"{', '.join(sorted({node.op_type for node in blockers}))}, and no gradient passes there."
        if len(lost) < len(learned)
        else f"The model has no weight to train: {lost} do not reach what is trained ({output!r})."
    )


def _reached_of_asked(model: TrainableModel, asked: Sequence[Asked]) -> list[str]:
    """Return the weights asked for that a gradient reaches; all of a pattern where it reaches none."""
    part, output = model.objective_graph(), model.objective_tensor
    present = {tensor.name for tensor in part.graph.initializer}
    reached, _ = gradient_reach(part, output)
    chosen: set[str] = set()
    for own in asked:
        matched = own.matched & present
        lost = own.exact - present or (not matched and not own.exact and own.matched)
        if lost:
            raise ConversionError(
                f"Weights {sorted(model.original_names.get(name, name) for name in lost)} come after the "
                f"scores that are trained ({output!r}): leave them out of weights_to_train."
            )
        chosen |= own.exact | (matched & {*reached} or matched)
    return sorted(chosen)


def reached_weights(model: TrainableModel, names: Sequence[str]) -> list[str]:
    """Return those of some weights that a gradient reaches, sorted; all where it reaches none."""
    return _reached_of_asked(model, [Asked(frozenset(), frozenset(names))])


def _known(weights: dict[str, Weight], original_names: dict[str, str]) -> str:
    """Return the names of weights, and where they come from, for an error."""
    texts = []
    for name, weight in weights.items():
        original = repr(original_names.get(name, name))
        texts.append(f"{original} ({weight.origin})" if weight.origin else original)
    return f"[{', '.join(texts)}]"


def _meant(pattern: str, known: dict[str, list[str]]) -> str:
    """Return a hint at what a pattern that matches nothing was to be, for its error."""
    names = [name for own in known.values() for name in own]
    dotted = ".".join(pattern.rsplit("__", 1))  # as parameters of steps are written
    for likely in (dotted, f"{dotted}_", f"{dotted}_*"):
        if any(matches_pattern(name, likely) for name in names):
            return f" Did you mean {likely!r}?"
    close = difflib.get_close_matches(pattern, names, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _steps(weights: dict[str, Weight]) -> str:
    """Return the names of steps, for an error."""
    names = sorted({name for weight in weights.values() for name in weight.steps})
    return f", and no step among {names}" if names else ""
