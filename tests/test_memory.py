"""Training does not copy the data, in memory or memory-mapped."""

import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.runtime.devices import ort_value
from ortlearn.training.optimisations.hoisting import LIMITS
from tests.calls import calls_of

#: Prints the peak memory in bytes before and after training.
SCRIPT = """
import json, resource, sys
import numpy as np
import onnxruntime, skl2onnx
from sklearn.linear_model import LinearRegression
from ortlearn.estimators import OrtGradientOptimizer

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

n_samples, trains, fitted = int(sys.argv[1]), sys.argv[2] != "nothing", sys.argv[2] == "train fitted"
small = np.random.RandomState(0).normal(size=(64, 100)).astype(np.float32)
warm_up = OrtGradientOptimizer(LinearRegression(), max_iter=1, batch_size=16, learning_rate=0.01)
warm_up.fit(small, small[:, 0])
rng = np.random.default_rng(0)
X = np.empty((n_samples, 100), dtype=np.float32)
for start in range(0, n_samples, 1000):
    X[start : start + 1000] = rng.standard_normal((len(X[start : start + 1000]), 100), dtype=np.float32)
y = X[:, 0] - X[:, 1]
source = LinearRegression().fit(small, small[:, 0]) if fitted else LinearRegression()
before = peak()
loss = None
if trains:
    options = {"max_iter": 2, "batch_size": 500, "learning_rate": 0.01, "random_state": 0}
    model = OrtGradientOptimizer(source, **options)
    loss = model.fit(X, y).train_losses_[-1]
print(json.dumps({"before": before, "after": peak(), "data": X.nbytes, "loss": loss}))
"""


def measure(n_samples, work):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(n_samples), work], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("work", ["train", "train fitted"])
def test_million_samples_are_not_copied(work):
    base, trained = measure(1_000_000, "nothing"), measure(1_000_000, work)
    assert trained["data"] == 400_000_000
    assert trained["loss"] < 0.5
    extra = trained["after"] - base["after"]
    assert extra < 0.5 * trained["data"], f"{extra / trained['data']:.2f} of the data"


def memory_map(folder, X):
    mapped = np.memmap(folder / "X.dat", dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    return np.memmap(folder / "X.dat", dtype=X.dtype, mode="r", shape=X.shape)


def assert_trains_from_memory_map(folder, n_samples, n_columns, batch_size):
    X = np.random.default_rng(0).standard_normal((n_samples, n_columns), dtype=np.float32)
    y = X[:, 0] - X[:, 1]
    mapped = memory_map(folder, X)
    for model in (LinearRegression(), make_pipeline(StandardScaler(), LinearRegression())):
        options = {"max_iter": 2, "random_state": 0, "batch_size": batch_size, "learning_rate": "SGD"}
        optimizer = OrtGradientOptimizer(model, **options)
        expected = optimizer.fit(X, y)
        weights, predicted = expected.trained_coef_, expected.predict(X)
        got = optimizer.fit(mapped, y)
        for name, array in weights.items():
            np.testing.assert_array_equal(got.trained_coef_[name], array)
        np.testing.assert_array_equal(got.predict(mapped), predicted)
    np.testing.assert_array_equal(mapped, X)


@pytest.mark.slow
def test_memory_map_larger_than_a_chunk(tmp_path):
    n_samples = 9_000
    assert n_samples * 250 * 4 > LIMITS.chunk
    assert_trains_from_memory_map(tmp_path, n_samples, 250, 256)


def test_float32_data_is_bound_without_copy():
    X = np.random.RandomState(0).normal(size=(50, 4)).astype(np.float32)
    model = OrtGradientOptimizer(LinearRegression(), max_iter=1, random_state=0, learning_rate="SGD")
    with calls_of(ort_value) as calls:
        model.fit(X, X[:, 0])
    seen = [call["array"] for call in calls]
    assert sum(np.shares_memory(array, X) for array in seen) == 1
    assert max(array.nbytes for array in seen if not np.shares_memory(array, X)) < X.nbytes
