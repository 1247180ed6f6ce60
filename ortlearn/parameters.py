"""Parameters that are checked before training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator

from .exceptions import PluginError

__all__ = ["OTHER_NAMES", "CheckedParameters", "ParameterNames"]

#: Names of parameters of estimators that are accepted beside the present ones.
OTHER_NAMES = {"hoist": "precompute"}


class ParameterNames(BaseEstimator):
    """Mixin: names of parameters are read from the signature once per class, not in each call."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        if "_parameter_names" not in vars(cls):
            cls._parameter_names = super()._get_param_names()
        return list(cls._parameter_names)


class CheckedParameters(ParameterNames):
    """Base class of losses, penalties, learning rates and schedules: parameters, and how they are checked."""

    def check(self) -> None:
        """Check the parameters before training; everything is fine by default.

        Raises
        ------
        PluginError
            If one has an invalid value.
        """

    def check_number(
        self, parameter: str, *, low: float = 0.0, high: float = math.inf, closed: bool = False
    ) -> None:
        """Check that a parameter is a number between two others.

        Parameters
        ----------
        parameter : str
            Its name.
        low, high : float
            Bounds, themselves excluded.
        closed : bool, default=False
            Whether the lower bound is allowed.

        Raises
        ------
        PluginError
            If it is not.
        """
        value = getattr(self, parameter)
        if isinstance(value, Real) and not isinstance(value, bool | np.bool_):
            try:
                number = float(value)
            except OverflowError:  # of an integer
                number = math.inf
            if math.isfinite(number) and (low < number < high or (closed and number == low)):
                return
        interval = f" in {'[' if closed else '('}{low:g}, {high:g})" if math.isfinite(low) else ""
        raise PluginError(f"{type(self).__name__}: {parameter}={value!r} must be a finite number{interval}.")

    def check_count(self, parameter: str, *, low: int = 1) -> None:
        """Check that a parameter is a whole number, ``low`` or more.

        Parameters
        ----------
        parameter : str
            Its name.
        low : int, default=1
            Lowest value.

        Raises
        ------
        PluginError
            If it is not.
        """
        value = getattr(self, parameter)
        if not isinstance(value, Integral) or isinstance(value, bool) or value < low:
            raise PluginError(
                f"{type(self).__name__}: {parameter}={value!r} must be a whole number, {low} or more."
            )

    def check_flag(self, parameter: str) -> None:
        """Check that a parameter is True or False.

        Parameters
        ----------
        parameter : str
            Its name.

        Raises
        ------
        PluginError
            If it is not.
        """
        value = getattr(self, parameter)
        if not isinstance(value, bool | np.bool_):
            raise PluginError(f"{type(self).__name__}: {parameter}={value!r} must be True or False.")

    def check_choice(self, parameter: str, choices: Sequence[str]) -> None:
        """Check that a parameter is one of some names.

        Parameters
        ----------
        parameter : str
            Its name.
        choices : sequence of str
            What it may be.

        Raises
        ------
        PluginError
            If it is not.
        """
        value = getattr(self, parameter)
        if not isinstance(value, str) or value not in choices:
            names = " or ".join(map(repr, choices))
            raise PluginError(f"{type(self).__name__}: {parameter}={value!r} must be {names}.")
