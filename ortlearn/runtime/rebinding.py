"""Bindings for providers that copy inputs from the CPU to their memory."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .onnxruntime_module import runtime

__all__ = ["Rebinding", "rebinding_session"]


class Rebinding:
    """A binding that binds its inputs again before every run.

    onnxruntime copies inputs on the CPU when they are bound, so that later changes would have no effect.
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
        """Bind the inputs with their current values, and return the binding."""
        for name, value in self._inputs.items():
            self._iobinding.bind_ortvalue_input(name, value)
        return self._binding


@lru_cache(maxsize=1)
def rebinding_session() -> Any:
    """Return the class of sessions with such bindings."""

    class RebindingSession(runtime().InferenceSession):  # type: ignore[name-defined, misc]
        def io_binding(self) -> Rebinding:
            return Rebinding(super().io_binding())

        def run_with_iobinding(self, iobinding: Any, run_options: Any = None) -> None:
            bound = iobinding.refresh() if isinstance(iobinding, Rebinding) else iobinding
            super().run_with_iobinding(bound, run_options)

    return RebindingSession
