"""Graph builder for estimators, which records the origin of parameters."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from ..exceptions import ConversionError
from ..graphs import TensorType
from .columns import Columns, SampleWriter
from .constraints.base import Constraint
from .forms import AsIs, Form
from .parameters import ENTRY, NO_PART, Access, Attribute, Parameter, part_of
from .registry import Fallback, find_definition, is_exact, needs_float64, no_fallback
from .scores import Scores

OPSET = 18  # of the graphs that definitions write
#: Reason why the parameters of steps before the last one are not trained.
PREPARES = "prepares the features of the trained step"
#: Reason why the members of a stack are not trained.
UNSEEN = "its outputs for samples that it has not seen train the last part"
#: Reason why a parameter that depends on others is not trained.
FITTED = "it is computed from the training samples and other fitted parameters"


@dataclass(frozen=True)
class Members:
    """Tensors of the members of an ensemble whose mean it predicts, or the outputs of parts before the last.

    For the training samples, members are weighted, and outputs are ``replaced`` by those of parts that had
    not seen a sample.
    """

    path: tuple[str, ...]  # from the estimator to the ensemble
    tensors: tuple[str, ...]  # one of shape (n, n_members, ...), or one of shape (n, ...) for each member
    rank: int  # number of dimensions of each tensor
    replaced: bool = False


@dataclass(frozen=True)
class TextSteps:
    """First steps of a pipeline, which compute a tensor from documents."""

    path: tuple[str, ...]  # from the estimator to the pipeline
    count: int  # number of steps
    tensor: str


class ModelWriter(SampleWriter):
    """A graph builder whose parameters are fitted attributes, with the arguments of :func:`write_model`.

    ``parameters`` are in the order of declaration; ``quotients`` have the dividend and the divisor of tensors
    that are divided by the initializer of a scale.
    """

    def __init__(
        self,
        dtype: Any = np.float32,
        inputs: Mapping[str, TensorType] | None = None,
        front_dtype: Any = None,
        undefined: Fallback = no_fallback,
        link: str | None = None,
    ):
        inputs = dict(inputs or {})
        super().__init__(OPSET, dtype=dtype, existing_names=inputs, types=inputs)
        self.sample_dtype = np.dtype(front_dtype or dtype)
        self._casts: dict[str, str] = {}
        self.exact = True  # whether samples are the same numbers as in scikit-learn
        self.parameters: dict[str, Parameter] = {}
        # by the id of a member of an ensemble: all members, their samples, and, for members on subsets of the
        # columns, these subsets and the number of columns
        self.siblings: dict[int, tuple[Sequence[Any], Any, Sequence[Any] | None, int | None]] = {}
        self.members: list[Members] = []
        self.text_steps: list[TextSteps] = []
        self.documents: Columns | None = None  # the samples, if they are documents instead of columns
        self.shared: dict[int, tuple[str, str]] = {}  # leaves in all members and in one, by the id of a tree
        self.tables: dict[str, tuple[str, str]] = {}  # leaves in all members and values, by sums of a tree
        self.quotients: dict[str, tuple[str, str]] = {}
        self.undefined = undefined
        self.link = link
        self._names_of: dict[tuple, str] = {}
        self._step: str | None = None
        #: First dimension of outputs; None if they are not for the samples of X.
        self.sample_dim: str | None = "N"
        self.path = ""  # expression of the current part, from its step on
        self.root: Any = None  # the estimator
        self._location: tuple[str, ...] = ()  # path from the estimator to the current part
        self._reason = ""

    def parameter(
        self,
        owner: Any,
        attribute: str,
        *,
        index: Any = None,
        form: Form | None = None,
        role: str = "other",
        constraint: Constraint | None = None,
        drawn: bool = False,
        reason: str = "",
        name: str = "",
        access: Access | None = None,
    ) -> str:
        """Add a fitted attribute to the graph.

        Parameters
        ----------
        owner : object
            Estimator, or object in it, with the attribute.
        attribute : str
            Attribute, such as ``"coef_"``, or dotted path to it.
        index : object, default=None
            Index of an item of the attribute, a list or an array of arrays; None for the attribute itself.
        form : Form, default=None
            Transformation of the attribute; the identity by default.
        role : {"weight", "intercept", "scale", "table", "other"}, default="other"
            Role in the graph: factor of a product, intercept, factor or divisor of columns, table of rows to
            look up, or another one.
        constraint : Constraint, default=None
            Constraint of the array in the graph; ignored if the fitted value violates it.
        drawn : bool, default=False
            Whether it is initialized at random if training does not start from the fitted values.
        reason : str, default=""
            Reason why it is not trained by default; empty if it is.
        name : str, default=""
            Preferred name of the initializer; that of the attribute by default.
        access : Access, default=None
            Reads and writes the values if ``attribute`` is an expression instead of an attribute.

        Returns
        -------
        str
            Name of the initializer; repeated calls for an attribute and index return the same name.

        Raises
        ------
        ConversionError
            If the attribute is declared in two forms, which cannot be trained together.
        """
        form = form or AsIs()
        key = (id(owner), attribute, str(index))
        if key not in self._names_of:
            name = self._name_of(name or attribute, index)
            whole, reason = Attribute(attribute, index), reason or self._reason
            access, text = access or whole, f"{self.path}.{whole}" if self.path else str(whole)
            array = np.asarray(form.forward(access.read(owner)), dtype=self.float_dtype, order="C")
            fans = (array.shape[0], array.shape[1]) if role == "weight" and array.ndim == 2 else (1, 1)
            kept = constraint if constraint is not None and constraint.holds(array) else None
            origin = text, self._step, drawn, reason, form, self._path_to(owner), access, kept
            self.parameters[name] = Parameter(name, role, not reason, fans, *origin)
            self.initializers.append(numpy_helper.from_array(array, name))
            self.set_type(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            self._names_of[key] = name
        if type(self.parameters[self._names_of[key]].form) is not type(form):
            raise self.fail(owner, f"its definition declares {attribute} in two forms: use one.", limit="")
        return self._names_of[key]

    def add_members(self, *tensors: str, rank: int = 2, replaced: bool = False) -> None:
        """Declare the tensors of the members of the current ensemble, see :class:`Members`."""
        self.members.append(Members(self._location, tensors, rank, replaced))

    def add_text_steps(self, count: int, tensor: str) -> None:
        """Declare that the first steps of the current pipeline compute a tensor from the documents."""
        self.text_steps.append(TextSteps(self._location, count, tensor))

    def _path_to(self, owner: Any) -> tuple[str, ...] | None:
        """Return the path of the current part; None if the owner of a parameter is another object."""
        with suppress(*NO_PART):
            return self._location if part_of(self.root, self._location) is owner else None
        return None

    def _name_of(self, attribute: str, index: Any) -> str:
        entry = "" if index is None else "_" + "_".join(str(index).strip("()").replace(" ", "").split(","))
        stem = attribute.rpartition(".")[2].strip("_") + entry
        return stem if self.claim(stem) else self.unique(stem)

    def write(self, estimator: Any, x: str | Columns, at: str = "", named: bool = True) -> Scores:
        """Append the graph of an estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        x : str or Columns
            Samples; columns are converted into a numeric matrix unless the definition supports them.
        at : str, default=""
            Expression of the estimator in the one that contains it, such as ``"estimators_[3]"``. Trained
            parameters are written back to this path.
        named : bool, default=True
            Whether the expression is a part of the names of parameters.

        Returns
        -------
        Scores
            Names of the computed tensors.

        Raises
        ------
        ConversionError
            If a class has no definition, or if the estimator cannot be written as ONNX.
        """
        self.root = estimator if self.root is None else self.root
        try:
            with self.inside(at, named=named):
                definition = find_definition(estimator)
                if definition is None or not definition.covers(estimator):
                    return self.undefined(self, estimator, x)
                keeps = definition.passes_samples or self.sample_dtype == self.float_dtype
                keeps = keeps or needs_float64(estimator, computed=True)
                with self.in_types(samples=None if keeps else self.float_dtype):
                    if isinstance(x, Columns) and not definition.takes_columns:
                        x = self.matrix(x, type(estimator).__name__)
                    elif not isinstance(x, Columns) and not keeps:
                        x = self._cast(x)
                    return definition.write(self, estimator, x)
        except ConversionError as error:
            error.part = error.part or type(estimator).__name__
            raise

    def step(self, name: str, estimator: Any, x: str | Columns, last: bool = True) -> Scores:
        """Append the graph of a pipeline step; by default, only parameters of the last step are trained."""
        outer = self._step is None and not self.path
        inside = self.inside(f"['{name}']", "" if last else PREPARES, named=not outer)
        with inside, self.in_types(floats=None if last else self.sample_dtype):
            self._step = name if outer else self._step
            scores = self.write(estimator, x)
        self.exact = self.exact and (last or is_exact(estimator))
        return scores

    def _cast(self, x: str) -> str:
        """Return samples in the type of parameters, cast once."""
        if x not in self._casts:
            self._casts[x] = self.Cast(x, to=self.elem_type)
        return self._casts[x]

    @contextmanager
    def in_types(self, samples: Any = None, floats: Any = None) -> Iterator[None]:
        """Append a part with samples and parameters in other types, None for the current one."""
        before = self.sample_dtype, self.float_dtype, self.exact
        self.sample_dtype, self.float_dtype = np.dtype(samples or before[0]), np.dtype(floats or before[1])
        try:
            yield
        finally:
            self.sample_dtype, self.float_dtype, self.exact = before

    @contextmanager
    def inside(self, at: str = "", reason: str = "", named: bool = True) -> Iterator[None]:
        """Record parameters under a path, not trained by default if there is a reason."""
        before = self.path, self._location, self._reason, self._step
        self._location += tuple(ENTRY.findall(at))
        dot = "." if self.path and at and named and not at.startswith("[") else ""
        self.path, self._reason = f"{self.path}{dot}{at if named else ''}", self._reason or reason
        try:
            yield
        finally:
            self.path, self._location, self._reason, self._step = before
