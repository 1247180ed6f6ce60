"""The same wrong samples end in the same message in every method and search."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from ortlearn import OrtGradientOptimizer
from ortlearn.callbacks import ModelCheckpoint
from ortlearn.search import OrtGridSearchCV
from tests.estimators.wrong_samples import IN_COLUMNS, N_SAMPLES, WRONG_SAMPLES, sentence

#: One split, so that each fold has the wrong sample.
SPLIT = [(np.arange(N_SAMPLES), np.arange(N_SAMPLES))]


def trainer(**options):
    given = {"max_iter": 2, "batch_size": 10, "random_state": 0, "learning_rate": 0.1}
    return OrtGradientOptimizer(LogisticRegression(), **given | options)


def table(X, y, weight):
    pa = pytest.importorskip("pyarrow")
    columns = {f"x{place}": pa.array(column, from_pandas=False) for place, column in enumerate(X.T)}
    others = {"label": y, "weight": weight}
    return pa.table(columns | {name: values for name, values in others.items() if values is not None})


def named(y, weight):
    return None if y is None else "label", None if weight is None else "weight"


def in_search(search, X, y, weight, estimator=None):
    arguments = {"error_score": "raise", "cv": SPLIT}
    weights = {} if weight is None else {"sample_weight": weight}
    return search(estimator or trainer(), {"max_iter": [1, 2]}, **arguments).fit(X, y, **weights)


def in_file(X, y, weight, folder):
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(table(X, y, weight), folder / "samples.parquet")
    return trainer().fit_stream(folder, *named(y, weight))


ARRAYS = {
    "partial_fit": lambda X, y, weight, folder: trainer().partial_fit(X, y, sample_weight=weight),
    "fit_stream of arrays": lambda X, y, weight, folder: trainer().fit_stream(X, y, weight),
    "fit_stream of a batch": lambda X, y, weight, folder: trainer().fit_stream([(X, y, weight)]),
    "GridSearchCV": lambda X, y, weight, folder: in_search(GridSearchCV, X, y, weight),
    "OrtGridSearchCV": lambda X, y, weight, folder: in_search(OrtGridSearchCV, X, y, weight),
}
COLUMNS = {
    "fit_stream of a table": lambda X, y, weight, folder: trainer().fit_stream(
        table(X, y, weight), *named(y, weight)
    ),
    "fit_stream of a frame": lambda X, y, weight, folder: trainer().fit_stream(
        table(X, None, None).to_pandas(), y, weight
    ),
    "fit_stream of a file": in_file,
}


pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning", "ignore:invalid value:RuntimeWarning")


def message(call, *given):
    with pytest.raises(ValueError) as caught:
        call(*given)
    return sentence(caught.value)


@pytest.mark.sweep(22)
@pytest.mark.parametrize("name", WRONG_SAMPLES)
def test_message_is_the_same_everywhere(name, tmp_path):
    given = WRONG_SAMPLES[name]
    expected = message(trainer().fit, *given)
    for method, call in {**ARRAYS, **(COLUMNS if name in IN_COLUMNS else {})}.items():
        assert message(call, *given, tmp_path) == expected, method


@pytest.mark.slow
@pytest.mark.needs_callbacks
def test_message_in_a_resumed_search(tmp_path):
    X, y = np.random.default_rng(1).standard_normal((N_SAMPLES, 2)), np.arange(N_SAMPLES) % 2
    searched = trainer().set_callbacks(ModelCheckpoint(tmp_path, resume=True))
    in_search(GridSearchCV, X, y, None, searched)
    for name, given in WRONG_SAMPLES.items():
        found = message(lambda *given: in_search(GridSearchCV, *given, searched), *given)
        assert found == message(trainer().fit, *given), name
