"""Results of an adaptation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..evaluation.data_files import Table
from ..evaluation.onnx_model import OnnxModel, with_column_names
from ..evaluation.predictions import Model
from ..onnx_files.loading import load_onnx
from ..preprocessing.estimator_checks import is_trainer
from ..trainable.conversion import to_trainable
from .drift import ColumnDrift
from .gate import Verdict
from .two_samples import TwoSampleTest

__all__ = ["Adaptation", "Drift", "onnx_bytes"]


@dataclass(frozen=True)
class Drift:
    """Differences between reference and new samples.

    Attributes
    ----------
    columns : list of ColumnDrift
        The drifted columns first.
    prediction : ColumnDrift
        Drift of the predictions of the model in use.
    scores : dict of str to dict
        By ``"reference"`` and ``"new"``, the scores of the model in use. If it was fitted on the reference
        samples, its scores on them are too good.
    two_samples : TwoSampleTest or None
        None if there are too few samples.
    """

    columns: list[ColumnDrift]
    prediction: ColumnDrift
    scores: dict[str, dict[str, float]]
    two_samples: TwoSampleTest | None


@dataclass(frozen=True)
class Adaptation:
    """Result of :func:`adapt`.

    Attributes
    ----------
    old, new : Model
        The model in use and the retrained one, with the method ``predict`` for tables.
    outcome : {"promoted", "kept", "refused"}
        Whether the new model is to replace the old one: it is kept without evidence of a gain, and a new one
        is refused if it breaks a limit of the gate. A dry run changes no folder, whatever the outcome.
    reasons : list of str
        Why the model is kept or the new one refused.
    candidate : str
        ``"warm_start"``, ``"refit"``, ``"refit_both"``, or ``"keep"``.
    losses : dict of str to float
        Mean losses of the candidates in cross-validation.
    verdict : Verdict or None
        Scores, groups, size and latency; None if no candidate was preferred to the model in use.
    drift : Drift or None
        None without reference samples.
    n_samples, n_held_out : int
        Numbers of new samples for training and for the gate.
    parameters : dict
        Parameters of the warm start.
    samples : Table
        New samples of the training.
    content : bytes or None
        ONNX file of the retrained model; None if it has no such form, or is not retrained.
    version : int or None
        Number of the version in the folder, if one was added.
    """

    old: Model = field(repr=False)
    new: Model = field(repr=False)
    outcome: str
    reasons: list[str]
    candidate: str
    losses: dict[str, float]
    verdict: Verdict | None
    drift: Drift | None
    n_samples: int
    n_held_out: int
    parameters: dict[str, Any]
    samples: Table = field(repr=False)  # new samples of the training
    content: bytes | None = field(default=None, repr=False)
    version: int | None = None

    @property
    def estimator(self) -> Any:
        """The model that is to be used: an estimator, or an ONNX model."""
        return self.new.source if self.outcome == "promoted" else self.old.source

    @property
    def onnx(self) -> bytes:
        """The retrained model as the content of an ONNX file."""
        return onnx_bytes(self.new, self.samples) if self.content is None else self.content


def onnx_bytes(model: Model, samples: Table | None = None) -> bytes:
    """Return a model as the content of an ONNX file; samples show the types of its columns."""
    source = model.source
    if isinstance(model, OnnxModel):
        found = load_onnx(source)
    elif is_trainer(source):
        found = source.get_trained_onnx()
    else:
        found = to_trainable(source, X=None if samples is None else model.features(samples)).with_weights({})
    return with_column_names(found, model.column_names).SerializeToString()
