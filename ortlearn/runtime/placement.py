"""Assignment of nodes to execution providers."""

from __future__ import annotations

from collections import Counter

from onnx import ModelProto

from ..exceptions import DeviceError
from ..graphs.nodes import all_nodes
from .devices import Device
from .onnxruntime_module import runtime
from .providers import CPU
from .sessions import make_session, session_options

__all__ = ["node_providers"]

_RECORD = "session.record_ep_graph_assignment_info"


def node_providers(model: ModelProto, device: Device, n_jobs: int | None = None) -> dict[str, dict[str, int]]:
    """Return the number of nodes that each execution provider runs, by operator."""
    if device.provider == CPU:
        return {CPU: dict(Counter(node.op_type for node in all_nodes(model.graph)))}
    ort = runtime()
    if not hasattr(ort.InferenceSession, "get_provider_graph_assignment_info"):
        raise DeviceError(
            f"onnxruntime {ort.__version__} does not report the provider of a node. Install 1.24 or later."
        )
    options = session_options(n_jobs)
    options.add_session_config_entry(_RECORD, "1")
    session = make_session(model, device, options=options)
    counts: dict[str, Counter] = {}
    for part in session.get_provider_graph_assignment_info():
        counts.setdefault(part.ep_name, Counter()).update(node.op_type for node in part.get_nodes())
    return {provider: dict(found) for provider, found in counts.items()}
