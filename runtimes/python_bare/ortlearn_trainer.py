"""Train a package of ortlearn with numpy and onnxruntime alone: the reference for other languages."""

import json
from pathlib import Path

import numpy as np
import onnxruntime as ort

DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "u1", "BOOL": "?"}
OPTIONS = ort.SessionOptions()
OPTIONS.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC


def read_tensors(path):
    """Return the arrays of a safetensors file, and its header as it is."""
    content, arrays = Path(path).read_bytes(), {}
    start = 8 + int.from_bytes(content[:8], "little")
    for name, known in json.loads(content[8:start]).items():
        begin, end = (start + offset for offset in known["data_offsets"])
        arrays[name] = np.frombuffer(content[begin:end], DTYPES[known["dtype"]]).reshape(known["shape"])
    return arrays, content[:start]


class Trainer:
    """A package: its manifest, the epoch it has reached, and weights and states by name (``values``)."""

    def __init__(self, folder):
        self.folder, graphs = Path(folder), ("step", "epoch", "evaluate", "infer")
        self.manifest = json.loads((self.folder / "training.json").read_text())
        if self.manifest["format"] != 1:
            raise ValueError(f"The package has format {self.manifest['format']}, this reads 1.")
        self.files = {name: read_tensors(self.folder / name) for name in self.manifest["tensors"]}
        self.values = {name: array for arrays, _ in self.files.values() for name, array in arrays.items()}
        self.carried = self.manifest["carried"]
        self.sessions = {g: ort.InferenceSession(self.folder / f"{g}.onnx", OPTIONS) for g in graphs}

    def run(self, graph, feeds):
        """Run a graph of the package, and return its outputs by name."""
        session = self.sessions[graph]
        names = [value.name for value in session.get_outputs()]
        found = session.run(names, {value.name: feeds[value.name] for value in session.get_inputs()})
        return dict(zip(names, found, strict=True))

    def columns(self, X, y=None, sample_weight=None):
        """Return rows, labels and weights by input; X is an array, or a dictionary of arrays by input."""
        pairs = [(i, X[i["name"]] if isinstance(X, dict) else X) for i in self.manifest["features"]]
        label, w = self.manifest["label"], self.manifest.get("sample_weight")
        if y is not None and label:
            if classes := label["classes"]:
                if unknown := set(np.unique(y).tolist()) - set(classes):
                    raise ValueError(f"y has {sorted(unknown)}, the classes are {classes}.")
                y = np.array([classes.index(name) for name in np.ravel(y).tolist()])
                y = np.eye(len(classes))[y] if label["encoding"] == "one_hot" else y
            pairs.append((label, np.reshape(y, (len(y), *label["shape"][1:]))))
        if y is not None and w:
            pairs.append((w, np.ones([len(y), *w["shape"][1:]]) if sample_weight is None else sample_weight))
        elif sample_weight is not None:
            raise ValueError("The package takes no weights of rows: export it with weighted=True.")
        values = {item["name"]: np.asarray(array, item["type"], "C") for item, array in pairs}
        for item, _ in pairs:
            found, shape = values[item["name"]].shape, [len(next(iter(values.values()))), *item["shape"][1:]]
            if len(found) != len(shape) or any(k not in (None, n) for n, k in zip(found, shape, strict=True)):
                raise ValueError(f"{item['name']} must be of shape {shape} (None: any), not {found}.")
        return values

    def train_epoch(self, columns, order):
        """Train on all rows in an order, and return the objective of each batch."""
        size, rates, values = self.manifest["batch_size"], self.manifest["schedule"]["rates"], self.values
        epoch, full, objectives = int(values["ortlearn_epoch"]), len(order) // size * size, []
        rate = np.array(rates[min(epoch, len(rates) - 1)], self.manifest["dtype"])
        for graph, rows in (("epoch", order[:full].reshape(-1, size)), ("step", order[full:])):
            if len(rows):
                names = self.manifest[graph]
                feeds = {item[graph]["input"]: values[item["name"]] for item in self.carried}
                found = self.run(graph, {**columns, **feeds, names["rows"]: rows, names["rate"]: rate})
                objectives += np.ravel(found[names["objective"]]).tolist()
                values = {item["name"]: found[item[graph]["output"]] for item in self.carried}
        if not np.isfinite(objectives).all():
            raise FloatingPointError("The loss is not finite: lower the rate, or scale the features.")
        self.values = {**values, "ortlearn_epoch": np.array(epoch + 1)}
        return objectives

    def fit(self, X, y, epochs=1, seed=0, on_epoch=print, sample_weight=None):
        """Train for some epochs on rows in random order; ``on_epoch`` gets the mean objective of each."""
        columns, generator = self.columns(X, y, sample_weight), np.random.default_rng(seed)
        for _ in range(epochs):
            on_epoch(np.mean(self.train_epoch(columns, generator.permutation(len(y)))))

    def evaluate(self, X, y, sample_weight=None):
        """Return the mean loss without penalty, and the score: accuracy, or R2."""
        return self.run("evaluate", {**self.columns(X, y, sample_weight), **self.values})

    def predict(self, X):
        """Return the outputs of the model by name, such as ``label`` and ``probabilities``."""
        return self.run("infer", {**self.columns(X), **self.values})

    def save(self):
        """Write weights, states and the number of the epoch into the package."""
        for name, (arrays, header) in self.files.items():
            (self.folder / name).write_bytes(header + b"".join(self.values[key].tobytes() for key in arrays))
