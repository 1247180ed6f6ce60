"""Compare prediction times of trees: ``predict``, the file in onnxruntime, scikit-learn, compiled trees.

``python -m benchmarks.bench_trees`` fits models of 100 trees, trains them for an epoch, and measures
``predict`` (``predictor()`` for one sample) against each other function in turn, for several numbers of
samples. Times are processor times with one thread and wall times with more; functions alternate, and a ratio
is the median over the rounds. lleaves and TL2cgen compile trees, where they are installed: 100 trees of 1,000
leaves take them minutes.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from benchmarks.bench_predict import data
from benchmarks.figures import number, ratio
from benchmarks.machine import describe, versions
from benchmarks.tables import table
from ortlearn import OrtGradientOptimizer
from ortlearn.models.trees import Nodes
from ortlearn.models.trees.nodes import trees_of

__all__ = ["MODELS", "PEERS", "main", "rows"]

MODELS: dict[str, Callable[[], Any]] = {
    "forest": lambda: RandomForestRegressor(random_state=0),
    "forest, depth 8": lambda: RandomForestRegressor(max_depth=8, random_state=0),
    "boosting, depth 3": lambda: GradientBoostingRegressor(random_state=0),
    "histograms, 31 leaves": lambda: HistGradientBoostingRegressor(random_state=0, early_stopping=False),
    "forest, classes": lambda: RandomForestClassifier(random_state=0),
    "forest, classes, depth 8": lambda: RandomForestClassifier(max_depth=8, random_state=0),
    "boosting, classes, depth 3": lambda: GradientBoostingClassifier(random_state=0),
    "histograms, classes": lambda: HistGradientBoostingClassifier(random_state=0, early_stopping=False),
}


def session(trained: Any, model: Any, n_threads: int, folder: Path) -> Callable[[np.ndarray], Any]:
    """Return predictions of the exported file in onnxruntime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = n_threads, 1
    content = trained.get_trained_onnx().SerializeToString()
    found = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return lambda X: found.run(None, {"X": X})


def scikit_learn(trained: Any, model: Any, n_threads: int, folder: Path) -> Callable[[np.ndarray], Any]:
    """Return predictions of the scikit-learn model."""
    model = trained.to_sklearn()
    return model.set_params(n_jobs=n_threads).predict if hasattr(model, "n_jobs") else model.predict


def by_lleaves(trained: Any, model: Any, n_threads: int, folder: Path) -> Callable[[np.ndarray], Any]:
    """Return predictions of lleaves, for the sums of the leaves."""
    import lleaves

    (folder / "model.txt").write_text(lightgbm_text(trained.to_sklearn()))
    compiled = lleaves.Model(model_file=str(folder / "model.txt"))
    compiled.compile()
    return partial(compiled.predict, n_jobs=n_threads)


def by_tl2cgen(trained: Any, model: Any, n_threads: int, folder: Path) -> Callable[[np.ndarray], Any]:
    """Return predictions of TL2cgen, by gcc."""
    import tl2cgen
    import treelite

    trees = treelite.sklearn.import_model(trained.to_sklearn())
    library = folder / "model.so"
    options = {"parallel_comp": 8}
    tl2cgen.export_lib(trees, toolchain="gcc", libpath=str(library), params=options)
    compiled = tl2cgen.Predictor(str(library), nthread=n_threads)
    return lambda X: compiled.predict(tl2cgen.DMatrix(X, dtype="float32"))


#: Functions by the title of their column; those of a package that is not installed are not measured.
PEERS: dict[str, tuple[str, Callable[..., Callable[[np.ndarray], Any]]]] = {
    "onnxruntime": ("onnxruntime", session),
    "scikit-learn": ("sklearn", scikit_learn),
    "lleaves": ("lleaves", by_lleaves),
    "TL2cgen": ("tl2cgen", by_tl2cgen),
}


def lightgbm_text(model: Any) -> str:
    """Return the trees of a model as a text of LightGBM; of classifiers, those of the second class."""
    if hasattr(model, "_predictors"):
        parts = [
            (Nodes.of_predictors([own]), own.nodes["value"]) for rounds in model._predictors for own in rounds
        ]
    else:
        parts = [(Nodes.of_trees([tree]), tree.value[:, 0, -1]) for tree in trees_of(model)]
    n_features = model.n_features_in_
    head = {
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": n_features - 1,
        "objective": "regression",
        "feature_names": " ".join(f"x{i}" for i in range(n_features)),
        "feature_infos": " ".join(["[-1000:1000]"] * n_features),
    }
    texts = [_tree_text(number, *part) for number, part in enumerate(parts)]
    head["tree_sizes"] = " ".join(str(len(text)) for text in texts)
    return "tree\n" + _lines(head) + "\n" + "".join(texts) + "end of trees\n\npandas_categorical:null\n"


