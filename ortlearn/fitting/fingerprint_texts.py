"""Fingerprint of a training: a text for everything that changes its result, by which it is recognised."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from ..data.checksums import array_text, checksum
from ..data.columns import Columns
from ..data.samples import Data
from ..exceptions import OrtlearnError, ResumedWarning, SavedFileError, warn_user
from ..learning_rates.resolve import resolve_learning_rate
from ..losses.resolve import resolve_loss
from ..onnx_files.loading import is_onnx_source
from ..parameters import OTHER_NAMES
from ..penalties.resolve import resolve_penalty
from ..problem.problem import Problem
from ..runtime.onnxruntime_module import runtime
from ..training.settings import LoopSettings
from .start import Start

__all__ = [
    "FREE",
    "check",
    "data_texts",
    "digest_of",
    "generator_text",
    "parameter_texts",
    "random_state_text",
]

#: Parameters that may change when a training is resumed, unless the learning rate depends on them.
FREE = ("max_iter", "max_seconds", "verbose", "exc", "tol", "n_iter_no_change", "n_jobs", "client")
#: Parameters that are compared with the data: by their effect, or since they are arguments of ``fit_stream``.
WITH_DATA = ("batch_size", "validation_every", "shuffle_buffer")
#: Parts whose changes may change the last bits of a result only.
NOTICED = ("versions",)
#: What a difference of texts means that are checksums.
MEANINGS = {
    "graph": " (another model, another number or order of features, or a model that is fitted and was not, "
    "or the reverse)"
}
#: Largest number of differences in a message.
SHOWN = 5
#: Functions that return the plugin for a name or a number, by parameter.
RESOLVERS: dict[str, Callable[[Any], Any]] = {
    "learning_rate": resolve_learning_rate,
    "learning_loss": resolve_loss,
    "learning_penalty": resolve_penalty,
}
#: Text of a name of a plugin.
PLUGIN_NAME = re.compile(r"'\w+'")
#: Memory address in the representation of an object.
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
#: Representation of a number of numpy.
NUMPY_NUMBER = re.compile(r"\bnp\.\w+\(([^()]*)\)")
#: Length up to which a text is stored as it is.
LONGEST = 300


def parameter_texts(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of parameters, including those of the model to train."""
    texts = {
        name: _outline(value) if "__" in name else _text(value)  # parameters of plugins are in their texts
        for name, value in parameters.items()
        if _is_compared(name) and name not in (*WITH_DATA, "estimator")
    }
    model, state = parameters["estimator"], parameters["random_state"]
    name = "ONNX model" if is_onnx_source(model) else type(model).__name__
    return {"estimator": name, **texts, "random_state": random_state_text(state)}


def random_state_text(value: Any) -> str:
    """Return the text of a seed, or of the present state of a generator."""
    if not isinstance(value, np.random.RandomState):
        return _text(value) if isinstance(value, int | np.integer) else "None"
    return generator_text(value.get_state(legacy=False))


def generator_text(state: Any) -> str:
    """Return the text of a state of a generator, as ``get_state(legacy=False)`` returns it."""
    parts = [np.asarray(part).tolist() for part in state["state"].values()]
    return f"RandomState with checksum {zlib.crc32(repr(parts).encode()):08x}"


def data_texts(
    start: Start, settings: LoopSettings, validation: Any, shuffle_buffer: int | None, is_split: bool
) -> dict[str, str]:
    """Return the texts of graph, samples and validation, which with ``is_split`` is a part of X."""
    problem = start.problem
    texts = {"graph": f"checksum {_graph_checksum(start):08x}", "classes": _classes_text(problem)}
    texts["learning_rate_"] = _text(problem.updates.learning_rate)
    texts["batch_size"] = str(problem.updates.batch_size)
    texts |= {**arrays_text(start.data, ""), **start.samples.texts()}
    if start.data.sample_weight is not None:
        texts["sample_weight"] += f" and the sum {start.state.total_weight!r}"
    texts["shuffle_buffer"] = str(shuffle_buffer)
    own = dict.fromkeys(("X_val", "y_val", "sample_weight_val", "validation_every"), "None")
    if validation is not None:
        own |= {**validation.texts(), "validation_every": f"{settings.validation_every} epochs"}
    if is_split and validation is not None:
        for name in ("X", "y", "sample_weight"):
            texts[name] += f", held out {own[f'{name}_val']}"
            own[f"{name}_val"] = "None"
    texts = {name: _shortened(text) for name, text in {**texts, **own}.items()}
    return {**texts, "versions": f"onnxruntime {runtime().__version__}, numpy {np.__version__}"}


def _classes_text(problem: Problem) -> str:
    classes = problem.targets.classes
    columns = classes if isinstance(classes, list | tuple) else [classes]
    return (
        "None" if classes is None else _shortened(repr([np.asarray(column).tolist() for column in columns]))
    )


