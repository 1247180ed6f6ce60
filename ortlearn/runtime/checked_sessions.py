"""Sessions on execution providers whose first results are compared with the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto

from ..exceptions import ProviderWarning, warn_user
from .devices import Device
from .onnxruntime_module import runtime_failures
from .sessions import make_session

__all__ = ["CheckedSession", "difference", "open_session"]

#: Maximum relative difference from the CPU, which half precision satisfies, and maximum share of different
#: classes.
TOLERANCE, CLASSES = 0.03, 0.01


def difference(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> str:
    """Return how the results of a provider differ from the CPU; an empty string if they agree."""
    for own, other in zip(found, expected, strict=True):
        if np.shape(own) != np.shape(other):
            return f"its results have the shape {np.shape(own)}, not {np.shape(other)} as on the CPU"
        if other.dtype.kind == "f":
            finite = np.isfinite(other)
            if not np.array_equal(finite, np.isfinite(own)):
                return "its non-finite results differ from those of the CPU"
            distance = np.linalg.norm((own - other)[finite].astype(np.float64))
            share = distance / max(np.linalg.norm(other[finite].astype(np.float64)), 1e-30)
        else:  # classes, some of which are ties up to rounding
            share = float(np.mean(own != other)) if other.size else 0.0
        if not share <= (TOLERANCE if other.dtype.kind == "f" else CLASSES):
            return f"its results differ from those of the CPU by {100 * share:.0f} %"
    return ""


class CheckedSession:
    """A session on a provider, or on the CPU if the provider fails or gives wrong results."""

    def __init__(
        self,
        model: ModelProto,
        device: Device,
        n_jobs: int | None,
        make: Callable[[ModelProto, Device, int | None], Any] = make_session,
    ):
        self._model, self._device, self._n_jobs, self._make = model, device, n_jobs, make
        self._cpu = make_session(model, Device("cpu"), n_jobs)
        self._session: Any = None
        self.get_inputs, self.get_outputs = self._cpu.get_inputs, self._cpu.get_outputs

    @property
    def _sess(self) -> CheckedSession:
        """Low-level session, whose methods skip the checks of ``onnxruntime.InferenceSession``."""
        return self

    def run(self, names: Sequence[str] | None, feeds: dict[str, Any], run_options: Any = None) -> list[Any]:
        """Return the outputs; the first call compares the provider with the CPU."""
        if self._session is not None:
            return self._session.run(names, feeds, run_options)
        expected = self._cpu.run(names, feeds, run_options)
        try:
            session = self._make(self._model, self._device, self._n_jobs)
            found = session.run(names, feeds, run_options)
            reason = difference([np.asarray(v) for v in found], [np.asarray(v) for v in expected])
        except runtime_failures() as error:
            found, reason = expected, " ".join(str(error).split())[:300]
        if reason:
            warn_user(
                f"{self._device.provider} cannot run a graph of this model, so the CPU runs it: {reason}.",
                ProviderWarning,
            )
            session, found = self._cpu, expected
        self._session = session
        return found


def open_session(model: ModelProto, device: Device, n_jobs: int | None) -> Any:
    """Return a session on a device; other providers than CPU and CUDA are compared with the CPU."""
    return (make_session if device.is_native else CheckedSession)(model, device, n_jobs)
