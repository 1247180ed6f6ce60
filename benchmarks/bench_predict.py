"""Compare prediction times: exported files, ``predictor()`` and ``predict``.

``python -m benchmarks.bench_predict`` fits models on 20 columns, trains them for an epoch, and compares

- the exported file, and ``predict``, with the file that skl2onnx writes for the same model, in onnxruntime
  with the same options and one thread, for several numbers of samples;
- ``predictor()`` with ``InferenceSession.run`` of the exported file, for one sample;
- ``predict`` with ``predict`` of the scikit-learn model, for one sample of several types.

Compared functions alternate, and each is first equally often. A ratio is the median over the rounds. Times
are processor times of the calling thread, which does all the work.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from benchmarks.figures import median, number, ratio
from benchmarks.machine import describe, versions
from benchmarks.measures.programs import Sheet
from ortlearn import OrtGradientOptimizer

__all__ = ["LIMITS", "compare", "files", "main", "methods", "predictors", "sheets"]

N_FEATURES = 20
#: Numbers of samples per prediction.
SIZES = (1, 100, 10_000)
#: Functions that create a model, and the kind of its labels.
MODELS: dict[str, tuple[Callable[[], Any], str]] = {
    "Ridge": (Ridge, "numbers"),
    "LogisticRegression, 2 classes": (LogisticRegression, "two"),
    "LogisticRegression, 3 classes": (LogisticRegression, "three"),
    "StandardScaler, Ridge": (lambda: make_pipeline(StandardScaler(), Ridge()), "numbers"),
    "StandardScaler, LogisticRegression": (
        lambda: make_pipeline(StandardScaler(), LogisticRegression()),
        "two",
    ),
    "MLPRegressor": (lambda: MLPRegressor(hidden_layer_sizes=(50, 10), tol=1.0), "numbers"),
    "MLPClassifier, 2 classes": (lambda: MLPClassifier(hidden_layer_sizes=(50, 10), tol=1.0), "two"),
    "MLPClassifier, 3 classes": (lambda: MLPClassifier(hidden_layer_sizes=(50, 10), tol=1.0), "three"),
    "DecisionTreeRegressor": (lambda: DecisionTreeRegressor(random_state=0), "numbers"),
    "RandomForestRegressor, 100 trees": (lambda: RandomForestRegressor(random_state=0), "numbers"),
    "ExtraTreesRegressor, 100 trees": (lambda: ExtraTreesRegressor(random_state=0), "numbers"),
    "RandomForestClassifier, 100 trees": (
        lambda: RandomForestClassifier(min_samples_leaf=5, random_state=0),
        "three",
    ),
    "GradientBoostingRegressor": (lambda: GradientBoostingRegressor(random_state=0), "numbers"),
}
#: Bounds of the ratios of files.
LIMITS = {
    name: 1.5 if any(kind in name for kind in ("Boosting", "Forest", "Tree")) else 1.05 for name in MODELS
}
#: Bounds: microseconds of a predictor above the session, and ratio of predict to scikit-learn's.
MORE, OF_OWN = 5.0, 1.2


def data(n_samples: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return samples, and labels of each kind."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, N_FEATURES)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2]).astype(np.float32)
    return X, {"numbers": y, "two": (y > 0).astype(int), "three": np.digitize(y, [-0.5, 0.5])}


def trained(name: str, n_train: int) -> tuple[Any, OrtGradientOptimizer]:
    """Return a fitted model, and an estimator that trained it for one epoch."""
    X, labels = data(n_train)
    make, kind = MODELS[name]
    model = make().fit(X, labels[kind])
    options: dict[str, Any] = {"max_iter": 1, "warm_start": True, "random_state": 0, "learning_rate": 1e-3}
    return model, OrtGradientOptimizer(model, keep_better=False, **options).fit(X, labels[kind])


def compare(
    ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int, seconds: float
) -> list[list[float]]:
    """Return the microseconds of two functions in each round; they alternate."""
    begin = time.thread_time()
    ours(), theirs()
    calls = max(1, int(seconds / (time.thread_time() - begin + 1e-7)))
    times: list[list[float]] = [[], []]
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 else (1, 0):
            function = (ours, theirs)[which]
            function()  # warms the caches
            begin = time.thread_time()
            for _ in range(calls):
                function()
            times[which].append(1e6 * (time.thread_time() - begin) / calls)
    return times


def session_of(model: Any) -> Any:
    """Return a session with default options and one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)


def by_skl2onnx(model: Any, X: np.ndarray) -> Any:
    """Return the model of skl2onnx, with arrays as outputs."""
    from skl2onnx import to_onnx

    options = {"zipmap": False} if is_classifier(model) else None
    return to_onnx(model, X[:1], options=options, target_opset={"": 18, "ai.onnx.ml": 3})


def files(
    names: list[str], n_train: int, rounds: int, seconds: float, sizes: Sequence[int] = SIZES
) -> Iterator[tuple[str, int, list[list[float]], float]]:
    """Yield model, samples, times of our file and of skl2onnx's, and the ratio of predict to the latter."""
    X, _ = data(max(sizes))
    for name in names:
        model, trainer = trained(name, n_train)
        ours, theirs = session_of(trainer.get_trained_onnx()), session_of(by_skl2onnx(model, X))
        for n_samples in sizes:
            feeds = {"X": X[:n_samples].copy()}
            times = compare(partial(ours.run, None, feeds), partial(theirs.run, None, feeds), rounds, seconds)
            own = compare(
                partial(trainer.predict, feeds["X"]), partial(theirs.run, None, feeds), rounds, seconds
            )
            yield name, n_samples, times, ratio(*own)


