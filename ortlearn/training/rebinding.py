"""Bindings of sessions whose providers have a memory of their own, though tensors stay with the CPU."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .runtime import runtime

__all__ = ["Rebinding", "rebinding_session"]


class Rebinding:
    """A binding that hands its inputs over at every run: onnxruntime copies those of the CPU when bound.

    Parameters
    ----------
    binding : onnxruntime.IOBinding
        Binding.
    """

    def __init__(self, binding: Any):
        self._binding = binding
        self._inputs: dict[str, Any] = {}
        self._iobinding = binding._iobinding

    def __getattr__(self, name: str) -> Any:
        return getattr(self._binding, name)

    def bind_ortvalue_input(self, name: str, value: Any) -> None:
        """Bind an input, an OrtValue of either interface."""
        self._inputs[name] = getattr(value, "_ortvalue", value)

    def bind_ortvalue_output(self, name: str, value: Any) -> None:
        """Bind an output, an OrtValue of either interface."""
        self._iobinding.bind_ortvalue_output(name, getattr(value, "_ortvalue", value))

    def refresh(self) -> Any:
        """Hand the inputs over as they are now, and return the binding."""
        for name, value in self._inputs.items():
            self._iobinding.bind_ortvalue_input(name, value)
        return self._binding


@lru_cache(maxsize=1)
def rebinding_session() -> Any:
    """Return the class of sessions whose bindings are of this kind."""

    class RebindingSession(runtime().InferenceSession):  # type: ignore[name-defined, misc]
        def io_binding(self) -> Rebinding:
            return Rebinding(super().io_binding())

        def run_with_iobinding(self, iobinding: Any, run_options: Any = None) -> None:
            bound = iobinding.refresh() if isinstance(iobinding, Rebinding) else iobinding
            super().run_with_iobinding(bound, run_options)

    return RebindingSession
