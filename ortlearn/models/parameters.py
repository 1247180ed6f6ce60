"""Parameters: which fitted attribute is in a graph, in which form, and how it is written back."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from .constraints.base import Constraint
from .forms import AsIs, Form
from .registry import find_definition


class Access:
    """Reads and writes an array that an estimator holds otherwise than as one attribute."""

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
            Copy of the estimator; it is changed.
        value : ndarray of float64
            Array of the same shape.
        """
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Parameter:
    """A fitted attribute of an estimator, or an entry of one, as a graph holds it.

    Fields are the arguments of :meth:`ModelWriter.parameter`, and where the owner was when it was written.
    """

    name: str  # of the initializer
    owner: Any
    attribute: str
    index: Any = None
    form: Form = field(default_factory=AsIs)
    role: str = "other"
    constraint: Constraint | None = None
    drawn: bool = False
    reason: str = ""
    step: str | None = None  # of the pipeline, which owns it
    path: str = ""  # expression of the owner, from the step on: "estimators_[3]", empty for the step itself
    access: Access | None = None

    @property
    def expression(self) -> str:
        """Expression of the attribute from the step on, ``estimators_[3].coef_``."""
        entry = "" if self.index is None else f"[{str(self.index).strip('()')}]"
        return f"{self.path}.{self.attribute}{entry}" if self.path else f"{self.attribute}{entry}"

    def value(self) -> np.ndarray:
        """Return the attribute as the graph holds it."""
        return self.form.forward(self._read(self.owner))

    def _read(self, owner: Any) -> np.ndarray:
        if self.access:
            return self.access.read(owner)
        whole = attrgetter(self.attribute)(owner)
        return np.asarray(whole if self.index is None else whole[self.index])

    def write(self, owner: Any, value: np.ndarray) -> None:
        """Set the attribute of an owner, a copy that is changed, from the array of the graph."""
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
    if index is None:
        if isinstance(current, np.ndarray) and not hasattr(holder, "__dict__"):
            current[...] = value  # a tree gives a view of its own memory
        else:
            setattr(holder, name, value if isinstance(current, np.ndarray) else value[()])
    elif isinstance(current, np.ndarray) and current.dtype.kind != "O" and current.dtype.kind != "f":
        changed = current.astype(np.float64)
        changed[index] = value
        setattr(holder, name, changed)
    elif isinstance(current, tuple):
        setattr(holder, name, tuple(value if i == index else item for i, item in enumerate(current)))
    else:
        if isinstance(current, np.ndarray) and not current.flags.writeable:
            current = current.copy()
            setattr(holder, name, current)
        current[index] = value


def write_parameters(
    estimator: Any, parameters: Mapping[str, Parameter], values: Mapping[str, np.ndarray]
) -> Any:
    """Return a copy of an estimator that holds trained parameters.

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
        if name not in values:
            continue
        owner = memo.get(id(parameter.owner), result if parameter.owner is estimator else None)
        parameter.write(owner, values[name])
        owners[id(owner)] = owner
    for owner in owners.values():
        definition = find_definition(owner)
        if definition is not None:
            definition.finish(owner)
    return result
