"""Different penalties for different weights."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from .. import plugins
from ..exceptions import PluginError
from ..graphs import GraphBuilder
from .base import BasePenalty, is_named
from .proximal_composition import order_proximal_steps

__all__ = ["PerWeightPenalty"]


class PerWeightPenalty(BasePenalty):
    """Separate penalties for named weights or groups of weights.

    Estimators create one from a dictionary given as ``learning_penalty``. Weights that match no key are not
    penalised; a weight that matches several keys gets the sum of their penalties. Named intercepts are
    penalised, too.

    Parameters
    ----------
    penalties : dict of str to str, type, BasePenalty or None
        Penalties by names or patterns of weights, as ``weights_to_train`` takes them: names in the
        graph, fitted attributes (``"coefs_[0]"``), steps (``"pca"``), steps and attributes. A penalty
        with its own ``weights`` applies to the weights that both name.

    Notes
    -----
    The names are parameters, like the steps of a pipeline: ``get_params`` and ``set_params`` accept
    ``coefs_[0]`` and ``coefs_[0]__l2``, a search accepts ``learning_penalty__coefs_[0]__l2``.

    A weight may have several penalties with proximal steps if applying them in sequence is equivalent to the
    step of the sum: any number of ``l1`` and ``elastic``, with either ``group_lasso`` or ``max_norm``.

    References
    ----------
    Yu, Y.-L., "On decomposing the proximal map", NIPS 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.neural_network import MLPRegressor
    >>> from ortlearn import OrtGradientOptimizer
    >>> from ortlearn.penalties import L1Penalty, L2Penalty, PerWeightPenalty
    >>> X, y = load_diabetes(return_X_y=True)
    >>> penalty = PerWeightPenalty({"coefs_[0]": L1Penalty(0.01), "coefs_[1]": L2Penalty(0.1)})
    >>> model = MLPRegressor(hidden_layer_sizes=(5,))
    >>> trainer = OrtGradientOptimizer(model, learning_penalty=penalty, random_state=0)
    >>> trainer = trainer.set_params(**{"learning_penalty__coefs_[1]__l2": 0.3}).fit(X, y)
    >>> trainer.penalty_.penalties["coefs_[1]"]
    L2Penalty(l2=0.3, weights=['coefs_1'])
    """

    def __init__(self, penalties: Any) -> None:
        self.penalties = penalties

    @property
    def weights(self) -> Any:
        """Names and patterns of the weights that have penalties."""
        return list(self._known())

    def check(self) -> None:
        """Check names and penalties before training."""
        if not isinstance(self.penalties, Mapping) or not self.penalties:
            raise PluginError(
                f"PerWeightPenalty: penalties={self.penalties!r} must be a dictionary of penalties by names "
                "of weights, such as {'coefs_[0]': 'l2'}."
            )
        for key, value in self.penalties.items():
            if not isinstance(key, str) or key in ("", "penalties"):
                raise PluginError(f"PerWeightPenalty: {key!r} must be a name or pattern of weights.")
            penalty = _as_penalty(value)
            if isinstance(penalty, PerWeightPenalty):
                raise PluginError(
                    f"PerWeightPenalty: {key!r} has another dictionary as its penalty. Put all names into "
                    "one dictionary."
                )
            penalty.check()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters.

        Parameters
        ----------
        deep : bool, default=True
            Whether to return the penalties by their names, and their parameters, too.

        Returns
        -------
        dict
            Values by name.
        """
        params = {"penalties": self.penalties}
        if deep:
            for key, value in self._known().items():
                params[str(key)] = value
                if isinstance(value, BasePenalty):
                    params |= {f"{key}__{name}": nested for name, nested in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Any:
        """Set parameters: ``penalties``, one of them by its name, or a parameter of one.

        Parameters
        ----------
        **params
            Values by name.

        Returns
        -------
        PerWeightPenalty
            This object.

        Raises
        ------
        ValueError
            If the name does not exist, or belongs to a penalty that is given by name.
        """
        params = dict(params)
        self.penalties = params.pop("penalties", self.penalties)
        known = self._known()
        whole = {key: value for key, value in params.items() if key in known}
        if whole:
            self.penalties = {**known, **whole}  # the dictionary of the caller is not changed
        for name, value in params.items():
            if name not in whole:
                self._set_nested(name, value)
        return self

    def _known(self) -> Any:
        """Return the penalties by name, or nothing if they are not a dictionary, which ``check`` rejects."""
        return self.penalties if isinstance(self.penalties, Mapping) else {}

    def _set_nested(self, name: str, value: Any) -> None:
        """Set a parameter of one of the penalties."""
        owners = [key for key in self._known() if name.startswith(f"{key}__")]
        if not owners:
            raise ValueError(
                f"{name!r} is not a parameter of {self!r}: choose one of {sorted(self.get_params())}."
            )
        key = max(owners, key=len)
        if not isinstance(self.penalties[key], BasePenalty):
            raise ValueError(
                f"{name!r} cannot be set, since the penalty of {key!r} is {self.penalties[key]!r}: pass an "
                "object, such as L2Penalty()."
            )
        self.penalties[key].set_params(**{name[len(key) + 2 :]: value})

    def parts(self) -> list[BasePenalty]:
        """Return the penalties that this one consists of."""
        return [_as_penalty(value) for value in self.penalties.values()]

    def parts_for(self, is_intercept: bool, name: str) -> list[BasePenalty]:
        """Return the penalties of a weight, in the order of their proximal steps."""
        found = []
        for key, part in zip(self.penalties, self.parts(), strict=True):
            if is_named(name, [key]) if part.weights is None else part.applies_to(is_intercept, name):
                found.append(part)
        return order_proximal_steps(found)

    def for_weights(self, choose: Callable[[Sequence[str] | str], list[str]]) -> BasePenalty:
        """Return the penalty with the names that its weights have in the graph."""
        found = {}
        for key, part in zip(self.penalties, self.parts(), strict=True):
            part = copy.deepcopy(part)
            chosen = choose(key)
            if part.weights is not None:
                by_key, own = set(chosen), set(choose(part.weights))
                chosen = sorted(by_key & own)
                if by_key and own and not chosen:
                    raise PluginError(
                        f"PerWeightPenalty: no weight matches both {key!r} and weights of {part!r}."
                    )
            part.weights = chosen
            found[key] = part
        return PerWeightPenalty(found)

    def without_absolute_values(self) -> BasePenalty:
        """Return the penalties without their absolute values."""
        named = zip(self.penalties, self.parts(), strict=True)
        return PerWeightPenalty({key: part.without_absolute_values() for key, part in named})

    def with_inputs(self, prefix: str) -> tuple[BasePenalty, dict[str, float]]:
        """Return the penalties with names of scalars instead of their strengths, and their values by name."""
        found: dict[str, BasePenalty] = {}
        values: dict[str, float] = {}
        for number, (key, part) in enumerate(zip(self.penalties, self.parts(), strict=True)):
            found[key], own = part.with_inputs(f"{prefix}_{number}")
            values |= own
        return PerWeightPenalty(found), values

    def graph_key(self) -> Hashable:
        """Return a key of the graphs that the penalties write."""
        named = zip(self.penalties, self.parts(), strict=True)
        return (type(self), tuple((key, repr(part.weights), part.graph_key()) for key, part in named))

    @property
    def smooth(self) -> bool:
        """Whether all penalties are differentiable everywhere."""
        return all(part.smooth for part in self.parts())

    @property
    def needs_step(self) -> bool:
        """Whether the proximal step of one of the penalties is required."""
        return any(part.needs_step for part in self.parts())

    @property
    def projects(self) -> bool:
        """Whether no proximal step depends on the learning rate."""
        stepping = [part for part in self.parts() if part.is_proximal()]
        return bool(stepping) and all(part.projects for part in stepping)

    def is_proximal(self) -> bool:
        """Return whether one of the penalties has a proximal step."""
        return any(part.is_proximal() for part in self.parts())

    def applies_to(self, is_intercept: bool, name: str = "") -> bool:
        """Return whether a weight is penalised."""
        return bool(self.parts_for(is_intercept, name))

    def forward(self, op: GraphBuilder, weight: str) -> str | None:
        """Write the penalty of one weight, chosen by its name."""
        return _sum(op, [part.forward(op, weight) for part in self.parts_for(False, weight)])

    def smooth_part(self, op: GraphBuilder, weight: str) -> str | None:
        """Write the differentiable part."""
        return _sum(op, [part.smooth_part(op, weight) for part in self.parts_for(False, weight)])

    def proximal_step(self, op: GraphBuilder, weight: str, rate: str) -> str:
        """Write the proximal step, which follows the update of a weight."""
        steps = [part for part in self.parts_for(False, weight) if part.is_proximal()]
        for part in steps:
            weight = _typed_as(op, weight, part.proximal_step(op, weight, rate))
        return weight


def _as_penalty(value: Any) -> BasePenalty:
    """Return the penalty given by a name, a class, an object or None."""
    if isinstance(value, BasePenalty):
        return value
    return plugins.create(plugins.PENALTIES, "none" if value is None else value, BasePenalty)


def _sum(op: GraphBuilder, terms: Sequence[str | None]) -> str | None:
    """Write the sum of the terms that are not None."""
    found = [term for term in terms if term is not None]
    total = found[0] if found else None
    for term in found[1:]:
        total = op.Add(total, term)
    return total


def _typed_as(op: GraphBuilder, before: str, after: str) -> str:
    """Declare that a tensor has the type of another one."""
    known = op.type(before)
    if known is not None:
        op.set_type(after, *known)
    return after
