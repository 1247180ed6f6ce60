"""Trained numbers that scikit-learn would read otherwise, as others of which it makes the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from .ledger import Ledger
from .places import place_of

__all__ = ["settle"]

#: What shares of a forest may differ from one by.
ROUNDING = 1e-5
#: Tells which class wins where a trained leaf has no positive share.
TINY = 1e-9


def settle(ledger: Ledger, core: Any) -> tuple[set[str], str]:
    """Change numbers so that scikit-learn makes of them what the trained graph makes of the weights.

    Parameters
    ----------
    ledger : Ledger
        New numbers; changed in place.
    core : estimator
        What they belong to.

    Returns
    -------
    settled : set of str
        Weights whose numbers are others now.
    problem : str
        Why that cannot be; empty if it can.
    """
    settled: set[str] = set()
    for entry in ledger.entries:
        members = ledger.members(entry)
        if all(_has_shares(ledger, position) for position in members):
            if not _settle_shares(ledger, members):
                return settled, (
                    f"the leaves of the forest ({entry.name!r}) no longer have shares that add up to one. "
                    "The trained model divides what they sum up to; scikit-learn's forests do not"
                )
            settled.add(entry.name)
    for position in list(ledger.numbers):
        settled |= _settle_first_scores(ledger, position, core)
    return settled, ""


def _has_shares(ledger: Ledger, position: int) -> bool:
    array = ledger.fitted[position]
    return array.owner == "Tree" and array.values.shape[-1] > 1


def _settle_shares(ledger: Ledger, members: list[int]) -> bool:
    """Make shares of classes of the leaves of trees; return whether scikit-learn's model is the same then.

    A graph divides the positive ones by their sum, after it has added up trees. So does a single tree
    whose leaves have been divided before.
    """
    for position in members:
        shares, taken = ledger.open(position), ledger.taken[position]
        # Of two classes a graph has the second one's share alone.
        rests = ~taken[..., 0] & taken[..., 1] & ~taken[..., 2:].any(axis=-1)
        shares[..., 0] = np.where(rests, 1 - shares[..., 1], shares[..., 0])
        if len(members) > 1:
            if shares.min() < -ROUNDING or np.abs(shares.sum(axis=-1) - 1).max() > ROUNDING:
                return False
            continue
        best = shares.argmax(axis=-1)[..., None]
        positive = np.maximum(shares, 0)
        lost = ~(positive.sum(axis=-1, keepdims=True) > 0)
        positive = np.where(lost, 1.0, positive)
        np.put_along_axis(positive, best, np.take_along_axis(positive, best, -1) + TINY * lost, -1)
        shares[...] = positive / positive.sum(axis=-1, keepdims=True)
    return True


def _settle_first_scores(ledger: Ledger, position: int, core: Any) -> set[str]:
    """Move what the first scores of boosting have in common into the first trees.

    scikit-learn has them as logarithms of shares, less their mean.
    """
    array = ledger.fitted[position]
    if array.key[1] != "_raw_predict_init(X)" or array.values.size < 2:
        return set()
    common = float(ledger.numbers[position].mean())
    ledger.numbers[position] -= common
    rate = place_of(array, core).owner.learning_rate
    prefix = array.place[1]
    first = {f"{prefix}estimators_[0][{k}].tree_.value" for k in range(array.values.size)}
    trees = [
        number
        for number, other in enumerate(ledger.fitted)
        if other.step == array.step and other.attribute in first
    ]
    for tree in trees:
        ledger.open(tree)[...] += common / rate
    changed = {position, *trees}
    return {entry.name for entry in ledger.entries if changed & set(ledger.members(entry))}
