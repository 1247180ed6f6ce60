"""Write ONNX nodes as function calls: ``op.Mul(a, b)`` appends a node and returns its output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto, defs, helper, numpy_helper

__all__ = ["GraphBuilder", "TensorType"]

#: A dimension is known (int), named (str) or unknown (None).
Dim = int | str | None


class TensorType(NamedTuple):
    """Element type (``onnx.TensorProto.DataType``) and shape of a tensor; None if unknown.

    Examples
    --------
    >>> from ortlearn.graphs import TensorType
    >>> TensorType(1, ("N", 3)).shape
    ('N', 3)
    """

    elem_type: int
    shape: tuple[Dim, ...] | None = None


class GraphBuilder:
    """Collect nodes and constants under unique names.

    Any attribute that starts with a capital letter is an ONNX operator: calling it with its inputs
    (names, numpy arrays, Python numbers or lists) and its attributes as keywords appends a node and
    returns the name of its output, or a tuple of names when ``n_outputs`` is more than one.
    A float (or a list of floats) becomes a constant of the builder's floating-point type,
    an int (or a list of ints) an int64 constant. The empty string is an omitted input.

    Parameters
    ----------
    opset : int, default=18
        Version of the default operator set.
    dtype : dtype, default=numpy.float32
        Floating-point type of the constants made from Python floats.
    existing_names : iterable of str, default=()
        Names that exist in the graph to which the nodes will be added.
    types : mapping of str to TensorType, default=None
        Types of the tensors of that graph, as far as they are known.
    prefix : str, default=""
        Prefix of every new name.

    Attributes
    ----------
    nodes : list of onnx.NodeProto
        Appended nodes, in order.
    initializers : list of onnx.TensorProto
        Constants of the nodes; equal constants are stored once.
    opsets : dict of str to int
        Version of every domain that the nodes use.

    Examples
    --------
    >>> from ortlearn.graphs import GraphBuilder
    >>> op = GraphBuilder()
    >>> difference = op.Sub("predicted", "expected")
    >>> op.ReduceSum(op.Mul(difference, difference), [1], keepdims=0)
    'ReduceSum_0'
    >>> [node.op_type for node in op.nodes]
    ['Sub', 'Mul', 'ReduceSum']
    """

    def __init__(
        self,
        opset: int = 18,
        *,
        dtype: Any = np.float32,
        existing_names: Iterable[str] = (),
        types: Mapping[str, TensorType] | None = None,
        prefix: str = "",
    ) -> None:
        self.opset = opset
        self.float_dtype = np.dtype(dtype)
        self.prefix = prefix
        self.nodes: list[NodeProto] = []
        self.initializers: list[TensorProto] = []
        self.opsets: dict[str, int] = {"": opset}
        self._names = set(existing_names)
        self._types: dict[str, TensorType] = dict(types or {})
        self._counters: dict[str, int] = {}
        self._constants: dict[tuple, str] = {}

    def __getattr__(self, op_type: str) -> Any:
        if not op_type[:1].isupper():
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {op_type!r}")
        return partial(self.node, op_type)

    def node(
        self,
        op_type: str,
        *inputs: Any,
        domain: str = "",
        domain_version: int = 1,
        n_outputs: int = 1,
        outputs: Iterable[str] | None = None,
        **attributes: Any,
    ) -> Any:
        """Append a node and return the name of its output, or a tuple of names.

        Parameters
        ----------
        op_type : str
            Operator.
        *inputs : str, ndarray, float, int or list
            Names or constants; ``""`` for an omitted input.
        domain : str, default=""
            Domain of the operator.
        domain_version : int, default=1
            Version of that domain, unless it is the default one.
        n_outputs : int, default=1
            Number of outputs.
        outputs : iterable of str, default=None
            Names of the outputs; new names by default.
        **attributes
            Attributes of the node; those that are None are omitted.

        Returns
        -------
        str or tuple of str
            Name of the output, or a tuple if there are several.

        Raises
        ------
        ValueError
            If ``op_type`` is not an operator of ONNX, in the default domain.
        """
        if not domain and not defs.has(op_type):
            raise ValueError(f"ONNX has no operator {op_type!r}: see the list at onnx.ai/onnx/operators.")
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        while names and names[-1] == "":
            names.pop()
        if outputs is None:
            results = [self.unique(op_type) for _ in range(n_outputs)]
        else:
            results = list(outputs)
            self._names.update(results)
        attributes = {name: value for name, value in attributes.items() if value is not None}
        self.nodes.append(
            helper.make_node(
                op_type, names, results, name=self.unique(f"node_{op_type}"), domain=domain, **attributes
            )
        )
        if domain not in self.opsets:
            self.opsets[domain] = max(domain_version, self.opsets.get(domain, 1))
        return results[0] if len(results) == 1 else tuple(results)

    def add_attribute(self, attribute: AttributeProto) -> None:
        """Add an attribute to the last node.

        Parameters
        ----------
        attribute : onnx.AttributeProto
            Attribute, with its name and its value.
        """
        self.nodes[-1].attribute.append(attribute)

    def constant(self, value: Any, dtype: Any = None) -> str:
        """Return the name of a constant; equal constants share one initializer.

        Parameters
        ----------
        value : array-like
            Value; Python floats take the builder's floating-point type, ints int64.
        dtype : dtype, default=None
            Overrides that type.

        Returns
        -------
        str
            Name of the initializer.
        """
        array = np.asarray(value)
        if dtype is not None:
            array = array.astype(dtype)
        elif not isinstance(value, np.ndarray | np.generic):
            # An empty list is a list of axes or a shape, although numpy converts it to floats.
            if array.dtype.kind in "iu" or array.size == 0:
                array = array.astype(np.int64)
            elif array.dtype.kind == "f":
                array = array.astype(self.float_dtype)
        content = tuple(array.ravel()) if array.dtype.kind == "O" else array.tobytes()
        key = (array.dtype.str, array.shape, content)
        if key not in self._constants:
            name = self.unique("constant")
            self.initializers.append(
                numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
            )
            self._constants[key] = name
            self.set_type(name, self.initializers[-1].data_type, array.shape)
        return self._constants[key]

    def unique(self, stem: str) -> str:
        """Return a new name that starts with ``stem``.

        Parameters
        ----------
        stem : str
            Start of the name, after the prefix of the builder.

        Returns
        -------
        str
            Unique name, which is reserved.
        """
        stem = self.prefix + stem
        while True:
            count = self._counters.get(stem, 0)
            self._counters[stem] = count + 1
            name = f"{stem}_{count}"
            if name not in self._names:
                self._names.add(name)
                return name

    def claim(self, name: str) -> bool:
        """Reserve a name, and return False if it already exists.

        Parameters
        ----------
        name : str
            Name.

        Returns
        -------
        bool
            Whether the name was free.
        """
        if name in self._names:
            return False
        self._names.add(name)
        return True

    def set_type(self, name: str, elem_type: int, shape: Iterable[Dim] | None = None) -> str:
        """Set the type of a tensor, and return its name.

        Parameters
        ----------
        name : str
            Tensor.
        elem_type : int
            Type of its elements, a member of onnx.TensorProto.
        shape : iterable of int, str or None, default=None
            Dimensions: numbers, names, or None if unknown; None for a shape of unknown rank.

        Returns
        -------
        str
            The same name.
        """
        self._types[name] = TensorType(elem_type, None if shape is None else tuple(shape))
        return name

    def type(self, name: str) -> TensorType | None:
        """Return the type of a tensor, or None if it is unknown.

        Parameters
        ----------
        name : str
            Tensor.

        Returns
        -------
        TensorType or None
            Type and shape.
        """
        return self._types.get(name)

    def shape(self, name: str) -> tuple[Dim, ...] | None:
        """Return the shape of a tensor, or None if it is unknown.

        Parameters
        ----------
        name : str
            Tensor.

        Returns
        -------
        tuple or None
            Dimensions: numbers, names, or None if unknown.
        """
        known = self._types.get(name)
        return None if known is None else known.shape

    def dtype(self, name: str) -> np.dtype | None:
        """Return the numpy type of a tensor's elements, or None if it is unknown.

        Parameters
        ----------
        name : str
            Tensor.

        Returns
        -------
        numpy.dtype or None
            Type.
        """
        known = self._types.get(name)
        return None if known is None else np.dtype(helper.tensor_dtype_to_np_dtype(known.elem_type))
