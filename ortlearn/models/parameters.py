"""Fitted attributes as parameters of a graph, and their trained values written back."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from .constraints.base import Constraint
from .forms import AsIs, Form
from .registry import definition_or_default


class Access:
    """Read and write an array of an estimator that is not a single attribute."""

    def read(self, owner: Any) -> np.ndarray:
        """Return the array.

        Parameters
        ----------
        owner : object
            Estimator.

        Returns
        -------
        ndarray
            Copy.
        """
        raise NotImplementedError

    def write(self, owner: Any, value: np.ndarray) -> None:
        """Set the array.

        Parameters
        ----------
        owner : object
            Copy of the estimator, changed in place.
        value : ndarray of float64
            Array of the same shape.
        """
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Parameter:
    """A fitted attribute in a graph; see :meth:`ModelWriter.parameter` for the fields."""

    name: str  # of the initializer
    owner: Any
    attribute: str
    index: Any = None
    form: Form = field(default_factory=AsIs)
    role: str = "other"
    constraint: Constraint | None = None
    drawn: bool = False
    reason: str = ""
    step: str | None = None  # of a pipeline
    path: str = ""  # expression of the owner in the step: "estimators_[3]", empty for the step itself
    access: Access | None = None

    @property
    def expression(self) -> str:
        """Expression of the attribute in the step, such as ``estimators_[3].coef_``."""
        entry = "" if self.index is None else f"[{str(self.index).strip('()')}]"
        return f"{self.path}.{self.attribute}{entry}" if self.path else f"{self.attribute}{entry}"

    def value(self) -> np.ndarray:
        """Return the value of the parameter in the graph."""
        return self.form.forward(self._read(self.owner))

    def _read(self, owner: Any) -> np.ndarray:
        if self.access:
            return self.access.read(owner)
        array = attrgetter(self.attribute)(owner)
        return np.asarray(array if self.index is None else array[self.index])

    def write(self, owner: Any, value: np.ndarray) -> None:
        """Set the attribute of ``owner`` in place from its value in the graph."""
        before = self._read(owner)
        new = self.form.inverse(np.asarray(value, dtype=np.float64), before)
        if self.access:
            self.access.write(owner, new)
            return
        dtype = before.dtype if before.dtype.kind == "f" else np.dtype(np.float64)
        _set_entry(owner, self.attribute, self.index, np.asarray(new, dtype=dtype))


def _set_entry(owner: Any, attribute: str, index: Any, value: np.ndarray) -> None:
    parent, _, name = attribute.rpartition(".")
    holder = attrgetter(parent)(owner) if parent else owner
    current = getattr(holder, name)
    is_array = isinstance(current, np.ndarray)
    if index is None:
        setattr(holder, name, value if is_array else value[()])
    elif isinstance(current, tuple):
        setattr(holder, name, tuple(value if i == index else item for i, item in enumerate(current)))
    else:
        if is_array and (current.dtype.kind not in "Of" or not current.flags.writeable):
            current = current.astype(current.dtype if current.dtype.kind in "Of" else np.float64)
            setattr(holder, name, current)
        current[index] = value


def write_parameters(
    estimator: Any, parameters: Mapping[str, Parameter], values: Mapping[str, np.ndarray]
) -> Any:
    """Return a copy of an estimator with trained parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.graphs import TensorType
    >>> from ortlearn.models import write_model, write_parameters
    >>> model = Ridge().fit([[0.0], [1.0]], [1.0, 3.0])
    >>> written = write_model(model, {"X": TensorType(1, (None, 1))})
    >>> write_parameters(model, written.parameters, {"coef": np.array([[2.0]])}).coef_
    array([2.])
    """
    memo: dict[int, Any] = {}
    result = copy.deepcopy(estimator, memo)
    owners: dict[int, Any] = {}
    for name, parameter in parameters.items():  # in the order in which they were declared
        if name in values:
            owner = memo[id(parameter.owner)]
            parameter.write(owner, values[name])
            owners[id(owner)] = owner
    for owner in owners.values():
        definition_or_default(owner).finish(owner)
    return result