def check(found: Mapping[str, str], known: Mapping[str, str], is_complete: bool = True) -> None:
    """Raise an error if parts of a fingerprint differ from those of the training to resume.

    Parts that ``known`` lacks are compared only if it ``is_complete``, as files of this version are.
    """
    differing = _differing(_resolved(found), _resolved(known), is_complete)
    noticed = {name: differing.pop(name) for name in NOTICED if name in differing}
    if differing:
        texts = [
            f"{name}={now} instead of {then}{MEANINGS.get(name, '')}"
            for name, (now, then) in differing.items()
            if not differing.keys() & _owners(name)
        ]
        more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
        raise SavedFileError(
            f"This is not the training to resume: {', '.join(texts[:SHOWN])}{more}. Pass the original "
            f"parameters, model and data; {', '.join(FREE)} may change (max_iter unless a schedule or "
            "validations depend on it). To train from the beginning, omit resume_from, and pass another "
            "folder to ModelCheckpoint."
        )
    for now, then in noticed.values():
        warn_user(
            f"The training was begun with {then}, and is resumed with {now}: its last bits may differ from "
            "those of an uninterrupted training.",
            ResumedWarning,
        )


def _differing(
    found: Mapping[str, str], known: Mapping[str, str], is_complete: bool
) -> dict[str, tuple[str, str]]:
    """Return the texts of parts that differ, now and then."""
    names = [*found, *sorted(known.keys() - found.keys())]
    pairs = {
        name: (found.get(name, "None"), _normal(known.get(name, "None")))
        for name in names
        if _is_compared(name) and (name in known or is_complete)
    }
    return {name: pair for name, pair in pairs.items() if _normal(pair[0]) != pair[1]}


def _resolved(texts: Mapping[str, str]) -> dict[str, str]:
    """Return texts in which names of plugins and rates are the objects that they stand for."""
    resolved = {OTHER_NAMES.get(name, name): text for name, text in texts.items()}
    for name, resolve in RESOLVERS.items():
        text = texts.get(name, "")
        with suppress(OrtlearnError, ValueError):  # not the name of a plugin, such as "auto"; not a number
            plugin = resolve(text[1:-1] if PLUGIN_NAME.fullmatch(text) else float(text))
            parts = plugin.get_params().items()
            resolved |= {name: _text(plugin), **{f"{name}__{part}": _outline(value) for part, value in parts}}
    return resolved


def _owners(name: str) -> set[str]:
    """Return the names of the objects that a nested parameter is in."""
    parts = name.split("__")
    return {"__".join(parts[:number]) for number in range(1, len(parts))}


def digest_of(start: Start) -> int:
    """Return the checksum of graph and samples in files of version 0.2.0."""
    parts = parts_of(start.data).values()
    found = checksum([array for arrays in parts for array in arrays], _graph_checksum(start))
    return zlib.crc32(start.samples.summary, found)


def arrays_text(data: Data, suffix: str) -> dict[str, str]:
    """Return the texts of samples, labels and weights; ``suffix`` is appended to their names."""
    return {f"{name}{suffix}": array_text(arrays) for name, arrays in parts_of(data).items()}


def parts_of(data: Data) -> dict[str, list[Any]]:
    """Return the arrays of samples, by the name of the argument."""
    inputs = list(data.X.arrays.values()) if isinstance(data.X, Columns) else [data.X]
    return {"X": inputs, "y": [data.y], "sample_weight": [data.sample_weight]}


def _graph_checksum(start: Start) -> int:
    return zlib.crc32(start.problem.trainable.model.SerializeToString(deterministic=True))


def _is_compared(name: str) -> bool:
    """Return whether a part must be equal; the model may have another number of threads, for example."""
    return name not in FREE and name.rpartition("__")[2] not in ("verbose", "n_jobs")


def _outline(value: Any) -> str:
    """Return the text of a parameter, with the classes of estimators, whose parameters are compared apart."""
    if isinstance(value, set | frozenset):  # their order differs between processes
        value = sorted(value, key=repr)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_outline, value))}]"
    return type(value).__name__ if hasattr(value, "get_params") else _text(value)


def _text(value: Any) -> str:
    """Return the text of a parameter; an array by its checksum."""
    if isinstance(value, np.ndarray):
        return array_text([value])
    return _normal(repr(value))


def _normal(text: str) -> str:
    """Return a text without memory addresses and types of numpy, shortened if it is long."""
    return _shortened(NUMPY_NUMBER.sub(r"\1", ADDRESS.sub("", text)))


def _shortened(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST // 3]}... with checksum {zlib.crc32(text.encode()):08x}"
