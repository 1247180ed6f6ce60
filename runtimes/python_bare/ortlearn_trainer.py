"""Train a package of ortlearn with numpy and onnxruntime alone: the reference for other languages."""

import json
from pathlib import Path

import numpy as np
import onnxruntime as ort

FORMAT = 1
DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "u1", "BOOL": "?"}
OPTIONS = ort.SessionOptions()
OPTIONS.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC


def read_tensors(path):
    """Return the arrays of a safetensors file, and its header as it is."""
    content, arrays = Path(path).read_bytes(), {}
    start = 8 + int.from_bytes(content[:8], "little")
    for name, known in json.loads(content[8:start]).items():
        begin, end = known["data_offsets"]
        data = np.frombuffer(content[start + begin : start + end], DTYPES[known["dtype"]])
        arrays[name] = data.reshape(known["shape"])
    return arrays, content[:start]


class Trainer:
    """A package: its manifest, the epoch it has reached, and weights and states by name (``values``)."""

    def __init__(self, folder):
        self.folder, self.sessions = Path(folder), {}
        self.manifest = json.loads((self.folder / "training.json").read_text())
        if self.manifest["format"] != FORMAT:
            raise ValueError(
                f"The package has format {self.manifest['format']}, not {FORMAT}: export it again."
            )
        self.files = {name: read_tensors(self.folder / name) for name in self.manifest["tensors"]}
        self.values = {name: array for arrays, _ in self.files.values() for name, array in arrays.items()}
        self.carried = self.manifest["carried"]

    def run(self, graph, feeds):
        """Run a graph of the package, and return its outputs by name."""
        if graph not in self.sessions:
            self.sessions[graph] = ort.InferenceSession(self.folder / f"{graph}.onnx", OPTIONS)
        session = self.sessions[graph]
        known = feeds.keys() & {value.name for value in session.get_inputs()}
        results = session.run(None, {name: feeds[name] for name in known})
        return {value.name: result for value, result in zip(session.get_outputs(), results, strict=True)}

    def columns(self, X, y=None):
        """Return rows and labels by input; X is an array, or a dictionary of arrays by input."""
        known = {item["name"]: item for item in self.manifest["features"]}
        values = {name: X[name] if isinstance(X, dict) else X for name in known}
        label = self.manifest["label"]
        if y is not None and label is not None:
            if label["encoding"] != "values":
                if unknown := set(np.unique(y).tolist()) - set(label["classes"]):
                    raise ValueError(f"y has {sorted(unknown)}, the classes are {label['classes']}.")
                y = np.array([label["classes"].index(name) for name in np.ravel(y).tolist()])
                y = np.eye(len(label["classes"]))[y] if label["encoding"] == "one_hot" else y
            known[label["name"]], values[label["name"]] = label, np.reshape(y, (len(y), *label["shape"][1:]))
        for name, array in values.items():
            values[name] = np.asarray(array, known[name]["type"], "C")
            found, shape = values[name].shape, known[name]["shape"]
            if [n if k is not None else k for n, k in zip(found, shape, strict=False)] != shape:
                raise ValueError(f"{name} must be of shape {shape} (None: any number), not {found}.")
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
            raise FloatingPointError(
                "The loss is not finite: lower the learning rate, or scale the features."
            )
        self.values = {**values, "ortlearn_epoch": np.array(epoch + 1)}
        return objectives

    def fit(self, X, y, epochs=1, seed=0, on_epoch=lambda epoch, objective: None):
        """Train for some epochs on rows in random order."""
        columns, generator = self.columns(X, y), np.random.default_rng(seed)
        for _ in range(epochs):
            objectives = self.train_epoch(columns, generator.permutation(len(y)))
            on_epoch(int(self.values["ortlearn_epoch"]), np.mean(objectives))

    def evaluate(self, X, y):
        """Return the mean loss without penalty, and the score: accuracy, or R2."""
        return self.run("evaluate", {**self.columns(X, y), **self.values})

    def predict(self, X):
        """Return the outputs of the model by name, such as ``label`` and ``probabilities``."""
        return self.run("infer", {**self.columns(X), **self.values})

    def save(self):
        """Write weights, states and the number of the epoch into the package."""
        for name, (arrays, header) in self.files.items():
            content = b"".join(np.asarray(self.values[key], order="C").tobytes() for key in arrays)
            (self.folder / name).write_bytes(header + content)
