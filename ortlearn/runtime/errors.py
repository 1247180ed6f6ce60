"""Translate errors of onnxruntime, onnx and protobuf into errors of ortlearn."""

from __future__ import annotations

import re
from contextlib import ContextDecorator
from types import TracebackType

from ..exceptions import ExecutionError, OrtlearnError
from ..graphs.loop_limits import LIMIT, MAX_ITERATIONS

__all__ = ["NEWER_RUNTIME", "runtime_errors"]

#: Packages whose errors are translated.
RUNTIMES = ("onnxruntime", "onnx", "google")
#: Largest number of characters of a message.
MAX_TEXT = 600

_CODE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : (?P<code>[A-Z_]+) : ")
#: Positions in C++ sources, with the signature of the function.
_PLACE = re.compile(r"/\S+/onnxruntime/\S+:\d+ (?:[^\n]*?\) (?:const )?)?|\S+\.(?:h|cc|cpp):\d+:? ?\S*:? ")
#: Forms in which the runtimes name the failing node; the last match is the innermost.
_NODES = (
    re.compile(r"running (?P<op>\w+) node\. Name: ?'(?P<name>[^']*)'"),
    re.compile(r"Node ?\((?P<name>[^)]*)\) Op ?\((?P<op>[^)]*)\)"),
    re.compile(r"implementation for (?P<op>\w+)\(\d+\) node with name '(?P<name>[^']*)'"),
    re.compile(r"op_type: ?(?P<op>\w+),? node name: ?(?P<name>[^)\s]*)"),
    re.compile(r"Optype \((?P<op>\w+)\).*? in node \((?P<name>[^)]*)\)"),
)
#: Texts of errors about an opset or an IR version that is newer than the runtime.
_TOO_NEW = ("Unsupported model IR version", "under development and support for this is limited")
#: Prefixes of the names of nodes in training graphs.
_COPIES = re.compile(r"ortlearn_(?:copy_\d+|rest)_of_")
#: Installation of an onnxruntime that reads newer files.
NEWER_RUNTIME = "pip install --upgrade 'ortlearn[onnxruntime]' (in place of onnxruntime-training)"
_CHECK = "Check the model: onnx.checker.check_model(model, full_check=True), and that its inputs fit X."
_EXPECTED = re.compile(r"Unexpected input data type.* expected: \(tensor\((?P<name>\w+)\)\)")
#: NumPy's names of the types that onnxruntime names differently.
_TYPES = {"float": "float32", "double": "float64"}
_ADVICE = {
    "NOT_IMPLEMENTED": (
        "This onnxruntime has no kernel for the operator and its types: use dtype='float32', or, in an ONNX "
        "model, cast to float32 before this node."
    ),
    "VERSION": f"The installed onnxruntime is older than the file: {NEWER_RUNTIME}.",
    "MEMORY": "Not enough memory: use fewer samples, a smaller batch_size, or a smaller model.",
}


class runtime_errors(ContextDecorator):  # noqa: N801 - used as a function
    """Context that raises :class:`~ortlearn.exceptions.ExecutionError` for errors of the runtimes.

    Errors of ortlearn and of Python code are not changed.
    """

    def __enter__(self) -> runtime_errors:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, Exception) or isinstance(error, OrtlearnError):
            return
        library = _library(error)
        if library is not None:
            raise ExecutionError(_explained(error, library)) from error


def _library(error: Exception) -> str | None:
    """Return the runtime that raised an error, or None if it comes from Python code."""
    package = type(error).__module__.partition(".")[0]
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    inner = "" if frame is None else str(frame.tb_frame.f_globals.get("__name__", ""))
    if package not in RUNTIMES:
        package = inner.partition(".")[0]
    if package in RUNTIMES:
        return "protobuf" if package == "google" else package
    if isinstance(error, MemoryError | RecursionError) and package in ("numpy", "ortlearn"):
        return "Python"
    # C++ functions have no frame, and our code never raises RuntimeError.
    return "onnxruntime" if type(error) is RuntimeError and package == "ortlearn" else None


def _explained(error: Exception, library: str) -> str:
    """Return a message with the failing node, without positions in C++ sources, and advice."""
    text = _COPIES.sub("", str(error).strip()) or type(error).__name__
    found = _CODE.match(text)
    code = found["code"] if found else ""
    if isinstance(error, MemoryError) or "alloc" in text:  # also std::bad_alloc
        code = "MEMORY"
    if any(words in text for words in _TOO_NEW):
        code = "VERSION"
    matches = [match for pattern in _NODES for match in pattern.finditer(text)]
    where = ""
    if matches:
        last = max(matches, key=lambda match: match.start())
        if last["name"].startswith(LIMIT):
            return f"A Loop of the model exceeds {MAX_ITERATIONS} iterations: use a lower trip count."
        where = f"operator {last['op']} (node {last['name']!r}): "
    text = _PLACE.sub("", _CODE.sub("", text).partition("\nStacktrace")[0]).strip()
    text = " ".join(text.split())[:MAX_TEXT].rstrip(".")
    advice, expected = _ADVICE.get(code, _CHECK), _EXPECTED.search(text)
    if expected is not None:
        advice = f"Convert the input: X.astype({_TYPES.get(expected['name'], expected['name'])!r})."
    return f"{library} cannot process the model: {where}{text}. {advice}"
