"""Write the graph of an estimator: nodes, and parameters with their origin."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from ..exceptions import ConversionError
from ..graphs import TensorType
from .columns import Columns, SampleWriter
from .constraints.base import Constraint
from .forms import AsIs, Form
from .fusion import FusedForm
from .parameters import Access, Parameter
from .registry import Undefined, find_definition, refuse_undefined
from .scores import Scores

OPSET = 18  # of the graphs that definitions write
#: Why the parameters of steps before the last one are not trained.
PREPARES = "prepares the features of the trained step"
#: Why a parameter that depends on others is not trained.
FITTED = "it is computed from the training samples and other fitted parameters"


class ModelWriter(SampleWriter):
    """A graph builder whose parameters are fitted attributes, with the arguments of :func:`write_model`.

    Attributes
    ----------
    parameters : dict of str to Parameter
        Parameters by the name of their initializer, in the order they were asked for.
    fused : dict of str to FusedForm
        Fused operators for inference, each by a tensor that it computes.
    quotients : dict of str to tuple
        Of tensors that are others by the initializer of a scale, these two.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.models.writer import ModelWriter
    >>> op = ModelWriter()
    >>> scores = op.write(Ridge().fit([[0.0], [1.0]], [1.0, 3.0]), "X")
    >>> [node.op_type for node in op.nodes], list(op.parameters), scores.task
    (['MatMul', 'Add'], ['coef', 'intercept'], 'regression')
    """

    def __init__(
        self,
        dtype: Any = np.float32,
        inputs: Mapping[str, TensorType] | None = None,
        front_dtype: Any = None,
        undefined: Undefined = refuse_undefined,
        link: str = "identity",
    ):
        inputs = dict(inputs or {})
        super().__init__(OPSET, dtype=front_dtype or dtype, existing_names=inputs, types=inputs)
        self._last_dtype = np.dtype(dtype)
        self.parameters: dict[str, Parameter] = {}
        # by the id of an estimator: the members of its ensemble, their samples, and, if they have their own
        # columns, these and the number of columns of the samples
        self.siblings: dict[int, tuple[Sequence[Any], Any, Sequence[Any] | None, int | None]] = {}
        self.shared: dict[int, str] = {}  # by the id: a tensor that was computed for all members at once
        self.fused: dict[str, FusedForm] = {}  # by a tensor of the part that each computes
        self.quotients: dict[str, tuple[str, str]] = {}
        self.undefined = undefined
        self.link = link
        self._names_of: dict[tuple, str] = {}
        self._step: str | None = None
        #: First dimension of outputs; None if they belong to other samples than those of X.
        self.sample_dim: str | None = "N"
        self.path = ""  # expression of the part that is being written, from its step on
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
        """Return the name of a fitted attribute in the graph.

        Parameters
        ----------
        owner : object
            Estimator, or part of one, that has the attribute.
        attribute : str
            Attribute, ``"coef_"``; with dots where it is one of a part.
        index : object, default=None
            Entry of a list or of an array of arrays; the whole attribute by default.
        form : Form, default=None
            Form in the graph; the attribute as it is by default.
        role : {"weight", "intercept", "scale", "table", "other"}, default="other"
            Use in the graph: a factor of a product, what is added to one, a factor or a divisor, a table
            whose rows are looked up, or something else.
        constraint : Constraint, default=None
            Set that the array in the graph stays in; ignored where the fitted value is not in it.
        drawn : bool, default=False
            Whether a training from fresh weights draws it anew, rather than start from its value.
        reason : str, default=""
            Why it is not trained unless somebody names it; empty where it is trained.
        name : str, default=""
            Name of the initializer, where it is free; that of the attribute by default.
        access : Access, default=None
            Reads and writes what ``attribute`` is an expression of, where it is no attribute.

        Returns
        -------
        str
            Name of the initializer; the same one for the same attribute and entry.

        Raises
        ------
        ConversionError
            If the attribute is asked for in two forms: these would be trained apart.
        """
        form = form or AsIs()
        key = (id(owner), attribute, str(index))
        if key not in self._names_of:
            name = self._name_of(name or attribute, index)
            where = (reason or self._reason, self._step, self.path, access)
            parameter = Parameter(name, owner, attribute, index, form, role, None, drawn, *where)
            array = np.asarray(parameter.value(), dtype=self.float_dtype, order="C")
            if constraint is not None and constraint.holds(array):
                parameter = replace(parameter, constraint=constraint)
            self.initializers.append(numpy_helper.from_array(array, name))
            self.set_type(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            self.parameters[name] = parameter
            self._names_of[key] = name
        if type(self.parameters[self._names_of[key]].form) is not type(form):
            raise self.fail(owner, f"its definition asks for {attribute} in two forms.")
        return self._names_of[key]

    def _name_of(self, attribute: str, index: Any) -> str:
        entry = "" if index is None else "_" + "_".join(str(index).strip("()").replace(" ", "").split(","))
        stem = attribute.rpartition(".")[2].strip("_") + entry
        return stem if self.claim(stem) else self.unique(stem)

    def write(self, estimator: Any, x: str | Columns, at: str = "") -> Scores:
        """Append the graph of an estimator by its own definition.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        x : str or Columns
            Samples; columns become a matrix of numbers where the definition takes nothing else.
        at : str, default=""
            Expression of the estimator in the one that is being written, ``"estimators_[3]"``.

        Returns
        -------
        Scores
            Names of what it computes.

        Raises
        ------
        ConversionError
            If a class has no definition, or an estimator no form in ONNX.
        """
        try:
            with self.inside(at):
                definition = find_definition(estimator)
                if definition is None or not definition.covers(estimator):
                    return self.undefined(self, estimator, x)
                if isinstance(x, Columns) and not definition.takes_columns:
                    x = self.matrix(x, type(estimator).__name__)
                return definition.write(self, estimator, x)
        except ConversionError as error:
            error.part = error.part or type(estimator).__name__
            raise

    def step(self, name: str, estimator: Any, x: str | Columns, last: bool = True) -> Scores:
        """Append the graph of a step of a pipeline; by default, only parameters of the last are trained."""
        outer = self._step is None and not self.path
        if outer and last and self.float_dtype != self._last_dtype:
            x = self.matrix(x)
            self.float_dtype = self._last_dtype
            x = self.Cast(x, to=self.elem_type)
        with self.inside("" if outer else f"['{name}']", "" if last else PREPARES):
            self._step = name if outer else self._step
            return self.write(estimator, x)

    @contextmanager
    def inside(self, at: str = "", reason: str = "") -> Iterator[None]:
        """Record parameters as those of a part at a path, not trained by default if there is a reason."""
        before = self.path, self._reason, self._step
        dot = "." if self.path and at and not at.startswith("[") else ""
        self.path, self._reason = f"{self.path}{dot}{at}", self._reason or reason
        try:
            yield
        finally:
            self.path, self._reason, self._step = before