def predictors(rounds: int, seconds: float, n_train: int = 1000) -> Iterator[tuple[str, float]]:
    """Yield models, and the microseconds of ``predictor()`` on one sample above those of the session."""
    for name in (
        "Ridge",
        "LogisticRegression, 2 classes",
        "MLPRegressor",
        "RandomForestRegressor, 100 trees",
    ):
        _, trainer = trained(name, n_train)
        predict, sample = trainer.predictor(), data(1)[0]
        session = session_of(trainer.get_trained_onnx())
        feeds, output = {session.get_inputs()[0].name: sample}, [session.get_outputs()[0].name]
        times = compare(partial(predict, sample), partial(session.run, output, feeds), rounds, seconds)
        yield name, median([a - b for a, b in zip(*times, strict=True)])


def methods(rounds: int, seconds: float, n_train: int = 1000) -> Iterator[tuple[str, list[list[float]]]]:
    """Yield types of one sample, and the times of ``predict`` and ``Ridge.predict``."""
    import pandas

    model, trainer = trained("Ridge", n_train)
    sample = data(1)[0]
    frame = pandas.DataFrame(sample, columns=[f"x{i}" for i in range(N_FEATURES)])
    kinds = {"float32": sample, "float64": sample.astype(float), "a list": sample.tolist()}
    for kind, given in kinds.items():
        yield kind, compare(partial(trainer.predict, given), partial(model.predict, given), rounds, seconds)
    X, labels = data(n_train)
    X = pandas.DataFrame(X, columns=frame.columns)
    model = Ridge().fit(X, labels["numbers"])
    named = OrtGradientOptimizer(model, max_iter=1, random_state=0).fit(X, labels["numbers"])
    yield "a frame", compare(partial(named.predict, frame), partial(model.predict, frame), rounds, seconds)


def verdict(value: float, limit: float) -> str:
    """Return a ratio as text, with a note if it is above the limit."""
    return f"{number(value)}{'' if value <= limit else f' (over {limit:g})'}"


def sheets(
    quick: bool, names: list[str] | None = None, rounds: int = 21, seconds: float = 0.02, n_train: int = 2000
) -> list[Sheet]:
    """Return a table of files, of bare predictors, and of ``predict``.

    Parameters
    ----------
    quick : bool
        Whether to use one model, few samples and two rounds.
    names : list of str, default=None
        Models; all by default.
    rounds, seconds, n_train : int, float, int
        Number of rounds, seconds per round, and number of training samples.
    """
    warnings.simplefilter("ignore")
    if quick:
        names, rounds, seconds, n_train = ["Ridge"], 2, 0.0, 60
    return [
        sheet_of_files(files(names or list(MODELS), n_train, rounds, seconds)),
        sheet_of_predictors(dict(predictors(rounds, seconds, min(n_train, 1000)))),
        sheet_of_methods(dict(methods(rounds, seconds, min(n_train, 1000)))),
    ]


def sheet_of_files(measured: Iterable[tuple[str, int, list[list[float]], float]]) -> Sheet:
    """Return the table of exported files, from the results of :func:`files`."""
    rows, worst = [], 0.0
    for name, n_samples, times, own in measured:
        ours, theirs = (number(median(part)) for part in times)
        worst = max(worst, ratio(*times) / LIMITS[name])
        found = verdict(ratio(*times), LIMITS[name])
        rows.append([name, str(n_samples), ours, theirs, found, number(own)])
    header = ["model", "samples", "time, us", "skl2onnx, us", "ratio", "predict / skl2onnx"]
    text = "Exported files compared with those of skl2onnx in onnxruntime, and `predict` with the latter."
    return Sheet(text, header, rows, {"exported files / limit, largest": worst})


def sheet_of_predictors(more: Mapping[str, float]) -> Sheet:
    """Return the table of bare predictors."""
    rows = [[name, verdict(value, MORE)] for name, value in more.items()]
    text = "`predictor()` on one sample: microseconds in addition to `InferenceSession.run`."
    return Sheet(text, ["model", "us"], rows, {"predictor, most microseconds": max(more.values())})


def sheet_of_methods(times_of: Mapping[str, list[list[float]]]) -> Sheet:
    """Return the table of ``predict``."""
    rows = [
        [kind, *(number(median(part)) for part in times), verdict(ratio(*times), OF_OWN)]
        for kind, times in times_of.items()
    ]
    figures = {f"predict, {kind} / Ridge's": ratio(*times) for kind, times in times_of.items()}
    text = "`predict` on one sample compared with that of Ridge, by the type of the sample."
    return Sheet(text, ["sample", "time, us", "Ridge.predict, us", "ratio"], rows, figures)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--seconds", type=float, default=0.02, help="seconds of a round")
    parser.add_argument("--train", type=int, default=2000, help="samples that models are fitted on")
    parser.add_argument("--models", nargs="*", choices=list(MODELS), default=list(MODELS), metavar="MODEL")
    options = parser.parse_args(arguments)
    print(f"{describe()}; {', '.join(f'{name} {version}' for name, version in versions().items())}\n")
    for sheet in sheets(False, options.models, options.rounds, options.seconds, options.train):
        print(sheet.markdown())


if __name__ == "__main__":
    main()
