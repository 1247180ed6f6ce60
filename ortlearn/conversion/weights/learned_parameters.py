"""Which initializers of a converted estimator are its fitted attributes: decided by their numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import ModelProto

from .fitted_attributes import FittedArray, fitted_arrays
from .matching import ENOUGH, FROZEN, TREES, Match, match_parameters
from .number_index import evidence
from .weight_names import get_train_initializer
from .weight_selection import Weight

__all__ = ["Match", "learned_parameters", "match_parameters", "with_attributes"]

#: Attributes of linear models and networks, the only ones that are drawn anew: any start will do for
#: them. The others (leaves, support vectors, means, ...) make no sense without the values they have.
DRAWN = {"coef_", "coefs_", "intercept_", "intercepts_"}
#: Why something is not trained.
CONSTANT = "constant of a formula"
TOGETHER = "the converter stores more that follows from it, in a form that is not known"


def learned_parameters(model: ModelProto, estimator: Any) -> dict[str, Match]:
    """Return the initializers of a converted estimator that hold its fitted attributes.

    Numbers are compared as float32 rounds them, in any order, as they are and as converters change
    them: negated, inverted, under a square, a root, a logarithm, rows or columns selected, members
    stacked. Constants that any formula may have (0, 1/2, 1, 2, ...) prove nothing.

    Parameters
    ----------
    model : onnx.ModelProto
        Converted estimator, without fused operators.
    estimator : estimator
        Fitted estimator or pipeline.

    Returns
    -------
    dict of str to Match
        Attribute by name of the initializer, in the graph's order.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from ortlearn.conversion import learned_parameters, sklearn_to_onnx
    >>> X, y = [[0.1, 3.0], [0.4, 1.0], [1.3, 0.2], [2.1, 0.7], [1.9, 0.3]], [0, 0, 1, 1, 1]
    >>> estimator = GaussianNB().fit(X, y)
    >>> found = learned_parameters(sklearn_to_onnx(estimator, 2), estimator)
    >>> {name: (match.attribute, match.transform) for name, match in found.items()}
    {'theta': ('theta_', 'identity'), 'sigma': ('var_', 'identity'), 'jointi': ('class_prior_', 'log')}
    """
    arrays = {name: array for name, (array, _) in get_train_initializer(model).items()}
    return match_parameters(arrays, fitted_arrays(estimator))


def with_attributes(
    weights: Mapping[str, Weight],
    arrays: Mapping[str, np.ndarray],
    fitted: Sequence[FittedArray],
    frozen: Collection[str] = (),
    loose: Collection[str] = (),
) -> tuple[dict[str, Weight], dict[str, Match]]:
    """Return the weights of a converted estimator with the attributes they hold.

    What holds an attribute of the final estimator is learned. So is what the graph uses as a weight
    without being an attribute itself (a converter may combine several), unless its numbers are
    constants that any formula may have.

    Parameters
    ----------
    weights : mapping of str to Weight
        What the graph does with its initializers.
    arrays : mapping of str to ndarray
        Their values.
    fitted : sequence of FittedArray
        Attributes of the fitted estimator.
    frozen : collection of str, default=()
        Initializers known to belong to steps before the last.
    loose : collection of str, default=()
        Initializers that others follow from in a form that is not known.

    Returns
    -------
    weights : dict of str to Weight
        The same, with attributes and steps.
    matches : dict of str to Match
        What was found.
    """
    likely = [name for name, weight in weights.items() if weight.learned]
    matches = match_parameters(arrays, fitted, frozen, likely)
    fixed = {
        array.place
        for match in matches.values()
        for array in match.arrays
        if match.learned and array.key[1] not in DRAWN
    }
    trees = [array for array in fitted if array.owner in TREES and array.trained]
    leaves = Match(tuple(trees)) if len({array.group for array in trees}) == 1 else None
    result = {}
    for name, weight in weights.items():
        match = matches.get(name)
        if match is not None:
            weight = _with_match(weight, match, fixed)
        elif weight.role == "table" and leaves is not None:
            weight = replace(weight, attribute=leaves.attribute, step=leaves.step)
        elif matches:
            telling = weight.role == "table" or evidence(arrays[name]) >= ENOUGH
            weight = replace(weight, learned=weight.learned and telling, drawn=False)
        if name in frozen or name in loose:
            reason = weight.reason or (TOGETHER if name not in frozen else FROZEN if match else CONSTANT)
            weight = replace(weight, learned=False, reason=reason)
        result[name] = weight if weight.learned or weight.reason else replace(weight, reason=CONSTANT)
    return result, matches


def _with_match(weight: Weight, match: Match, fixed: Collection[Any]) -> Weight:
    """Return a weight that holds an attribute; ``fixed`` are places with something that is never drawn."""
    return replace(
        weight,
        learned=match.learned,
        attribute=match.attribute,
        form=match.form,
        step=match.step,
        drawn=weight.drawn and all(a.key[1] in DRAWN and a.place not in fixed for a in match.arrays),
        reason=match.reason,
    )
