"""Convert interval and set estimators to the contents of saved files, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import signature
from typing import Any

from .. import conversion
from ..estimators import saved as of_optimizers
from ..estimators.base import BaseOrtGradientEstimator
from ..exceptions import OmittedWarning, SavedFileError, warn_user
from ..fitting.saved_types import TYPES
from ..onnx_files.loading import read_onnx
from ..saving.decoder import Decoder
from ..saving.encoder import Encoder
from ..saving.files import Content
from ..saving.record_types import Omitted, RecordType
from . import bases, sets
from .classifier import OrtSetClassifier
from .fitted import CalibrationSamples, FittedIntervals
from .fitted_sets import FittedSets
from .members import Member
from .regressor import OrtIntervalRegressor

__all__ = ["content_of", "estimator_of"]

CLASSES = {
    "OrtIntervalRegressor": (OrtIntervalRegressor, FittedIntervals),
    "OrtSetClassifier": (OrtSetClassifier, FittedSets),
}
BASES = (
    *(bases.Increments, bases.Separate, bases.Leaves, bases.Centre, bases.Copies, bases.Laplace),
    *(bases.Folds, sets.SetScores, sets.Probabilities, sets.Scaled, sets.Isotonic),
)
RECORDS: Mapping[str, RecordType] = {
    **TYPES,
    **{cls.__name__: RecordType(cls) for cls in (*BASES, CalibrationSamples)},
}
PREFIX = "member{}-"


def content_of(estimator: Any, written: dict | None = None) -> Content:
    """Return the content of the file of an estimator: those of its members, and the calibration."""
    fitted, encoder = estimator._model(), Encoder(RECORDS, written={} if written is None else written)
    known = list({id(member.estimator): member.estimator for member in fitted.members}.values())
    contents = [of_optimizers.content_of(own, encoder.written) for own in known]
    parameters, source = estimator.get_params(deep=False), estimator.estimator
    optimizer: dict[str, Any] | None = None
    if isinstance(source, BaseOrtGradientEstimator):
        own = of_optimizers._parameters(source)
        optimizer = {"class": type(source).__name__, "parameters": encoder.encode(own)}
        parameters["estimator"] = None
    elif conversion.is_onnx_source(source):
        parameters["estimator"] = read_onnx(source)[0]
    state = {name: value for name, value in fitted.__getstate__().items() if name != "members"}
    numbers = [next(i for i, own in enumerate(known) if own is m.estimator) for m in fitted.members]
    record = {
        "parameters": {name: encoder.encode(value) for name, value in parameters.items()},
        "optimizer": optimizer,
        "estimators": [content.manifest for content in contents],
        "members": [
            [i, m.reads, m.tensor, m.gives, encoder.encode(m.file)]
            for i, m in zip(numbers, fitted.members, strict=True)
        ],
        "state": {name: encoder.encode(value) for name, value in state.items()},
    }
    files = encoder.all_files()
    for number, content in enumerate(contents):
        files |= {PREFIX.format(number) + name: data for name, data in content.files.items()}
    first = contents[0].manifest
    summary = {**first["summary"], "estimator": type(estimator).__name__}
    omitted = [*encoder.omitted, *(text for content in contents for text in content.manifest["omitted"])]
    manifest = {"versions": first["versions"], "summary": summary, "omitted": omitted, "record": record}
    return Content(manifest, files)


def estimator_of(content: Content, trusted: Sequence[str] = ()) -> Any:
    """Return the estimator of a file."""
    record = content.manifest["record"]
    decoder = Decoder(RECORDS, content.files, (*trusted, *of_optimizers.OWN))
    cls, kind = CLASSES[content.manifest["summary"]["estimator"]]
    try:
        known = [of_optimizers.estimator_of(part, trusted) for part in _parts(content, record["estimators"])]
        members = tuple(
            Member(known[number], str(reads), str(tensor), str(gives), decoder.decode(file))
            for number, reads, tensor, gives, file in record["members"]
        )
        state = {name: decoder.decode(value) for name, value in record["state"].items()}
        values = {name: decoder.decode(value) for name, value in record["parameters"].items()}
        optimizer = _optimizer(decoder, record["optimizer"])
        fitted = RecordType(kind, {"Member": Member, "Base": bases.Base}).make({"members": members, **state})
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise SavedFileError(f"Its record is incomplete or of a wrong type: {error!r}.") from error
    fitted.check()
    if optimizer is not None:
        values["estimator"] = optimizer
    if isinstance(values["estimator"], Omitted):
        values["estimator"] = known[0].estimator
    if unknown := sorted(values.keys() - signature(cls).parameters.keys()):
        raise SavedFileError(f"It has unknown parameters {unknown}.")
    if decoder.omitted:
        warn_user(f"It is loaded without {'; '.join(decoder.omitted)}.", OmittedWarning)
    estimator = cls(**values)
    estimator._fitted = fitted
    return estimator


def _parts(content: Content, manifests: Sequence[dict[str, Any]]) -> Iterator[Content]:
    """Yield the contents of the members."""
    for number, manifest in enumerate(manifests):
        prefix, files = PREFIX.format(number), content.files.items()
        own = {name.removeprefix(prefix): data for name, data in files if name.startswith(prefix)}
        yield Content(manifest, own)


def _optimizer(decoder: Decoder, record: dict[str, Any] | None) -> Any:
    """Return the optimizer that was the parameter of an estimator, not fitted."""
    if record is None:
        return None
    values = decoder.decode(record["parameters"])
    values = {name: value for name, value in values.items() if not isinstance(value, Omitted)}
    return of_optimizers.CLASSES[record["class"]](**values)
