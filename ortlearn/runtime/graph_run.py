"""Run a graph once, by onnxruntime on the CPU."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto

from ..exceptions import MissingRuntimeError
from ..graphs import with_loop_limits
from ..graphs.external_tensors import FILES_FOLDER, for_session

__all__ = ["run_graph"]


def run_graph(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the first output of a graph; other feeds than its inputs are ignored."""
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingRuntimeError(
            "Running a model to find shapes requires onnxruntime: pip install 'ortlearn[onnxruntime]'."
        ) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    light, arrays, folder = for_session(with_loop_limits(model, ""))
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in arrays.items()}
    for name, value in values.items():
        options.add_initializer(name, value)
    if folder:
        options.add_session_config_entry(FILES_FOLDER, folder)
    session = onnxruntime.InferenceSession(
        light.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = {value.name for value in session.get_inputs()}
    return session.run(None, {name: array for name, array in feeds.items() if name in names})[0]
