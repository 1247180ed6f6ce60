"""Calls of onnxruntime on tensors that stay on a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np

from .devices import Device, ort_device
from .onnxruntime_module import runtime

__all__ = ["ArrayCall", "BoundCall", "run_vectors", "saved_tensors"]

#: Tensors by name.
Tensors = Mapping[str, Any]


class BoundCall:
    """A session whose inputs and outputs are bound to tensors.

    Inputs are read from ``values``. Outputs are written to ``results`` or ``values``, if one has the name;
    each call allocates the others on ``device``.
    """

    def __init__(
        self, session: Any, values: Tensors, results: Tensors | None = None, device: Device | None = None
    ):
        self._binding = binding = session.io_binding()._iobinding
        self._names = [value.name for value in session.get_inputs()]
        self._device = ort_device(device or Device("cpu"))
        # Inputs are copied to the memory of other providers when they are bound.
        self._rebinds = session.copies_inputs
        self._inputs: dict[str, Any] = {}
        self.bind(values)
        targets, names = {**values, **(results or {})}, [value.name for value in session.get_outputs()]
        self._outputs = {name: targets[name] for name in names if name in targets}
        self._new = [name for name in names if name not in targets]
        for name in self._new:  # before the others, so that they are the first outputs
            binding.bind_output(name, self._device)
        for name, value in self._outputs.items():
            binding.bind_ortvalue_output(name, _low_level(value))
        self._run = partial(session._sess.run_with_iobinding, binding, _default_run_options())
        # A binding does not keep the memory of numpy arrays alive.
        self._run.kept = self._inputs, self._outputs  # type: ignore[attr-defined]

    @property
    def function(self) -> Callable[[], None]:
        """Function that runs the call, the fastest one."""
        return self if self._new or self._rebinds else self._run

    def __call__(self) -> None:
        """Run the session."""
        for name in self._new:  # the outputs of the last call would require equal shapes
            self._binding.bind_output(name, self._device)
        if self._rebinds:
            self.bind(self._inputs)
        self._run()

    def bind(self, values: Tensors) -> None:
        """Replace tensors of inputs; names of other tensors are ignored."""
        for name in self._names:
            if name in values:
                self._inputs[name] = values[name]
                self._binding.bind_ortvalue_input(name, _low_level(values[name]))

    def new_outputs(self) -> dict[str, Any]:
        """Return the outputs that the last call allocated."""
        found = self._binding.get_outputs()  # reading all of them takes up to 40 us
        return {name: found[index] for index, name in enumerate(self._new)}


class ArrayCall:
    """A session on the CPU that reads and writes vectors of numpy, block by block.

    Only vectors of another type, and those that are not contiguous, are copied.
    """

    def __init__(self, session: Any, inputs: Tensors, outputs: Tensors, dtype: np.dtype, size: int) -> None:
        binding, self._session = session.io_binding()._iobinding, session._sess
        self._binding, self._device, self._type = binding, ort_device(Device("cpu")), dtype.type
        self._vectors = []
        for bind, vectors in ((binding.bind_input, inputs), (binding.bind_output, outputs)):
            for name, array in vectors.items():
                is_shared = array.dtype == dtype and array.flags.c_contiguous
                own = array if is_shared else np.empty(size, dtype)
                step = own.itemsize if is_shared else 0
                self._vectors.append((bind, name, own.ctypes.data, step, None if is_shared else own, array))
        self._n_inputs = len(inputs)

    def __call__(self, start: int, stop: int) -> None:
        """Run the session on the samples of a block."""
        shape = [stop - start]
        for number, (bind, name, address, step, own, array) in enumerate(self._vectors):
            if own is not None and number < self._n_inputs:
                own[: stop - start] = array[start:stop]
            bind(name, self._device, self._type, shape, address + start * step)
        self._session.run_with_iobinding(self._binding, _default_run_options())
        for _, _, _, _, own, array in self._vectors[self._n_inputs :]:
            if own is not None:
                array[start:stop] = own[: stop - start]


def saved_tensors(session: Any, values: Tensors, device: Device) -> dict[str, Any]:
    """Return the outputs of a session that are not in ``values``, allocated by a first call."""
    call = BoundCall(session, values, device=device)
    call()
    return call.new_outputs()


def _low_level(value: Any) -> Any:
    """Return an OrtValue of the interface in C++."""
    return getattr(value, "_ortvalue", value)


@lru_cache(maxsize=1)
def _default_run_options() -> Any:
    return runtime().RunOptions()


def run_vectors(
    session: Any,
    input_names: list[str],
    feeds: Any,
    output_names: list[str],
    fetches: Any,
    device: Any,
    run_options: Any = None,
) -> None:
    """Run a session on vectors of tensors; tensors already in ``fetches`` are written in place."""
    session._sess.run_with_ortvaluevector(
        run_options or _default_run_options(),
        input_names,
        feeds,
        output_names,
        fetches,
        [device] * len(output_names),
    )
