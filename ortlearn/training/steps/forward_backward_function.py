"""A pair of calls, forward and backward, and the state between them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from onnx import ModelProto

from ...exceptions import DeviceError
from ...graphs.files import save_model
from ...runtime.calls import run_vectors
from ...runtime.devices import Device, ort_device, ort_vector
from ...runtime.errors import runtime_errors
from ...runtime.forks import PerProcess
from .engines import Engine

__all__ = ["OrtGradientForwardBackwardFunction"]


class Owner(Protocol):
    """Graphs and sessions that several functions share."""

    device_: Device
    input_names: list[str]
    output_names: list[str]
    weights_to_train: list[str]
    run_options: Any
    debug: bool
    models_: dict[str, ModelProto]

    @property
    def _engine(self) -> Engine: ...

    def new_instance(self) -> OrtGradientForwardBackwardFunction:
        """Return a new function."""


class OrtGradientForwardBackwardFunction:
    """A pair of calls, ``forward`` and ``backward``, and the state between them.

    Created by :meth:`OrtGradientForwardBackward.new_instance`.

    Parameters
    ----------
    owner : OrtGradientForwardBackward
        Graphs and sessions.

    Attributes
    ----------
    owner : OrtGradientForwardBackward
        Graphs and sessions.
    """

    def __init__(self, owner: Owner):
        self.owner = owner
        self._kept = PerProcess()
        self._saved: list[Any] | None = None
        self._device = ort_device(owner.device_)
        self._vector_type = type(ort_vector([], []))

    @property
    def _states(self) -> list[Any]:
        """States of calls of ``forward`` for ``backward``, in this process."""
        return self._kept.values.setdefault("states", [])

    def __reduce__(self) -> tuple:
        return type(self.owner).new_instance, (self.owner,)

    @staticmethod
    def device_name(device: Any) -> str:
        """Return ``"Cpu"`` or ``"Gpu"`` for an OrtDevice.

        Parameters
        ----------
        device : onnxruntime.OrtDevice
            Device of a tensor.

        Returns
        -------
        str
            Its kind.
        """
        return "Cpu" if device.device_type() == type(device).cpu() else "Gpu"

    def input_to_ort(self, tensors: Any, devices: Any = None, debug: bool = False) -> Any:
        """Convert tensors to the vector type of onnxruntime.

        Parameters
        ----------
        tensors : OrtValueVector or sequence of ndarray or OrtValue
            Tensors; a vector is returned unchanged.
        devices : sequence of OrtDevice, default=None
            Device of each array; that of the graphs by default.
        debug : bool, default=False
            Whether to check the devices of the tensors.

        Returns
        -------
        OrtValueVector
            Vector; on the CPU it shares memory with the arrays.

        Raises
        ------
        DeviceError
            If ``debug`` is True and a tensor is on another device.
        """
        if isinstance(tensors, self._vector_type) and not debug:
            return tensors
        n_values = len(tensors)
        devices = [self._device] * n_values if devices is None else list(devices)
        vector = ort_vector(tensors, devices)
        if debug:
            for value, device in zip(vector, devices, strict=True):
                if value.device_name().lower()[:3] != ("cpu" if self.device_name(device) == "Cpu" else "cud"):
                    raise DeviceError(
                        f"A tensor is on {value.device_name()}, but the graph is on "
                        f"{self.device_name(device)}. Copy the tensor there."
                    )
        return vector

    def save_for_backward(self, inputs: Any) -> None:
        """Store the inputs of ``forward`` for ``saved_tensors``.

        Parameters
        ----------
        inputs : sequence of OrtValue
            Inputs of ``forward``.
        """
        self._saved = list(inputs)

    @property
    def saved_tensors(self) -> list[Any]:
        """Inputs of the last ``forward`` with ``training=True``."""
        if self._saved is None:
            raise RuntimeError("Nothing was saved. Call forward(inputs, training=True) first.")
        return self._saved

    def forward(self, inputs: Any, training: bool = False, forward_outputs_cache: Any = None) -> Any:
        """Compute the outputs.

        Parameters
        ----------
        inputs : OrtValueVector or sequence of ndarray or OrtValue
            Inputs of the graph, then the weights to train.
        training : bool, default=False
            Whether ``backward`` will follow.
        forward_outputs_cache : OrtValueVector, default=None
            Tensors that receive the outputs; new ones by default.

        Returns
        -------
        OrtValueVector
            Outputs.

        Raises
        ------
        ValueError
            If the number of inputs is wrong.
        """
        owner = self.owner
        n_expected = len(owner.input_names) + len(owner.weights_to_train)
        if len(inputs) != n_expected:
            raise ValueError(
                f"forward takes {n_expected} tensors, {[*owner.input_names, *owner.weights_to_train]}, "
                f"but got {len(inputs)}."
            )
        engine = owner._engine
        vector = self.input_to_ort(inputs, debug=owner.debug)
        if owner.debug:
            _check_tensors(vector, engine.feed_names, engine.session.get_inputs())
        outputs = ort_vector([], []) if forward_outputs_cache is None else forward_outputs_cache
        if training:
            with runtime_errors():
                # With the inputs, as a vector does not keep the memory of arrays alive.
                self._states.append((engine.forward(vector, outputs), inputs))
            self._saved = inputs
        else:
            self._infer(vector, outputs)
        return outputs

    @runtime_errors()
    def _infer(self, vector: Any, outputs: Any) -> None:
        session = self.owner._engine.forward_session
        read = {value.name for value in session.get_inputs()}
        pairs = [(n, v) for n, v in zip(self.owner._engine.feed_names, vector, strict=True) if n in read]
        feeds = ort_vector([value for _, value in pairs], [self._device] * len(pairs))
        names = self.owner.output_names
        run_vectors(
            session, [n for n, _ in pairs], feeds, names, outputs, self._device, self.owner.run_options
        )

    def backward(self, grad_outputs: Any, backward_outputs_cache: Any = None) -> Any:
        """Compute the gradients, after ``forward`` with ``training=True``.

        Parameters
        ----------
        grad_outputs : OrtValueVector or sequence of ndarray or OrtValue
            Gradient of the loss with respect to every output.
        backward_outputs_cache : OrtValueVector, default=None
            Tensors that receive the gradients; new ones by default.

        Returns
        -------
        OrtValueVector
            Gradients with respect to the floating-point inputs, then to the weights.

        Raises
        ------
        RuntimeError
            If ``forward`` was not called with ``training=True`` before.
        ValueError
            If the number of gradients is wrong.
        """
        owner = self.owner
        if not self._states:
            raise RuntimeError("Call forward(inputs, training=True) before backward.")
        if len(grad_outputs) != len(owner.output_names):
            raise ValueError(
                f"backward takes one gradient for each of the outputs {owner.output_names}, "
                f"but got {len(grad_outputs)}."
            )
        vector = self.input_to_ort(grad_outputs, debug=owner.debug)
        if owner.debug:
            _check_tensors(vector, owner.output_names, owner._engine.forward_session.get_outputs())
        outputs = ort_vector([], []) if backward_outputs_cache is None else backward_outputs_cache
        state, _inputs = self._states.pop()  # the inputs live until the end of the call
        with runtime_errors():
            owner._engine.backward(vector, outputs, state)
        return outputs

    def save_onnx_graph(
        self, folder: str | Path, prefix: str | None = None, suffix: str | None = None
    ) -> dict[str, Path]:
        """Write the graphs to files.

        Parameters
        ----------
        folder : str or pathlib.Path
            Folder, created if missing.
        prefix, suffix : str, default=None
            Prefix and suffix of the names ``training``, ``forward`` and ``backward`` (if a separate graph).

        Returns
        -------
        dict of str to pathlib.Path
            Path of each file.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        models = self.owner.models_
        paths = {name: folder / f"{prefix or ''}{name}{suffix or ''}.onnx" for name in models}
        for name, model in models.items():
            save_model(model, paths[name])
        return paths


def _check_tensors(vector: Any, names: Sequence[str], infos: Sequence[Any]) -> None:
    """Raise a ValueError if tensors, or their gradients, differ from a graph in type or known dimensions."""
    known = {info.name: info for info in infos}
    for value, name in zip(vector, names, strict=True):
        info, shape = known[name], value.shape()
        if value.data_type() != info.type:
            raise ValueError(f"Tensor {name!r} must be a {info.type}, but is a {value.data_type()}.")
        fits = [not isinstance(d, int) or d == got for d, got in zip(info.shape, shape, strict=False)]
        if len(shape) != len(info.shape) or not all(fits):
            raise ValueError(f"Tensor {name!r} must have the shape {info.shape}, but has {shape}.")
