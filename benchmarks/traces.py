"""Follow a weight and X through the code: ``python -m benchmarks.traces {weight,X} [--calls]``.

A Ridge is trained, predicts, and is written back. A file is on the way of a value if a function in it
receives the value as an argument: alone, or in a container or an object of ortlearn, but not in a graph or an
estimator of scikit-learn. Values are recognised by their shape, as the numbers of samples and features occur
nowhere else.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto
from sklearn.linear_model import Ridge

import ortlearn
from ortlearn import OrtGradientOptimizer

ROOT = Path(ortlearn.__file__).parent
SAMPLES, FEATURES = 211, 37
#: Deepest object in which a value is looked for.
DEPTH = 6


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of an array, a tensor of a graph, or a tensor of onnxruntime; () for other objects."""
    if isinstance(value, np.ndarray):
        return value.shape
    if isinstance(value, TensorProto):
        return tuple(value.dims)
    return tuple(value.shape()) if type(value).__name__ == "OrtValue" else ()


def is_weight(value: Any) -> bool:
    """Return whether a value is the coefficients."""
    shape = shape_of(value)
    return len(shape) > 0 and int(np.prod(shape)) == FEATURES


def is_samples(value: Any) -> bool:
    """Return whether a value is X, possibly with a column of ones."""
    return shape_of(value) in {(SAMPLES, FEATURES), (SAMPLES, FEATURES + 1)}


VALUES = {"weight": is_weight, "X": is_samples}


def parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a container or of an object of ortlearn, with their names."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield str(key), item
    elif isinstance(value, list | tuple):
        for item in value:
            yield "", item
    elif type(value).__module__.startswith("ortlearn") and hasattr(value, "__dict__"):
        yield from vars(value).items()


def name_in(value: Any, is_wanted: Any, name: str, seen: set[int], depth: int = 0) -> str | None:
    """Return the name under which a value holds the wanted one, or None."""
    if id(value) in seen or depth > DEPTH:
        return None
    seen.add(id(value))
    if is_wanted(value):
        return name
    for own, item in parts(value):
        found = name_in(item, is_wanted, own or name, seen, depth + 1)
        if found is not None:
            return found
    return None


class Trace:
    """Functions of ortlearn that receive a value, in the order of their first call."""

    def __init__(self, is_wanted: Any):
        self.is_wanted = is_wanted
        self.received: dict[tuple[str, str], str] = {}
        self.entered: set[str] = set()
        self._done: set[tuple[str, str]] = set()

    def __call__(self, frame: Any, event: str, _: Any) -> None:
        if event != "call":
            return
        path = Path(frame.f_code.co_filename)
        if ROOT not in path.parents or frame.f_code.co_name.startswith("<"):
            return
        file = str(path.relative_to(ROOT))
        self.entered.add(file)
        key = file, frame.f_code.co_qualname if sys.version_info >= (3, 11) else frame.f_code.co_name
        if key in self.received:
            return
        code = frame.f_code
        count = code.co_argcount + code.co_kwonlyargcount
        seen: set[int] = set()
        for argument in code.co_varnames[:count]:
            found = name_in(frame.f_locals.get(argument), self.is_wanted, argument, seen)
            if found is not None:
                self.received[key] = found
                return

    @property
    def files(self) -> list[str]:
        """Files whose functions receive the value, in order."""
        return list(dict.fromkeys(file for file, _ in self.received))

    @property
    def names(self) -> list[str]:
        """Names of the value, in order."""
        return list(dict.fromkeys(self.received.values()))


def traced(value: str) -> Trace:
    """Return the trace of a value through a training of a Ridge, its predictions, and its write-back."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(SAMPLES, FEATURES))
    y = X @ rng.normal(size=FEATURES) + rng.normal(size=SAMPLES)
    model = OrtGradientOptimizer(Ridge().fit(X, y + 1), max_iter=5, random_state=0)
    trace = Trace(VALUES[value])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        OrtGradientOptimizer(Ridge(), max_iter=1).fit(X[:9], y[:9])  # imports
        sys.setprofile(trace)
        try:
            model.fit(X, y).predict(X)
            model.to_sklearn()
        finally:
            sys.setprofile(None)
    return trace


def main() -> None:
    """Print the files, or the functions with ``--calls``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("value", choices=VALUES)
    parser.add_argument("--calls", action="store_true", help="show each function, and the name of the value")
    arguments = parser.parse_args()
    trace = traced(arguments.value)
    if arguments.calls:
        for (file, function), name in trace.received.items():
            print(f"{file:45} {function:45} {name}")
    else:
        print("\n".join(trace.files))
    print(f"{len(trace.files)} files receive it, {len(trace.entered)} are entered; names: {trace.names}")


if __name__ == "__main__":
    main()
