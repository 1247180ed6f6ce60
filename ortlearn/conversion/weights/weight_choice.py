"""Which weights are trained: those asked for, or those learned that a gradient reaches."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from onnx import ModelProto

from ...differentiation import gradient_reach
from ...exceptions import ConversionError, NoTrainableWeightError
from ...graphs.name_patterns import matches_pattern
from .weight_selection import CONSTANT, Weight

__all__ = ["Asked", "asked_for", "reached_weights", "select_weights"]


@dataclass(frozen=True)
class Asked:
    """The weights that one pattern is for.

    Attributes
    ----------
    exact : frozenset of str
        Those that it names.
    matched : frozenset of str
        Those that its wildcards match, or those of the step that it names. They are trained where they
        can be; constants of formulas are none of them.
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
    """Return the weights that each pattern is for.

    Parameters
    ----------
    weights : dict of str to Weight
        Weights under stable names.
    patterns : str or sequence of str
        Names or patterns, see :func:`select_weights`.
    original_names : dict of str to str
        Original name by stable name.

    Returns
    -------
    list of Asked
        One for each pattern.

    Raises
    ------
    NoTrainableWeightError
        If a pattern matches nothing.
    """
    found = []
    known = {name: weight.names(original_names.get(name, name)) for name, weight in weights.items()}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        exact = frozenset(name for name, names in known.items() if pattern in names)
        wild = {name for name, names in known.items() if any(matches_pattern(n, pattern) for n in names)}
        if not exact:
            wild |= {name for name, weight in weights.items() if pattern in weight.steps}
        matched = frozenset(name for name in wild - exact if weights[name].reason != CONSTANT)
        if not exact and not matched:
            hint = "" if wild else _meant(pattern, known)
            what = "constants of formulas only; name one exactly to train it" if wild else ""
            raise NoTrainableWeightError(
                f"weights_to_train: {pattern!r} matches {what or 'no floating-point initializer'} among "
                f"{_known(weights, original_names)}{_steps(weights)}.{hint}"
            )
        found.append(Asked(exact, matched))
    return found


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
        inside another one ``columns__pca``) takes all that is its own. None takes the learned ones.
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


def reached_weights(
    part: ModelProto,
    trained: list[str],
    output: str,
    original: dict[str, str],
    asked: Sequence[Asked] | None = None,
) -> list[str]:
    """Return the weights that what is trained depends on, with a gradient.

    Parameters
    ----------
    part : onnx.ModelProto
        Graph up to what is trained.
    trained : list of str
        Weights.
    output : str
        What is trained.
    original : dict of str to str
        Original names, for errors.
    asked : sequence of Asked, default=None
        What somebody asked for; None where the model was to decide.

    Returns
    -------
    list of str
        Those that can be trained, and those that somebody named: what is wrong with these is told
        later.

    Raises
    ------
    ConversionError
        If a weight asked for comes after what is trained.
    NoTrainableWeightError
        If none is left.
    """
    kept = {tensor.name for tensor in part.graph.initializer}
    reached, blockers = gradient_reach(part, output)
    if asked is not None:
        chosen = {name for own in asked for name in _present(own, kept, reached, output, original)}
        return [name for name in trained if name in chosen]
    left = [name for name in trained if name in reached]
    if not left:
        lost = [original.get(name, name) for name in trained if name not in kept]
        raise NoTrainableWeightError(
            "The model has no weight to train: what is learned reaches what is trained only through "
            f"{', '.join(sorted({node.op_type for node in blockers}))}, and no gradient passes there."
            if len(lost) < len(trained)
            else f"The model has no weight to train: {lost} do not reach what is trained ({output!r})."
        )
    return left


def _present(
    asked: Asked, kept: Collection[str], reached: Collection[str], output: str, original: dict[str, str]
) -> Iterable[str]:
    """Return what to train for one pattern: without anything that can be, what does not reach the scores."""
    matched = asked.matched & set(kept)
    lost = asked.exact - set(kept) or (not matched and not asked.exact and asked.matched)
    if lost:
        raise ConversionError(
            f"Weights {sorted(original.get(name, name) for name in lost)} come after the scores that are "
            f"trained ({output!r}): leave them out of weights_to_train."
        )
    return asked.exact | ({*matched} & {*reached}) or matched


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
