"""Open ONNX files, for the estimators, derivatives, the command line and benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto

from ..runtime.errors import runtime_errors
from ..runtime.graph_run import run_graph
from .decompositions import decompose_operators
from .loading import prepare_onnx, read_onnx
from .probed_shapes import Feeds, Run, with_probed_shapes

__all__ = ["OpenedFile", "open", "open_file"]


@dataclass(frozen=True)
class OpenedFile:
    """An ONNX file as read, and its graph of differentiable standard operators."""

    file: ModelProto
    model: ModelProto


@runtime_errors()
def open_file(
    source: Any,
    feeds: Feeds | None = None,
    *,
    run: Run = run_graph,
    integers: bool = False,
    trainable: bool = False,
) -> OpenedFile:
    """Return a file as read and opened; parameters are those of :func:`open`."""
    file, label = read_onnx(source)
    model = decompose_operators(prepare_onnx(file, label, integers, trainable))
    return OpenedFile(file, model if feeds is None else with_probed_shapes(model, run, feeds))


def open(  # noqa: A001 - as gzip.open and others
    model: Any,
    feeds: Mapping[str, np.ndarray] | Sequence[Mapping[str, np.ndarray]] | str | None = None,
    *,
    trainable: bool = False,
    straight_through: bool = False,
) -> ModelProto:
    """Return an ONNX file as a graph that can be differentiated.

    The file is checked, opsets below 13 are converted to 18, local functions are inlined, weights in
    constants and in attributes of operators of ``ai.onnx.ml`` become initializers, and these operators become
    standard ones. Tensors of the file keep their names. ``onnx_derivative``, the estimators and the command
    line open files in this way.

    Parameters
    ----------
    model : onnx.ModelProto, bytes, str or os.PathLike
        ONNX model; it is not changed.
    feeds : mapping of str to ndarray, sequence of mappings, or "random", default=None
        Values of all inputs in one run or several, with which the model is run to find the ranks of tensors
        that are otherwise unknown. "random" draws values of several sizes, and also fixes sizes that are the
        same in all runs.
    trainable : bool, default=False
        Whether the graph is prepared as the estimators do: float16 becomes float32, a fixed number of samples
        becomes free, and opsets that the installed onnxruntime cannot run are converted to 21.
    straight_through : bool, default=False
        Whether weights that are integers before a DequantizeLinear become floats that the graph rounds.

    Returns
    -------
    onnx.ModelProto
        Graph with opset 13 or later.

    Raises
    ------
    ConversionError
        If the file cannot be read, or is invalid, too large, or of an unsupported version.
    ExecutionError
        If it does not run with ``feeds``.

    Examples
    --------
    >>> from onnx import parser
    >>> from ortlearn import onnx_files
    >>> from ortlearn.graphs import opset_versions
    >>> file = parser.parse_model('''
    ...     <ir_version: 6, opset_import: ["": 11]> g (float[N,2] x) => (float[N,1] y)
    ...     { w = Constant <value = float[2,1] {1, 2}> () y = MatMul (x, w) }''')
    >>> graph = onnx_files.open(file)
    >>> opset_versions(graph), [tensor.name for tensor in graph.graph.initializer]
    ({'': 18}, ['w'])
    """
    return open_file(model, feeds, integers=straight_through, trainable=trainable).model
