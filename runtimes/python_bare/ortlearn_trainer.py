"""Train a package of ortlearn with numpy and onnxruntime alone: the reference for other languages."""

import json
import math
import os
import zlib
from pathlib import Path

import numpy as np
import onnxruntime as ort

DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "I8": "i1", "U8": "u1", "BOOL": "?"}
OPTIONS = ort.SessionOptions()
OPTIONS.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
OPTIONS.log_severity_level = 4  # errors are raised
GRAPHS, ENDS = ("step", "epoch", "evaluate", "infer"), ("input", "output")
TENSORS = {1: ["weights.safetensors", "state.safetensors"], 2: ["values.safetensors"]}  # by format
MARK = b'"ortlearn_crc32": "'
MAX_BYTES = 2**31 - 1
ORDER = {"type": "int64", "shape": [None]}


def read_file(path):
    """Return the bytes of a regular file; a pipe or a device is not opened, since it may have no end."""
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: copy the package again.")
    if not path.is_file() or path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path} is not a regular file of at most {MAX_BYTES} bytes.")
    return path.read_bytes()


def sealed(content):
    """Return a file with its checksum, the CRC-32 of the file with zeros in its place."""
    before, mark, rest = content.partition(MARK)
    plain = before + mark + b"0" * 8 + rest[8:]
    return before + mark + b"%08x" % zlib.crc32(plain) + rest[8:]


def damaged(path, reason):
    """Return an error for a file of a package."""
    return ValueError(f"{path} is damaged, {reason}: copy the package again.")


def read_tensors(path, is_sealed=False):
    """Return the arrays of a safetensors file, and its header as it is."""
    content, arrays, end = read_file(path), {}, 0
    start = 8 + int.from_bytes(content[:8], "little")
    if len(content) < 8 or start > len(content):
        raise damaged(path, "it is not complete")
    try:
        header = json.loads(content[8:start])
        header.pop("__metadata__", None)
        for name, known in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            dtype, begin, length = np.dtype(DTYPES[known["dtype"]]), end, math.prod(known["shape"])
            end = begin + length * dtype.itemsize
            if known["data_offsets"] != [begin, end] or min(known["shape"], default=0) < 0:
                raise ValueError(name)
            arrays[name] = np.frombuffer(content, dtype, length, start + begin).reshape(known["shape"])
        if start + end != len(content):
            raise ValueError("more or fewer bytes")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(path, "its header does not describe its content") from error
    if is_sealed and content != sealed(content):
        raise damaged(path, "it was altered")
    return {name: arrays[name] for name in header}, content[:start]


