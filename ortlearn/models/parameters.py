"""Parameters of a graph: their origin, their form in the graph, and how trained values are written back."""

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from ..exceptions import WriteBackError
from .constraints.base import Constraint
from .forms import AsIs, Form
from .registry import definition_or_default

#: Reasons why constants, statistics, and weights with a low-rank adapter are not trained.
CONSTANT = "constant of a formula"
STATISTIC = "running statistic of a batch normalization, which is not a weight"
ADAPTED = "stays as it is: its adapter is trained"
#: A name in brackets, after the attribute that contains it, empty for a pipeline or a union.
STEP = re.compile(r"(\w*)\['([^']*)'\]")
#: An item by its name or index, or an attribute, in the expression of a part of an estimator.
ENTRY = re.compile(r"\['.*'\]|\[\d+\]|\w+", re.DOTALL)


def _check_names(names: Iterable[str]) -> None:
    """Raise an error for special names, such as ``__globals__``, in a saved file."""
    if any(name.startswith("__") for name in names):
        raise ValueError(f"The path of a parameter has special names: {list(names)}.")


class Access:
    """Read and write an array of an estimator that is not a single attribute.

    An object of this class is a part of a trained model: it must support pickle, and not refer to the
    estimator.
    """

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


@dataclass(frozen=True)
class Attribute(Access):
    """An attribute, by its name or dotted path, or an item of it."""

    name: str
    index: Any = None

    def __post_init__(self) -> None:
        _check_names(self.name.split("."))

    def __str__(self) -> str:
        return self.name + ("" if self.index is None else f"[{str(self.index).strip('()')}]")

    def read(self, owner: Any) -> np.ndarray:
        array = attrgetter(self.name)(owner)
        return np.asarray(array if self.index is None else array[self.index])

    def write(self, owner: Any, value: np.ndarray) -> None:
        before, index = self.read(owner).dtype, self.index
        value = np.asarray(value, dtype=before if before.kind == "f" else np.float64)
        parent, _, name = self.name.rpartition(".")
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


@dataclass(frozen=True)
class Parameter:
    """A floating-point initializer of a graph: its use, its origin, and whether it is trained.

    Attributes
    ----------
    name : str
        Name of the initializer.
    role : {"weight", "intercept", "scale", "table", "other"}
        Role in the graph: factor of a product, intercept, factor or divisor of columns, table of rows to
        look up, or another one.
    learned : bool
        Whether it is trained by default.
    fans : tuple of int
        Numbers of inputs and outputs of a factor of a product, (1, 1) for other roles.
    attribute : str or None
        Expression of the fitted attribute in its step, such as ``coef_`` or ``estimators_[3].tree_.value``;
        None if unknown.
    step : str or None
        Step of the pipeline with the attribute; None without a pipeline, or if unknown.
    drawn : bool
        Whether it is initialized at random if training does not start from the fitted values.
    reason : str
        Reason why it is not trained by default; empty if it is, or if the reason follows from the graph.
    form : Form
        Transformation of the attribute to the array in the graph.
    path : tuple of str or None
        Attributes and items (``[3]``, ``['name']``) from the estimator to the object with the attribute; None
        if unknown.
    access : Access or None
        Reads and writes the attribute of this object; None if unknown.
    constraint : Constraint or None
        Constraint of the array in the graph.
    operators, nodes : tuple of str
        Operators and names of the nodes that read it, in a graph from an ONNX file.
    """

    name: str
    role: str
    learned: bool
    fans: tuple[int, int] = (1, 1)
    attribute: str | None = None
    step: str | None = None
    drawn: bool = True
    reason: str = ""
    form: Form = field(default_factory=AsIs, compare=False)
    path: tuple[str, ...] | None = None
    access: Access | None = field(default=None, compare=False)
    constraint: Constraint | None = field(default=None, compare=False)
    operators: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_names(self.path or ())

    @property
    def expression(self) -> str | None:
        """Expression of its values: ``coef_``, ``log(weights_)``; None if unknown."""
        return None if self.attribute is None else self.form.text.replace("{}", self.attribute)

    @property
    def origin(self) -> str:
        """Origin of the parameter, ``"ridge: coef_"``; empty if unknown."""
        return ": ".join(part for part in (self.step, self.expression) if part)

    @property
    def steps(self) -> list[str]:
        """Names of its steps; those of nested steps are joined by ``__`` as in ``set_params``."""
        inner = STEP.findall(self.attribute or "")
        chain = [self.step] if self.step else []
        chain += [name for owner, name in inner if owner in ("", "named_transformers_")]
        return ["__".join(chain[i:j]) for i in range(len(chain)) for j in range(i + 1, len(chain) + 1)]

    def locations(self, original: str) -> list[str]:
        """Return the operators, nodes and layers that read the parameter of a file, by its original name."""
        # exporters name nodes /encoder/layer.0/query/MatMul, and weights encoder.layer.0.query.weight
        if not self.operators:
            return []
        paths = [("/", node.strip("/").split("/")) for node in self.nodes] + [(".", original.split("."))]
        layers = [sign.join(parts[:i]) for sign, parts in paths for i in range(1, len(parts))]
        return list(dict.fromkeys([*self.operators, *self.nodes, *layers]))

    def names(self, original: str) -> list[str]:
        """Return the names of the parameter in ``weights_to_train``, for its original name."""
        named = [self.name, original, self.attribute, self.expression]
        if self.step is not None and self.attribute is not None:
            named += [f"{self.step}.{self.attribute}", f"{self.step}.{self.expression}", self.origin]
        return [name for name in named if name]

    def value(self, estimator: Any) -> np.ndarray:
        """Return the array of the graph for the estimator that was written, or a copy of it."""
        owner, access = self.located(estimator)
        return self.form.forward(access.read(owner))

    def located(self, estimator: Any) -> tuple[Any, Access]:
        """Return the object with the attribute in an estimator, and the access to the attribute."""
        if self.path is None or self.access is None:
            raise WriteBackError(
                f"No path leads to {self.origin or self.name}: its model definition must pass the expression "
                "of its part to op.write(part, x, at=...) or op.inside."
            )
        return part_of(estimator, self.path), self.access


Weight = Parameter  # former name
#: Errors for a path that does not exist in an estimator.
NO_PART = (AttributeError, LookupError, TypeError, ValueError)


def part_of(estimator: Any, path: tuple[str, ...]) -> Any:
    """Return the part of an estimator at a path."""
    for entry in path:
        if not entry.startswith("["):
            estimator = getattr(estimator, entry)
        else:
            estimator = estimator[entry[2:-2] if entry[1] == "'" else int(entry[1:-1])]
    return estimator


def write_parameters(
    estimator: Any, parameters: Mapping[str, Parameter], values: Mapping[str, np.ndarray]
) -> Any:
    """Return a copy of an estimator with trained parameters."""
    result = copy.deepcopy(estimator)
    set_parameters(result, parameters, values)
    return result


def set_parameters(
    estimator: Any, parameters: Mapping[str, Parameter], values: Mapping[str, np.ndarray]
) -> None:
    """Set the parameters of a copy of an estimator in place, in the order of their declaration."""
    # the parts are found first, as writing a parameter may replace the objects on the path to another
    found = {name: known.located(estimator) for name, known in parameters.items() if name in values}
    for name, (owner, access) in found.items():
        array = np.asarray(values[name], dtype=np.float64)
        access.write(owner, parameters[name].form.inverse(array, access.read(owner)))
    for owner in {id(owner): owner for owner, _ in found.values()}.values():
        definition_or_default(owner).finish(owner)
