"""Federated averaging: ten Node processes train on samples that they keep, and send weights.

``python coordinator.py`` prints the accuracy after each round beside that of a training on all samples.

References
----------
McMahan, B. et al., "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017,
algorithm 1 with all clients in each round.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import warnings
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateSGD
from ortlearn.saving import export_training, load_training, merge_weights
from ortlearn.saving.tensors import unpack_tensors

HERE = Path(__file__).parent
N_DEVICES, ROUNDS, EPOCHS = 10, 20, 3


def shards(y, rng):
    """Return the samples of each device: four blocks of one class or two, so that all lack some."""
    order = np.argsort(y, kind="stable")
    parts = np.array_split(order, 4 * N_DEVICES)
    rng.shuffle(parts)
    return [np.concatenate(parts[number::N_DEVICES]) for number in range(N_DEVICES)]


def average(folder, results, counts):
    """Return the mean of the devices' weights, by their numbers of samples, in float64."""
    arrays = [unpack_tensors(path.read_bytes())[0] for path in results]
    carried = json.loads((folder / "training.json").read_text())["carried"]
    return {
        name: np.average([own[name] for own in arrays], axis=0, weights=counts).astype(arrays[0][name].dtype)
        for name in (item["name"] for item in carried if item["state"] is None)
    }


def federated_scores(root, rounds=ROUNDS):
    """Return the accuracy on test samples after each round, and that of a training on all samples."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X.astype(np.float32), y, test_size=0.3, random_state=0)
    network = make_pipeline(MinMaxScaler(), MLPClassifier(hidden_layer_sizes=(32,), max_iter=1))
    rate = LearningRateSGD(eta0=0.1, learning_rate="constant")
    trainer = OrtGradientOptimizer(network, learning_rate=rate, batch_size=16, max_iter=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = clone(trainer).fit(X[:20], y[:20], classes=np.arange(10))
        pooled = trainer.set_params(max_iter=rounds * EPOCHS).fit(X, y)
    whole = pooled.score(X_test, y_test)
    folder, scores = root / "package", []
    export_training(start, folder)
    with ExitStack() as stack:
        devices = []
        for number, rows in enumerate(shards(y, np.random.default_rng(0))):
            path = root / f"rows_{number}.json"  # on a real device they are already there
            path.write_text(json.dumps({"X": X[rows].tolist(), "y": y[rows].tolist()}))
            command = ["node", str(HERE / "device.mjs"), str(folder), str(path)]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            devices.append(stack.enter_context(subprocess.Popen(command, **pipes)))
        for _ in range(rounds):
            results = [root / f"result_{number}.safetensors" for number in range(N_DEVICES)]
            for device, result in zip(devices, results, strict=True):
                line = {
                    "weights": str(folder / "values.safetensors"),
                    "result": str(result),
                    "epochs": EPOCHS,
                }
                device.stdin.write(json.dumps(line) + "\n")
                device.stdin.flush()
            counts = [json.loads(device.stdout.readline())["rows"] for device in devices]
            merge_weights(folder, average(folder, results, counts))
            scores.append(load_training(folder).score(X_test, y_test))
        for device in devices:
            device.stdin.close()
    return scores, whole


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        found, pooled_score = federated_scores(Path(name))
    for number, score in enumerate(found, start=1):
        print(f"round {number}: accuracy {score:.3f}")
    print(f"all samples in one place, as many passes: {pooled_score:.3f}")
