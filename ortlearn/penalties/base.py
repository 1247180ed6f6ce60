"""Base class of penalties: a forward expression on one weight."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from ..exceptions import PluginError
from ..graphs import GraphBuilder
from ..graphs.name_patterns import matches_pattern
from ..parameters import CheckedParameters

__all__ = ["BasePenalty", "is_named"]


def is_named(name: str, patterns: Sequence[str]) -> bool:
    """Return whether a weight, with or without the prefix of its graph, matches one of the patterns."""
    names = (name, re.sub(r"^I\d+_", "", name))
    return any(matches_pattern(known, pattern) for known in names for pattern in patterns)


class BasePenalty(CheckedParameters):
    """Base class of penalties.

    A subclass stores its parameters in its constructor and writes :meth:`forward`. The gradient
    comes from differentiation: use operators that have one. A penalty that makes weights exactly
    zero, or keeps them in a set, writes :meth:`proximal_step` too.

    Parameters
    ----------
    intercept : bool, default=False
        Whether intercepts are penalised too.
    weights : str, sequence of str or None, default=None
        Names or patterns of the weights to penalise, as ``weights_to_train`` takes them: names in
        the graph, fitted attributes (``"coef_"``), steps, steps and attributes. All weights by
        default; a named intercept is penalised, too.

    Attributes
    ----------
    proximal_kind : {"threshold", "row_threshold", "column_ball"} or None
        Kind of the proximal step, for weights with several penalties: a soft threshold of each
        element, a soft threshold of the norm of each row, or a projection of each column onto a
        ball. Several steps of one kind, and a threshold followed by another kind, are equivalent to the
        step of the sum. With None, the default for a class that writes a proximal step, the weight must
        have no other proximal step.
    strengths : tuple of str
        Parameters that the expressions only pass to operators, so that they may be numbers or names of
        scalars in the graph. Candidates of a search that differ only in these share one graph, with
        strengths above zero as inputs. Empty, the default for a class that writes an expression, if each
        value needs its own graph.
    """

    #: Whether all kinks are in Abs, Relu and Sqrt nodes, which a solver can smooth.
    roundable: ClassVar[bool] = False
    #: Weights at which the penalty is smallest: zero, or the starting weights.
    toward: str = "zero"
    #: Starting values of one weight, if the penalty is not smallest at zero.
    anchor: np.ndarray | None = None
    #: Kind of the proximal step, see above.
    proximal_kind: ClassVar[str | None] = None
    #: Parameters that can be inputs of a graph, see above.
    strengths: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "proximal_step" in cls.__dict__ and "proximal_kind" not in cls.__dict__:
            cls.proximal_kind = None  # the kind of the base class does not apply to a new step
        written = {"forward", "smooth_part", "proximal_step"} & cls.__dict__.keys()
        if written and "strengths" not in cls.__dict__:
            cls.strengths = ()

    def __init__(self, intercept: bool = False, weights: Any = None) -> None:
        self.intercept = intercept
        self.weights = weights

    def check(self) -> None:
        """Check the parameters before training."""
        self.check_flag("intercept")
        patterns = [self.weights] if isinstance(self.weights, str) else self.weights
        if patterns is not None and not all(isinstance(pattern, str) for pattern in patterns):
            raise PluginError(
                f"{type(self).__name__}: weights={self.weights!r} must be a name or pattern, or a sequence "
                "of them."
            )

    @property
    def smooth(self) -> bool:
        """Whether the penalty is differentiable everywhere, as solvers such as L-BFGS require."""
        return True

    @property
    def absolute_factor(self) -> float:
        """Factor of ``|w|``, a term that solvers may treat exactly instead of by its gradient."""
        return 0.0

    @property
    def square_factor(self) -> float:
        """Factor of ``w ** 2``, by which solvers compute the curvature."""
        return 0.0

    def norm_factor(self, shape: tuple[int, ...]) -> float:
        """Return the factor of the norms of rows of a weight, by which solvers compute the curvature.

        Parameters
        ----------
        shape : tuple of int
            Shape of the weight.

        Returns
        -------
        float
            Factor, by default 0.
        """
        return 0.0

    def without_absolute_values(self) -> BasePenalty:
        """Return the penalty without its term ``absolute_factor * |w|``."""
        return self

    def forward(self, op: GraphBuilder, weight: str) -> str | None:
        """Write the penalty of one weight.

        Parameters
        ----------
        op : GraphBuilder
            Builder of the graph, which knows the type and shape of the weight.
        weight : str
            Name of the weight, of any shape.

        Returns
        -------
        str or None
            Name of the penalty, a scalar of shape (); None if the weight has none.
        """
        raise NotImplementedError(f"{type(self).__name__} has no forward expression: implement forward.")

    def is_proximal(self) -> bool:
        """Return whether :meth:`proximal_step` replaces the gradient of the part that is not smooth.

        Returns
        -------
        bool
            Whether it does.
        """
        return False

    @property
    def needs_step(self) -> bool:
        """Whether the proximal step is required and cannot be replaced by the gradient."""
        return False

    @property
    def projects(self) -> bool:
        """Whether the proximal step is a projection, which does not depend on the learning rate."""
        return False

    def smooth_part(self, op: GraphBuilder, weight: str) -> str | None:
        """Write the differentiable part: the whole penalty, unless it has a proximal step.

        Parameters
        ----------
        op : GraphBuilder
            Builder of the graph, which knows the type and shape of the weight.
        weight : str
            Name of the weight, of any shape.

        Returns
        -------
        str or None
            Name of a scalar of shape (); None if there is nothing to differentiate.
        """
        return self.forward(op, weight)

    def proximal_step(self, op: GraphBuilder, weight: str, rate: str) -> str:
        """Write the proximal step, which follows the update of a weight.

        The step is ``argmin_v ||v - w||^2 / 2 + rate * penalty(v)`` for the part that is not smooth
        (Parikh, N. and Boyd, S., "Proximal algorithms", Foundations and Trends in Optimization 1
        (2014), 127-239).

        Parameters
        ----------
        op : GraphBuilder
            Builder of the graph, which knows the type and shape of the weight.
        weight : str
            Name of the updated weight.
        rate : str
            Name of the step size, a scalar of shape (): the learning rate times the size of the update per
            unit of the rate.

        Returns
        -------
        str
            Name of the weight after the step.
        """
        raise NotImplementedError(f"{type(self).__name__} has no proximal step: implement proximal_step.")

    def applies_to(self, is_intercept: bool, name: str = "") -> bool:
        """Return whether a weight is penalised."""
        if self.weights is None:
            return self.intercept or not is_intercept
        patterns = [self.weights] if isinstance(self.weights, str) else self.weights
        return is_named(name, patterns)

    def parts(self) -> list[BasePenalty]:
        """Return the penalties that this one consists of, by default itself."""
        return [self]

    def parts_for(self, is_intercept: bool, name: str) -> list[BasePenalty]:
        """Return the penalties of a weight, in the order of their proximal steps."""
        return [self] if self.applies_to(is_intercept, name) else []

    def acts_by_step(self, has_length: bool) -> bool:
        """Return whether the proximal step is used, given whether the update defines a step size."""
        return self.is_proximal() and (self.projects or has_length)

    def for_weights(self, choose: Callable[[Sequence[str] | str], list[str]]) -> BasePenalty:
        """Return the penalty with the names of its weights in the graph, chosen by their patterns."""
        if self.weights is None:
            return self
        return copy.deepcopy(self).set_params(weights=choose(self.weights))

    def with_inputs(self, prefix: str) -> tuple[BasePenalty, dict[str, float]]:
        """Return the penalty with names of scalars instead of its strengths, and their values.

        Parameters
        ----------
        prefix : str
            Beginning of the names.

        Returns
        -------
        penalty : BasePenalty
            Copy whose strengths are names; a strength of zero stays a number.
        values : dict of str to float
            Strengths by name.
        """
        values = {name: float(getattr(self, name)) for name in self.strengths}
        named = copy.copy(self)
        for name, value in values.items():
            if value:  # zero omits a term
                setattr(named, name, f"{prefix}_{name}")
        return named, {f"{prefix}_{name}": value for name, value in values.items() if value}

    def graph_key(self) -> Hashable:
        """Return a key of the graphs that the penalty writes: class and parameters."""
        return (type(self), repr(sorted(self.get_params().items())))