def read_manifest(folder):
    """Return the manifest of a package."""
    path = folder / "training.json"
    content = read_file(path)
    try:
        manifest = json.loads(content)
        number = manifest["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise damaged(path, "it is not a manifest") from error
    if type(number) is not int or number not in TENSORS:
        raise ValueError(f"The package has format {text(number)}, this reads 1 and 2: export it again.")
    try:
        parts = [*manifest["features"], *manifest["carried"]]
        parts += [part for part in (manifest["label"], manifest.get("sample_weight")) if part]
        loops = [manifest[graph][key] for graph in ("step", "epoch") for key in ("rows", "rate", "objective")]
        loops += [item[g][end] for item in manifest["carried"] for g in ("step", "epoch") for end in ENDS]
        whole = all(isinstance(item["shape"], list) and item["name"] + item["type"] for item in parts)
        whole &= all(isinstance(name, str) for name in loops) and manifest["tensors"] == TENSORS[number]
        whole &= type(manifest["batch_size"]) is int and manifest["batch_size"] > 0 < len(manifest["carried"])
        whole &= number == 1 or isinstance(manifest["files"], dict)
        whole &= bool(np.isfinite(manifest["schedule"]["rates"]).all() and manifest["schedule"]["rates"])
    except (KeyError, TypeError) as error:
        raise damaged(path, "it is not complete") from error
    if not whole or (number > 1 and content != sealed(content)):
        raise damaged(path, "it was altered")
    return manifest


def check_values(values, carried):
    """Raise an error unless values are the carried ones, of their types and shapes, finite and in range."""
    known = {item["name"]: (item["type"], item["shape"], item.get("minimum")) for item in carried}
    known["ortlearn_epoch"] = ("int64", [], 0)
    if known.keys() != values.keys() or len(known) != len(carried) + 1:
        raise ValueError(f"The package must have the tensors {sorted(known)}, and has {sorted(values)}.")
    for name, (dtype, shape, minimum) in known.items():
        held = values[name]
        if held.dtype != dtype or list(held.shape) != shape:
            raise ValueError(f"Tensor {name} must be {dtype} of shape {shape}, not {held.dtype}{held.shape}.")
        if not np.isfinite(held).all() or (minimum is not None and (held < minimum).any()):
            raise ValueError(f"Tensor {name} has values that are not finite, or out of range.")


def text(value):
    """Return a value as short JSON."""
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    found = json.dumps(value, default=str, separators=(",", ":"))
    return found if len(found) <= 60 else f"{found[:60]}..."


def has_shape(row, shape):
    """Return whether nested lists or arrays have a shape, in which None is any number."""
    if not isinstance(row, list | tuple | np.ndarray) or getattr(row, "shape", None) == ():
        return not shape
    return shape[:1] in ([None], [len(row)]) and all(has_shape(part, shape[1:]) for part in row)


def as_rows(name, rows):
    """Return an array or a list of samples, of which there is one or more."""
    rows = np.asarray(rows) if hasattr(rows, "__array__") else rows
    rows = rows.tolist() if isinstance(rows, np.ndarray) and rows.dtype == object else rows
    if not isinstance(rows, list | tuple | range | np.ndarray) or getattr(rows, "shape", None) == ():
        raise ValueError(f"{name} must be an array of samples, and is {text(rows)}.")
    if not len(rows):
        raise ValueError(f"{name} has no samples.")
    return rows


def as_tensor(name, item, rows):
    """Return samples as an array of the type and the shape of an input."""
    shape, rows = item["shape"][1:], as_rows(name, rows)
    shapes = [[], [1], shape] if all(n == 1 for n in shape) else [shape]
    for i, x in enumerate(rows[:1] if isinstance(rows, np.ndarray) else rows):
        if not any(has_shape(x, known) for known in shapes):
            raise ValueError(f"{name} must have samples of shape {text(shape)}, and sample {i} is {text(x)}.")
    try:
        array = rows if isinstance(rows, np.ndarray) else np.array(rows, dtype=object)
        array = array if None in shape else array.reshape(len(rows), *shape)
    except ValueError as error:
        raise ValueError(f"{name} must have samples of shape {text(shape)}, equally long.") from error
    array = cast(name, array, item["type"])
    if array.dtype.kind == "f" and "missing" in item:
        holes = np.argwhere(np.isnan(array.reshape(len(array), -1)))
        for i, j in holes[~np.isin(holes[:, 1], item["missing"])][:1]:
            raise ValueError(f"{name} has NaN in sample {i}, column {j}, where no value may be missing.")
    return array


def cast(name, array, dtype):
    """Return an array in a type that has its values, rounded if they are floating-point numbers."""
    kind, expected = array.dtype.kind, (str if dtype == "string" else (int, float, np.number, np.bool_))
    wrong = kind not in ("OUT" if dtype == "string" else "Obiuf")
    if kind == "O":
        wrong = [not isinstance(v, expected) or (type(v) is int and abs(v) >= 2**1023) for v in array.flat]
    if not np.any(wrong) and dtype == "string":
        return array.astype(object)
    if not np.any(wrong):
        array = np.array(array.tolist()) if kind == "O" else array
        with np.errstate(all="ignore"):
            new = array.astype(dtype)
        wrong = np.isinf(new) if new.dtype.kind == "f" else new != array
    if np.any(wrong):
        place = np.flatnonzero(np.broadcast_to(np.reshape(wrong, -1), array.size))[0]
        row = place // (array.size // len(array))
        raise ValueError(f"{name} must be of type {dtype}, and sample {row} has {text(array.flat[place])}.")
    return np.ascontiguousarray(new)


class Trainer:
    """A package: its manifest, the epoch it has reached, and weights and states by name (``values``)."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.manifest = read_manifest(self.folder)
        self.carried, is_sealed = self.manifest["carried"], self.manifest["format"] > 1
        self.files = {n: read_tensors(self.folder / n, is_sealed=is_sealed) for n in self.manifest["tensors"]}
        self.values = {name: array for arrays, _ in self.files.values() for name, array in arrays.items()}
        check_values(self.values, self.carried)
        self.sessions = {graph: self._session(f"{graph}.onnx") for graph in GRAPHS}

    def _session(self, name):
        """Return the session of a graph."""
        content = read_file(self.folder / name)
        if self.manifest["format"] > 1 and self.manifest["files"].get(name) != f"{zlib.crc32(content):08x}":
            raise damaged(self.folder / name, "it was altered")
        try:
            return ort.InferenceSession(content, OPTIONS)
        except Exception as error:
            raise damaged(self.folder / name, "it is not an ONNX graph") from error

    def run(self, graph, feeds, outputs=None):
        """Run a graph of the package, and return its outputs by name."""
        session = self.sessions[graph]
        names = [value.name for value in session.get_outputs()] if outputs is None else outputs
        try:
            found = session.run(names, {value.name: feeds[value.name] for value in session.get_inputs()})
        except Exception as error:
            raise ValueError(f"{graph}.onnx cannot be run on this input: {error}") from error
        return dict(zip(names, found, strict=True))

    def columns(self, X, y=None, sample_weight=None):
        """Return samples, labels and weights by input; X is an array, or a dictionary of arrays by input."""
        features, label, weight = (self.manifest.get(key) for key in ("features", "label", "sample_weight"))
        if not isinstance(X, dict):
            X = {item["name"]: X for item in features} if len(features) == 1 else {}
        if lacking := [item["name"] for item in features if item["name"] not in X]:
            raise ValueError(f"X must be an object of samples by input, and lacks {text(lacking)}.")
        values = {item["name"]: as_tensor(item["name"], item, X[item["name"]]) for item in features}
        n_rows = len(next(iter(values.values())))
        if y is not None and label:
            values[label["name"]] = self._labels(y, label)
        if sample_weight is not None and not weight:
            raise ValueError("The package takes no weights of samples: export it with weighted=True.")
        if y is not None and weight:
            given = np.ones([n_rows, *weight["shape"][1:]]) if sample_weight is None else sample_weight
            values[weight["name"]] = found = as_tensor("sample_weight", weight, given)
            for wrong in found[~(np.isfinite(found) & (found >= 0))][:1]:
                raise ValueError(f"sample_weight must be finite and not negative, and has {text(wrong)}.")
            if not found.any():
                raise ValueError("sample_weight is zero for every sample: at least one must be above 0.")
        counts = [f"{name}: {len(array)}" for name, array in values.items()]
        if any(len(array) != n_rows for array in values.values()):
            raise ValueError(f"Inputs must have equal numbers of samples, but have {', '.join(counts)}.")
        return values

    def _labels(self, y, label):
        """Return labels, or the numbers of their classes, as an array."""
        if classes := label["classes"]:
            numbers = {(isinstance(name, bool), name): number for number, name in enumerate(classes)}
            names = [v.item() if isinstance(v, np.generic) else v for v in as_rows("y", y)]
            for name in names:
                if not isinstance(name, str | int | float) or (isinstance(name, bool), name) not in numbers:
                    raise ValueError(f"y has {text(name)}, the classes are {text(classes)}.")
            y = np.array([numbers[isinstance(name, bool), name] for name in names], dtype=int)
            y = np.eye(len(classes))[y] if label["encoding"] == "one_hot" else y
        found = as_tensor("y", label, y)
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise ValueError("y must be finite.")
        return found

    def train_epoch(self, columns, order):
        """Train on all samples in an order, and return the objective of each batch."""
        size, rates, values = self.manifest["batch_size"], self.manifest["schedule"]["rates"], self.values
        order, n_rows = as_tensor("order", ORDER, order), len(next(iter(columns.values())))
        if not 0 <= order.min() <= order.max() < n_rows:
            raise ValueError(f"order must have numbers of samples, from 0 to {n_rows - 1}.")
        epoch, full, objectives = int(values["ortlearn_epoch"]), len(order) // size * size, []
        rate = np.array(rates[min(epoch, len(rates) - 1)], self.manifest["dtype"])
        for graph, rows in (("epoch", order[:full].reshape(-1, size)), ("step", order[full:])):
            if len(rows):
                names = self.manifest[graph]
                feeds = {item[graph]["input"]: values[item["name"]] for item in self.carried}
                feeds |= {**columns, names["rows"]: rows, names["rate"]: rate}
                ends = [names["objective"], *(item[graph]["output"] for item in self.carried)]
                found = self.run(graph, feeds, ends)
                objectives += np.ravel(found[names["objective"]]).tolist()
                values = {item["name"]: found[item[graph]["output"]] for item in self.carried}
        if not all(np.isfinite(array).all() for array in (objectives, *values.values())):
            raise FloatingPointError(
                "The loss is not finite: lower the learning rate, or scale the features."
            )
        self.values = {**values, "ortlearn_epoch": np.array(epoch + 1, dtype=np.int64)}
        return objectives

    def fit(self, X, y=None, epochs=1, seed=0, on_epoch=print, sample_weight=None):
        """Train for some epochs on samples in random order; ``on_epoch`` gets the mean objective of each."""
        columns, generator = self._all_columns(X, y, sample_weight), np.random.default_rng(seed)
        if not isinstance(epochs, int | np.integer) or isinstance(epochs, bool) or epochs < 1:
            raise ValueError(f"epochs must be a whole number of 1 or more, and is {text(epochs)}.")
        for _ in range(epochs):
            order = generator.permutation(len(next(iter(columns.values()))))
            on_epoch(np.mean(self.train_epoch(columns, order)))

    def _all_columns(self, X, y, sample_weight):
        if y is None and self.manifest["label"]:
            raise ValueError("y is missing: the package trains on labels.")
        return self.columns(X, () if y is None else y, sample_weight)

    def evaluate(self, X, y=None, sample_weight=None):
        """Return the mean loss without penalty, and the score: accuracy, or R2."""
        return self.run("evaluate", {**self._all_columns(X, y, sample_weight), **self.values})

    def predict(self, X):
        """Return the outputs of the model by name, such as ``label`` and ``probabilities``."""
        return self.run("infer", {**self.columns(X), **self.values})

    def save(self):
        """Write weights, states and the number of the epoch into the package, by renaming a complete file."""
        for name, (arrays, header) in self.files.items():
            content = header + b"".join(self.values[key].tobytes() for key in arrays)
            replace_file(self.folder / name, sealed(content) if self.manifest["format"] > 1 else content)


def replace_file(path, content):
    """Write a file beside another one, and rename it: a reader sees the old file or the new one."""
    for stale in path.parent.glob(f"{path.name}.*.new") if os.name == "posix" else ():
        try:
            os.kill(int(stale.suffixes[-2][1:]), 0)
        except ProcessLookupError:  # it was killed in a save
            stale.unlink(missing_ok=True)
        except (ValueError, OSError, OverflowError):
            continue
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    try:
        with open(new, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            new.chmod(path.stat().st_mode)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
