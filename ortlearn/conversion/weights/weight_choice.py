"""Which weights are trained: those asked for, or those learned that a gradient reaches."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from onnx import ModelProto

from ...differentiation import gradient_reach
from ...exceptions import ConversionError, NoTrainableWeightError
from .weight_selection import Weight

__all__ = ["reached_weights", "select_weights"]


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
        Names or glob patterns, of stable or original names, of attributes (``coef_``) or of steps and
        attributes (``pca.*``); None takes the learned ones.
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
        chosen = set()
        for pattern in [patterns] if isinstance(patterns, str) else patterns:
            matches = {
                name
                for name, weight in weights.items()
                for known in weight.names(original_names.get(name, name))
                if known == pattern or fnmatchcase(known, pattern)
            }
            if not matches:
                raise NoTrainableWeightError(
                    f"weights_to_train: {pattern!r} matches no floating-point initializer among "
                    f"{_known(weights, original_names)}."
                )
            chosen |= matches
    if not chosen:
        hint = f" Name some in weights_to_train if these are: {_known(weights, original_names)}."
        raise NoTrainableWeightError(
            "The model has no weight to train: no initializer is a factor of a product, an intercept, a "
            f"table or a fitted attribute.{hint if weights else ''}"
        )
    return sorted(chosen)


def reached_weights(
    part: ModelProto, trained: list[str], output: str, original: dict[str, str], explicit: bool
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
    explicit : bool
        Whether somebody asked for these weights.

    Returns
    -------
    list of str
        Those that can be trained; asked for, all of them.

    Raises
    ------
    ConversionError
        If a weight asked for comes after what is trained.
    NoTrainableWeightError
        If none is left.
    """
    kept = {tensor.name for tensor in part.graph.initializer}
    lost = [original.get(name, name) for name in trained if name not in kept]
    if lost and explicit:
        raise ConversionError(
            f"Weights {lost} come after the scores that are trained ({output!r}): leave them out of "
            "weights_to_train."
        )
    if explicit:  # require_gradients tells what stands in the way of those without gradient
        return trained
    reached, blockers = gradient_reach(part, output)
    left = [name for name in trained if name in reached]
    if not left:
        raise NoTrainableWeightError(
            "The model has no weight to train: what is learned reaches what is trained only through "
            f"{', '.join(sorted({node.op_type for node in blockers}))}, and no gradient passes there."
            if len(lost) < len(trained)
            else f"The model has no weight to train: {lost} do not reach what is trained ({output!r})."
        )
    return left


def _known(weights: dict[str, Weight], original_names: dict[str, str]) -> str:
    """Return the names of weights, and where they come from, for an error."""
    texts = []
    for name, weight in weights.items():
        original = repr(original_names.get(name, name))
        texts.append(f"{original} ({weight.origin})" if weight.origin else original)
    return f"[{', '.join(texts)}]"
