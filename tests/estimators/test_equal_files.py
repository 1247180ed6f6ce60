"""Equal trainings write equal bytes, in new processes and in any order of fits."""

import hashlib
import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingRegressor, StackingClassifier, VotingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.multioutput import ClassifierChain
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer

RNG = np.random.RandomState(0)
X = RNG.normal(size=(60, 4))
Y = X[:, 0] - X[:, 1]
CLASSES = np.digitize(Y, [-0.5, 0.5])
COLUMNS = ColumnTransformer([("a", StandardScaler(), [0, 1]), ("b", MinMaxScaler(), [2, 3])])
MEMBERS = [("a", LogisticRegression()), ("b", GaussianNB())]
MODELS = {
    "linear": (Ridge(), Y),
    "network": (MLPRegressor(hidden_layer_sizes=(4, 3)), Y),
    "columns": (make_pipeline(COLUMNS, PCA(2), MLPClassifier(hidden_layer_sizes=(3,))), CLASSES),
    "vote": (VotingRegressor([("a", Ridge()), ("b", LinearRegression())]), Y),
    "stack": (StackingClassifier(MEMBERS, cv=2), CLASSES),
    "chain": (ClassifierChain(LogisticRegression()), np.stack([Y > 0, X[:, 2] > 0], axis=1) * 1),
    "boosting": (GradientBoostingRegressor(n_estimators=3, random_state=0), Y),
    "svm": (SVC(random_state=0), CLASSES),
    "mixture": (GaussianMixture(2, random_state=0), None),
    "clusters": (KMeans(3, n_init=1, random_state=0), None),
}


def digests(names):
    """Return digests of trained models and training graphs by model, estimator and warm_start."""
    found = {}
    for name in names:
        model, y = MODELS[name]
        for optimizer in (OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer):
            for warm in (False, True):
                settings = {"max_iter": 2, "learning_rate": 1e-3, "warm_start": warm, "random_state": 0}
                trained = optimizer(model, **settings).fit(X, y)
                graphs = {"trained": trained.get_trained_onnx(), **trained._fitted.step.graphs()}
                for kind, graph in graphs.items():
                    digest = hashlib.sha256(graph.SerializeToString()).hexdigest()
                    found[f"{name} {optimizer.__name__} {warm} {kind}"] = digest
    return found


def started(seed, names):
    return subprocess.Popen(
        [sys.executable, __file__, *names],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )


@pytest.mark.slow
def test_new_processes():
    names = list(MODELS)
    processes = [started("1", names), started("2", reversed(names))]
    first, second = (json.loads(process.communicate(timeout=240)[0]) for process in processes)
    assert first == second
    assert sum(key.endswith(" trained") for key in first) == len(names) * 2 * 2


@pytest.mark.slow
def test_same_process():
    names = ["vote", "mixture"]
    assert digests(names) == digests(names)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(digests(sys.argv[1:])))
