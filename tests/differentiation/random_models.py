"""Random models: a pool of tensors with values, and nodes that run when they are added."""

from __future__ import annotations

import numpy as np
import onnxruntime
from onnx import NodeProto, TensorProto, helper, numpy_helper
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

from ortlearn.graphs import node_inputs, subgraphs, value_types

__all__ = ["SINCE", "Generator", "Misfit", "info", "load", "run_model"]

TYPES = {np.dtype(np.float64): TensorProto.DOUBLE, np.dtype(np.float32): TensorProto.FLOAT}


#: First versions of operators.
SINCE = {"HardSwish": 14, "Mish": 18, "Gelu": 20, "Trilu": 14, "LayerNormalization": 17,
         "GroupNormalization": 21, "CastLike": 15}  # fmt: skip


class Misfit(Exception):
    """An operator does not fit the tensors: its generator is skipped."""


def load(model):
    """Return a function that runs a model by onnxruntime, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [value.name for value in session.get_inputs()]
    return lambda feeds: session.run(None, {name: feeds[name] for name in names})


def run_model(model, feeds):
    """Return the outputs of a model."""
    return load(model)(feeds)


def info(name, value, dims=None):
    """Return the declaration of a tensor that has a value."""
    elem_type = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_value_info(name, elem_type, value.shape if dims is None else dims)


class Generator:
    """A model under construction.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of randomness.
    opset : int
        Version of the default operator set.
    empty : bool
        Whether tensors may have no elements.
    """

    def __init__(self, rng, opset, empty):
        self.rng, self.opset, self.empty = rng, opset, empty
        self.values: dict[str, np.ndarray] = {}
        self.inputs: list[str] = []
        self.constants: list[TensorProto] = []
        self.nodes: list[NodeProto] = []
        #: Relative error of the least precise kernel.
        self.precision = 2.3e-16
        self.domains: set[str] = set()

    # draws

    def choice(self, options):
        """Return one of several values."""
        return options[int(self.rng.integers(len(options)))]

    def chance(self, p):
        """Return True with a probability."""
        return bool(self.rng.random() < p)

    def dims(self, rank):
        """Return a small shape."""
        small = [1, 1, 2, 2, 3, 3, 4]
        return tuple(0 if self.empty and self.chance(0.2) else self.choice(small) for _ in range(rank))

    def normal(self, shape):
        """Return values, sometimes with zeros and ties."""
        values = np.asarray(self.rng.normal(size=shape))
        return np.round(values) if self.chance(0.05) else values

    # tensors

    def _named(self, prefix):
        return f"{prefix}{len(self.values)}"

    def add_input(self, value):
        """Return the name of a new input."""
        name = self._named("x")
        self.values[name] = np.asarray(value)
        self.inputs.append(name)
        return name

    def constant(self, value):
        """Return the name of a new initializer."""
        name = self._named("c")
        self.values[name] = np.asarray(value)
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def given(self, value):
        """Return the name of an input or of a constant with a value."""
        value = np.asarray(value)
        return self.constant(value) if self.chance(0.6) else self.add_input(value)

    def floats(self, fits=None):
        """Return the names of floating-point tensors that fit."""
        return [n for n, v in self.values.items() if v.dtype == np.float64 and (fits is None or fits(v))]

    def pick(self, fits=None, fresh=None):
        """Return a tensor that fits, preferably a recent one, or a new input of the shape ``fresh``."""
        names = self.floats(fits)
        if fresh is not None and (not names or self.chance(0.2)):
            return self.add_input(self.normal(fresh))
        if not names:
            raise Misfit
        return names[-1 - int(self.rng.random() ** 2 * len(names))]

    def of_shape(self, shape):
        """Return a tensor of a shape, new or not."""
        return self.pick(lambda v: v.shape == tuple(shape), fresh=tuple(shape))

    def shape(self, name):
        """Return the shape of a tensor."""
        return self.values[name].shape

    # nodes

    def node(self, op_type, *inputs, n_outputs=1, domain="", **attributes):
        """Add a node, in float32 if onnxruntime has no other kernel, and return its outputs."""
        attributes = {key: value for key, value in attributes.items() if value is not None}
        try:
            return self._add(op_type, inputs, n_outputs, domain, attributes)
        except NoKernel:
            if not any(n and self.values[n].dtype == np.float64 for n in inputs):
                raise Misfit from None
            self.precision = max(self.precision, 1e-7)
            narrow = [
                self.node("Cast", n, to=TensorProto.FLOAT) if n and self.values[n].dtype == np.float64 else n
                for n in inputs
            ]
            found = self._add(op_type, narrow, n_outputs, domain, attributes)
            found = [found] if n_outputs == 1 else found
            wide = [
                self.node("Cast", n, to=TensorProto.DOUBLE) if self.values[n].dtype == np.float32 else n
                for n in found
            ]
            return wide[0] if n_outputs == 1 else wide

    def _add(self, op_type, inputs, n_outputs, domain, attributes):
        outputs = [f"{self._named('t')}_{i}" for i in range(n_outputs)]
        node = helper.make_node(op_type, inputs, outputs, name=outputs[0], domain=domain, **attributes)
        names = sorted(node_inputs(node))
        fixed = {tensor.name for tensor in self.constants}
        graph = helper.make_graph(
            [node],
            "node",
            [info(n, self.values[n]) for n in names if n not in fixed],
            [helper.make_empty_tensor_value_info(n) for n in outputs],
            [tensor for tensor in self.constants if tensor.name in names],
        )
        if domain:
            self.domains.add(domain)
        model = self._model(graph)
        try:
            found = run_model(model, self.values)
        except NoKernel:
            raise
        except Exception as error:
            raise Misfit from error
        if op_type != "Einsum" and not any(subgraphs(node)):
            self._check_shapes(model, outputs, found)
        for value in found:
            small = value.size <= 400 and (value.dtype.kind != "f" or np.isfinite(value).all())
            if not small or (value.dtype.kind == "f" and value.size and np.abs(value).max() > 30):
                raise Misfit
            if value.size == 0 and not self.empty:
                raise Misfit
        self.nodes.append(node)
        self.values.update(zip(outputs, found, strict=True))
        return outputs[0] if n_outputs == 1 else outputs

    def _check_shapes(self, model, outputs, found):
        """Skip empty tensors that onnxruntime returns with another shape than specified."""
        types = value_types(model)
        for name, value in zip(outputs, found, strict=True):
            shape = types[name].shape if name in types else None
            wrong = [
                d for d, v in zip(shape or (), value.shape, strict=False) if isinstance(d, int) and d != v
            ]
            if wrong or (shape is not None and len(shape) != value.ndim):
                raise Misfit

    def _model(self, graph):
        opsets = [helper.make_opsetid("", self.opset)]
        opsets += [helper.make_opsetid(d, {"ai.onnx.ml": 3}.get(d, 1)) for d in sorted(self.domains)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9 if self.opset < 21 else 10)

    def build(self, outputs):
        """Return the model with some outputs; some dimensions of inputs are named or unknown."""
        style = self.choice(["static", "static", "names", "mixed", "unknown"])
        inputs = [info(n, self.values[n], self._declared(self.shape(n), style)) for n in self.inputs]
        declared = [info(n, self.values[n], [None] * self.values[n].ndim) for n in outputs]
        return self._model(helper.make_graph(self.nodes, "random", inputs, declared, self.constants))

    def _declared(self, shape, style):
        kinds = {"static": [0], "names": [1], "mixed": [0, 1, 2], "unknown": [2]}[style]
        return [[dim, f"d{dim}", None][self.choice(kinds)] for dim in shape]
