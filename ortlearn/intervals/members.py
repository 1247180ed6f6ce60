"""Members: trained or given models whose outputs intervals are computed from."""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass, fields, replace
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from .. import conversion
from ..estimators import OrtGradientOptimizer
from ..estimators.base import BaseOrtGradientEstimator
from ..exceptions import CalibrationWarning, ConversionError
from ..fitting.fitted_model import FittedModel
from ..fitting.resumed_training import find_resumption
from ..fitting.start import new_start
from ..graphs import copy_model, extract_model, opset_versions
from ..graphs.external_tensors import external_initializers
from ..inference.method_outputs import MethodOutputs
from ..inference.sample_chunks import BoundedCall, by_chunks
from ..onnx_files.loading import read_onnx
from ..onnx_files.versions import pin_versions
from ..problem.samples import Samples
from ..quiet import quiet
from ..runtime.checked_sessions import open_session
from ..runtime.devices import Device
from ..runtime.forks import PerProcess
from ..training.graphs.rescaling import last_layer

__all__ = [
    "OLDEST",
    "Member",
    "as_member",
    "is_given",
    "last_features",
    "new_optimizer",
    "output_name",
    "resuming",
    "template",
]

#: Oldest opset that the nodes of intervals are written in.
OLDEST = 13


@dataclass(frozen=True)
class Member:
    """A fitted estimator, and what it reads and gives.

    It reads "X", the "prediction" of the first member, or "both" as columns. It gives its predictions, its
    "probabilities", or the tensor ``tensor`` of its graph.
    """

    estimator: BaseOrtGradientEstimator
    reads: str = "X"
    tensor: str = ""
    gives: str = "prediction"
    file: ModelProto | None = None  # given ONNX file, which is not changed

    @property
    def method(self) -> str:
        """Method of the estimator that returns the output."""
        return "predict_proba" if self.gives == "probabilities" else "predict"

    def __getstate__(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def features(self, X: Any, prediction: np.ndarray | None) -> Any:
        """Return what the estimator reads."""
        if self.reads == "X":
            return X
        column = np.asarray(prediction).reshape(-1, 1)
        X = X.toarray() if issparse(X) and self.reads == "both" else X
        return column if self.reads == "prediction" else np.hstack([column, np.asarray(X, column.dtype)])

    def output(self, X: Any, prediction: np.ndarray | None) -> np.ndarray:
        """Return the output, of shape (n, k), in the type of the graph."""
        model, features = self.estimator._model(), self.features(X, prediction)
        if self.tensor:
            samples = model.read(features)
            if self.tensor != model.problem.trainable.input_name:
                return model.runner._run(self.tensor, samples)
            return samples.toarray() if issparse(samples) else samples
        if self.file is not None:
            return self._run_file(model, model.read(features))
        if self.gives == "probabilities":
            return model.runner.predict_proba(model.read(features))
        found = np.asarray(self.estimator.predict(features), model.problem.dtype)
        return found.reshape(len(found), -1)

    @cached_property
    def _sessions(self) -> PerProcess:
        return PerProcess()

    def _run_file(self, model: Any, samples: Any) -> np.ndarray:
        """Return the output of the given file, bit for bit."""
        assert self.file is not None
        name, sessions = output_name(model, self.file, self.method), self._sessions.values
        if not sessions:
            part = extract_model(self.file, [name])
            sessions[name] = BoundedCall(open_session(part, Device("cpu"), 1), part)
        call = sessions[name]
        found = by_chunks(
            lambda part: call.session.run([name], model.runner._feeds(part, call.session))[0],
            lambda part: call.n_samples(model.runner._inputs(part)),
            samples,
        )
        found = found.reshape(len(found), -1)
        if self.gives == "prediction":
            return found
        return MethodOutputs(model.problem, model.trained).plan(self.method)[1](found)


def output_name(fitted: Any, model: ModelProto, method: str) -> str:
    """Return the output of a model that a method reads."""
    scores = fitted.problem.trainable.scores
    if fitted.problem.trainable.entry.sklearn_steps is not None or (scores and scores.target_transformers):
        raise ConversionError(
            "Steps of this model run in scikit-learn, since they cannot be converted to ONNX, so that no "
            "file has the whole model: apply them to X or y first, and fit a model without them."
        )
    name = MethodOutputs(fitted.problem, fitted.trained).plan(method)[0][0]
    floats = (TensorProto.FLOAT, TensorProto.DOUBLE)
    outputs = [v.name for v in model.graph.output if v.type.tensor_type.elem_type in floats]
    outputs += [node.input[0] for node in model.graph.node if node.op_type == "ZipMap"]
    found = [known for known in (name, f"model_{name}") if known in outputs] or outputs * (len(outputs) == 1)
    if not found:
        raise ConversionError(
            f"None of the outputs {outputs} of the file is known to be that of {method}: keep only one to "
            f"predict, such as ortlearn.graphs.extract_model(file, {outputs[:1]})."
        )
    return found[0]


def template(estimator: Any) -> Any:
    """Return the model of an optimizer, or the model itself."""
    return estimator.estimator if isinstance(estimator, BaseOrtGradientEstimator) else estimator


def is_given(estimator: Any) -> bool:
    """Return whether a model is fitted or an ONNX file, so that its predictions must not change."""
    if isinstance(estimator, BaseOrtGradientEstimator):
        return estimator.__sklearn_is_fitted__()
    return conversion.is_onnx_source(estimator) or conversion.is_fitted(estimator)


def new_optimizer(estimator: Any, seed: int, **changed: Any) -> BaseOrtGradientEstimator:
    """Return an unfitted optimizer for an estimator, or a copy of an optimizer, with changed parameters."""
    if not isinstance(estimator, BaseOrtGradientEstimator):
        return OrtGradientOptimizer(clone(estimator), random_state=seed, **changed)
    if estimator.random_state is None:
        changed["random_state"] = seed
    return clone(estimator).set_params(**changed)


def resuming(estimator: Any, folder: Any, random_state: Any) -> Any:
    """Return an estimator whose trainings resume from the checkpoints in a folder; None begins anew.

    Trainings have the folders that they had when they were begun, in the order of the members.
    """
    if folder is None:
        return estimator
    from ..callbacks import ModelCheckpoint

    if not isinstance(folder, str | os.PathLike) or Path(folder).is_file():
        raise ValueError(f"resume_from={folder!r} must be the folder of a ModelCheckpoint.")
    if random_state is None:
        raise ValueError("resume_from takes an integer random_state, which draws the same samples again.")
    if not isinstance(estimator, BaseOrtGradientEstimator) or is_given(estimator):
        raise ValueError(
            "resume_from resumes trainings of an OrtGradientOptimizer: pass the one that was begun."
        )
    find_resumption(folder)
    others = list(getattr(estimator, "_skl_callbacks", ()))
    own = [item for item in others if isinstance(item, ModelCheckpoint) and item.folder == Path(folder)]
    checkpoint = own[0] if own else ModelCheckpoint(folder)
    known = signature(ModelCheckpoint).parameters.keys() & vars(checkpoint).keys()
    again = ModelCheckpoint(**{**{name: getattr(checkpoint, name) for name in known}, "resume": True})
    return clone(estimator).set_callbacks(again, *(item for item in others if item not in own))


def as_member(estimator: Any, X: Any, y: Any, **parameters: Any) -> Member:
    """Return a given model as a member, without training it."""
    if isinstance(estimator, BaseOrtGradientEstimator):
        return Member(copy.deepcopy(estimator))
    optimizer = OrtGradientOptimizer(estimator, warm_start=True, random_state=0, **parameters)
    with quiet(CalibrationWarning):  # intervals and sets of a file, which training would invalidate
        start = new_start(optimizer._configuration(), Samples(X, y), check_random_state(0), 0)
    state = replace(start.state, start_kept=True)
    optimizer._fitted = FittedModel(start.problem, start.features, state)
    return Member(optimizer, file=_own_file(estimator))


def _own_file(estimator: Any) -> ModelProto | None:
    """Return the model of an ONNX file, unless its weights are in other files."""
    if not conversion.is_onnx_source(estimator):
        return None
    model = read_onnx(estimator)[0]
    model = copy_model(model) if opset_versions(model).get("", OLDEST) >= OLDEST else pin_versions(model)
    return None if external_initializers(model) else model


def last_features(estimator: BaseOrtGradientEstimator) -> str:
    """Return the tensor that the last layer multiplies with its weights.

    It holds the gradients of the predictions of single samples by these weights, if the layer is linear.
    """
    node, weights = last_layer(estimator._model().problem.task(False))
    if node is None or node.op_type not in ("MatMul", "Gemm") or node.input[1] not in weights:
        raise ConversionError(
            "method='laplace' takes a model that ends with a linear layer with trained weights, such as a "
            "linear model or a network: use another method."
        )
    return node.input[0]
