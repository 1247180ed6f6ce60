"""Forward and backward of a graph as two calls, for custom training loops."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from ...exceptions import DeviceError, NoTrainableWeightError
from ...graphs import extract_model, initializer_arrays, inline_functions
from ...runtime.devices import Device, parse_device
from ...runtime.errors import runtime_errors
from ...runtime.forks import PerProcess
from ...runtime.onnxruntime_module import runtime
from .engines import Engine, make_engine
from .forward_backward_function import OrtGradientForwardBackwardFunction

__all__ = ["OrtGradientForwardBackward"]

logger = logging.getLogger("ortlearn.training")


class OrtGradientForwardBackward:
    """Forward and backward of an ONNX graph as two calls.

    A custom training loop computes the loss and its gradient with respect to the outputs between the two
    calls. See :meth:`new_instance`.

    Parameters
    ----------
    onnx_model : onnx.ModelProto
        Graph to differentiate.
    weights_to_train : list of str, default=None
        Names of the initializers to train, in the order of the arguments of ``forward``; all floating-point
        initializers by default.
    input_names : list of str, default=None
        Inputs in the order of the arguments of ``forward``; those of the graph by default.
    output_names : list of str, default=None
        Outputs, all of floating-point types; those of the graph by default.
    class_name : str, default=None
        Class name of the instances.
    sess_options : onnxruntime.SessionOptions, default=None
        Options of the sessions.
    providers : str, Device or list, default=None
        Name or result of :func:`~ortlearn.training.parse_device`, or a list of execution providers; the CPU
        by default.
    provider_options : list of dict, default=None
        Options of the providers.
    run_options : onnxruntime.RunOptions, default=None
        Options of runs without training.
    graph_builder_config : OrtModuleGraphBuilderConfiguration, default=None
        Selects ``gradient="ort"`` instead of ``"auto"``. Its names and options have no effect.
    device_index : int, default=0
        Index of the GPU.
    enable_logging : bool, default=False
        Whether to log the construction to the logger ``ortlearn.training``.
    debug : bool, default=False
        Whether to check number, type and device of the tensors passed to ``forward`` and ``backward``.
    gradient : {"auto", "rules", "ort", "straight_through"}, default="auto"
        ``"rules"`` and ``"auto"`` use ortlearn's gradient rules, on any onnxruntime, ``"ort"`` the builder
        and the TrainingAgent of onnxruntime-training, for the operators that it is right for.
        ``"straight_through"`` is ``"rules"`` with operators that round differentiated as identities.
    input_gradients : bool, default=True
        Whether to compute the gradients of the floating-point inputs.

    Raises
    ------
    NoTrainableWeightError
        If there is no weight, or a name is not an initializer.
    GradientError
        If an operator has no gradient, or none that is known to be right for ``gradient="ort"``.
    DeviceError
        If a provider is unknown or missing.
    MissingRuntimeError
        If onnxruntime-training is not installed, for ``gradient="ort"``.

    Examples
    --------
    >>> import numpy
    >>> from sklearn.linear_model import LinearRegression
    >>> from ortlearn.conversion import sklearn_to_onnx
    >>> from ortlearn.training import OrtGradientForwardBackward
    >>> X = numpy.array([[0.0], [1.0]], dtype=numpy.float32)
    >>> onx = sklearn_to_onnx(LinearRegression().fit(X, [1.0, 3.0]), 1)
    >>> function = OrtGradientForwardBackward(onx).new_instance()
    >>> weights = [numpy.array([[2.0]], numpy.float32), numpy.array([1.0], numpy.float32)]
    >>> function.forward([X, *weights], training=True)[0].numpy().ravel().tolist()
    [1.0, 3.0]
    >>> gradients = function.backward([numpy.ones((2, 1), numpy.float32)])
    >>> [gradient.numpy().ravel().tolist() for gradient in gradients]
    [[2.0, 2.0], [1.0], [2.0]]
    """

    def __init__(
        self,
        onnx_model: ModelProto,
        weights_to_train: Any = None,
        input_names: list[str] | None = None,
        output_names: list[str] | None = None,
        class_name: str | None = None,
        sess_options: Any = None,
        providers: Any = None,
        provider_options: Any = None,
        run_options: Any = None,
        graph_builder_config: Any = None,
        device_index: int = 0,
        enable_logging: bool = False,
        debug: bool = False,
        gradient: str = "auto",
        input_gradients: bool = True,
    ) -> None:
        onnx_model = inline_functions(onnx_model)
        graph = onnx_model.graph
        initializers = {tensor.name for tensor in graph.initializer}
        self.onnx_model = onnx_model
        self.input_names = input_names or [v.name for v in graph.input if v.name not in initializers]
        self.output_names = output_names or [v.name for v in graph.output]
        self.weights_to_train = _check_weights(onnx_model, weights_to_train)
        self.class_name = class_name or "TrainingFunction"
        self.sess_options = sess_options
        self.provider_options = provider_options
        self.providers = providers
        self.run_options = run_options
        self.graph_builder_config = graph_builder_config
        self.device_index = device_index
        self.enable_logging = enable_logging
        self.debug = debug
        self.gradient = gradient
        self.input_gradients = input_gradients
        self._build()

    def _log(self, message: str, *values: Any) -> None:
        if self.enable_logging:
            logger.info("[OrtGradientForwardBackward] " + message, *values)

    @runtime_errors()
    def _build(self) -> None:
        """Build both graphs and their sessions."""
        self.device_, providers = _pick_device(self.providers, self.device_index)
        self._log("weights_to_train=%r", self.weights_to_train)
        model = _with_outputs(self.onnx_model, self.output_names)
        arguments = {
            "options": self.sess_options,
            "provider_options": self.provider_options,
            "providers": providers,
        }
        self._log("create the sessions on %r", self.device_)
        self._make_engine = partial(
            make_engine,
            "ort" if self.gradient == "auto" and self.graph_builder_config is not None else self.gradient,
            model,
            self.input_names,
            self.weights_to_train,
            self._input_gradients(model),
            self.device_,
            arguments,
        )
        self._engines = PerProcess()
        self.models_ = self._engine.models
        self.gradient_names_ = self._engine.gradient_names
        self._log("gradients=%r", self.gradient_names_)
        self.cls_type_ = type(self.class_name, (OrtGradientForwardBackwardFunction,), {})

    @property
    def _engine(self) -> Engine:
        engines = self._engines.values
        if not engines:
            engines["engine"] = self._make_engine()
        return engines["engine"]

    def _input_gradients(self, model: ModelProto) -> list[str]:
        """Return the inputs whose gradient is computed."""
        return _float_inputs(model, self.input_names) if self.input_gradients else []

    def new_instance(self) -> OrtGradientForwardBackwardFunction:
        """Return a new object with ``forward`` and ``backward``.

        Returns
        -------
        OrtGradientForwardBackwardFunction
            Object with a separate state; graphs and sessions are shared.
        """
        return self.cls_type_(self)

    def get_initializer(self, name: str, exc: bool = True) -> np.ndarray | None:
        """Return an initializer of the model.

        Parameters
        ----------
        name : str
            Name.
        exc : bool, default=True
            Whether an unknown name is an error; otherwise None is returned.

        Returns
        -------
        ndarray or None
            Value.

        Raises
        ------
        KeyError
            If there is no such initializer and ``exc`` is True.
        """
        arrays = initializer_arrays(self.onnx_model, [name])
        if name not in arrays and exc:
            known = [tensor.name for tensor in self.onnx_model.graph.initializer]
            raise KeyError(f"No initializer is named {name!r}. The model has {known}.")
        return arrays.get(name)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without objects of onnxruntime, which are rebuilt."""
        kept = {k: v for k, v in self.__dict__.items() if not k.startswith("_") and not k.endswith("_")}
        return {**kept, "sess_options": None, "run_options": None, "graph_builder_config": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._build()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(weights_to_train={self.weights_to_train})"


def _check_weights(model: ModelProto, names: Sequence[str] | None) -> list[str]:
    floats = [
        t.name for t in model.graph.initializer if t.data_type in (TensorProto.FLOAT, TensorProto.DOUBLE)
    ]
    chosen = floats if names is None else list(names)
    known = [tensor.name for tensor in model.graph.initializer]
    missing = [name for name in chosen if name not in known]
    if missing or not chosen:
        raise NoTrainableWeightError(
            f"The weights {missing} are not initializers of the graph, which has {known}."
            if missing
            else f"The graph has no floating-point initializer to train, only {known}."
        )
    return chosen


def _pick_device(providers: Any, index: int) -> tuple[Device, list[Any] | None]:
    """Return the device of the argument ``providers``, and the providers if it is a list of them."""
    if isinstance(providers, Device):
        return providers, None
    if providers is None or isinstance(providers, str):
        name = providers or "cpu"
        if name == "cuda" and index:
            name = f"cuda:{index}"
        return parse_device(name), None
    available = runtime().get_available_providers()
    names = [provider if isinstance(provider, str) else provider[0] for provider in providers]
    missing = [name for name in names if name not in available]
    if missing or not names:
        raise DeviceError(
            f"The providers {missing} are not available. This build of onnxruntime has {available}."
        )
    return Device("cuda" if names[0] == "CUDAExecutionProvider" else "cpu", index), list(providers)


def _float_inputs(model: ModelProto, names: Sequence[str]) -> list[str]:
    floats = (TensorProto.FLOAT, TensorProto.DOUBLE)
    types = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
    return [name for name in names if types.get(name) in floats]


def _with_outputs(model: ModelProto, names: Sequence[str]) -> ModelProto:
    own = [value.name for value in model.graph.output]
    return model if list(names) == own else extract_model(model, list(names))