def _tree_text(number: int, nodes: Nodes, values: np.ndarray) -> str:
    """Return the text of a tree."""
    splits, leaves = np.flatnonzero(~nodes.is_leaf), np.flatnonzero(nodes.is_leaf)
    places = np.empty(len(nodes.is_leaf), dtype=np.int64)
    places[splits], places[leaves] = np.arange(len(splits)), -1 - np.arange(len(leaves))
    left, right = nodes.children
    arrays = {
        "split_feature": nodes.feature[splits],
        "threshold": nodes.threshold[splits],
        "decision_type": np.full(len(splits), 2),
        "left_child": places[left[splits]],
        "right_child": places[right[splits]],
        "leaf_value": np.asarray(values)[leaves],
    }
    texts = {name: " ".join(map(repr, own.tolist())) for name, own in arrays.items()}
    return (
        f"Tree={number}\n"
        + _lines({"num_leaves": len(leaves), "num_cat": 0, **texts, "shrinkage": 1})
        + "\n\n"
    )


def _lines(entries: dict[str, Any]) -> str:
    return "".join(f"{name}={value}\n" for name, value in entries.items())


def rows(
    names: list[str],
    peers: list[str],
    sizes: list[int],
    n_threads: int,
    n_train: int,
    rounds: int,
    seconds: float,
) -> Iterator[list[str]]:
    """Yield a row for each model and number of samples: our time, and its ratio to that of each peer."""
    X, labels = data(max(n_train, *sizes))
    for name in names:
        model = MODELS[name]()
        y = labels["two" if is_classifier(model) else "numbers"][:n_train]
        options: dict[str, Any] = {
            "max_iter": 1,
            "warm_start": True,
            "random_state": 0,
            "learning_rate": 1e-3,
        }
        trained = OrtGradientOptimizer(
            model.fit(X[:n_train], y), keep_better=False, n_jobs=n_threads, **options
        ).fit(X[:n_train], y)
        with tempfile.TemporaryDirectory() as folder:
            others = {peer: PEERS[peer][1](trained, model, n_threads, Path(folder)) for peer in peers}
            for size in sizes:
                samples = X[:size].copy()
                ours = partial(trained.predictor() if size == 1 else trained.predict, samples)
                given = [partial(other, samples) for other in others.values()]
                for peer, function in zip(peers, given, strict=True):
                    _check(ours(), function(), peer)
                times = [_paired(ours, theirs, n_threads, rounds, seconds) for theirs in given]
                best = min(min(pair[0]) for pair in times)
                yield [name, str(size), number(best), *(number(ratio(*pair)) for pair in times)]


def _check(ours: Any, theirs: Any, peer: str) -> None:
    """Raise an error if predictions of a regressor differ by more than a shift and a scale."""
    values = [np.ravel(own[0] if isinstance(own, list) else own) for own in (ours, theirs)]
    if len(values[0]) > 2 and values[0].dtype.kind == "f" and np.corrcoef(*values)[0, 1] < 1 - 1e-6:
        raise AssertionError(f"{peer} predicts other values.")


def _paired(
    ours: Callable[[], Any], theirs: Callable[[], Any], n_threads: int, rounds: int, seconds: float
) -> tuple[list[float], list[float]]:
    """Return the microseconds of two functions in each round."""
    clock = time.process_time if n_threads == 1 else time.perf_counter
    begin = clock()
    ours(), theirs()
    calls = max(1, int(seconds / (clock() - begin + 1e-7)))
    times: tuple[list[float], list[float]] = [], []
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 else (1, 0):
            function = (ours, theirs)[which]
            begin = clock()
            for _ in range(calls):
                function()
            times[which].append(1e6 * (clock() - begin) / calls)
    return times


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    installed = [peer for peer, (module, _) in PEERS.items() if find_spec(module)]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", nargs="*", choices=list(MODELS), default=list(MODELS), metavar="MODEL")
    parser.add_argument("--peers", nargs="*", choices=installed, default=installed, metavar="PEER")
    parser.add_argument(
        "--sizes", nargs="*", type=int, default=[1, 1_000, 100_000], help="numbers of samples"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--train", type=int, default=2000, help="samples that models are fitted on")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.02, help="least seconds of a round")
    given = parser.parse_args(arguments)
    print(f"{describe()}; {', '.join(f'{name} {version}' for name, version in versions().items())}")
    missing = [peer for peer in PEERS if peer not in installed]
    print(f"{given.threads} threads. Not installed: {', '.join(missing) or 'none'}\n")
    found = rows(
        given.models, given.peers, given.sizes, given.threads, given.train, given.rounds, given.seconds
    )
    header = ["100 trees", "samples", "predict, us", *(f"/ {peer}" for peer in given.peers)]
    print(table(header, list(found), 1))


if __name__ == "__main__":
    main()
