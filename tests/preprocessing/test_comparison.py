"""Graphs of steps are compared with scikit-learn on some samples."""

import numpy as np
import pandas as pd
import pytest
from onnx import parser
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

from ortlearn.exceptions import FallbackWarning
from ortlearn.preprocessing.column_reading import read_columns
from ortlearn.preprocessing.comparison import difference, probe_samples
from ortlearn.preprocessing.schema import input_schema
from ortlearn.trainable.conversion import to_trainable
from tests.preprocessing.graph_runs import run


def test_probes_have_a_missing_value_of_each_column():
    X = np.zeros((1000, 2))
    X[777, 0] = X[778, 1] = np.nan
    assert np.isnan(probe_samples(X)).any(axis=0).all()
    frame = pd.DataFrame({"a": ["x"] * 1000, "b": [1.0] * 1000})
    frame.loc[777, "a"] = np.nan
    frame.loc[778, "b"] = np.nan
    assert probe_samples(frame).isna().any(axis=0).all()
    assert len(probe_samples(["x"] * 10)) == 10


SCALED = """<ir_version: 8, opset_import: ["": 18]>
    g (float[N,2] X) => (float[N,2] Y) <float[1,2] shift = {%s}> { Y = Sub (X, shift) }"""


@pytest.mark.parametrize("error, found", [(0.0, False), (5e-4, False), (5e-3, True)])
def test_differences(error, found):
    X = np.random.RandomState(0).normal(size=(20, 2))
    scaler = StandardScaler(with_std=False).fit(X)
    graph = parser.parse_model(SCALED % ", ".join(str(mean + error) for mean in scaler.mean_))
    gap = difference(scaler, graph, input_schema(X, scaler), X, run)
    assert (gap is not None) is found
    if found:
        assert "differs from scikit-learn by 0.005" in gap


def test_rounding_is_not_a_difference():
    X = 1e6 + np.random.RandomState(0).normal(size=(50, 2))
    scaler = StandardScaler(with_std=False).fit(X)
    graph = parser.parse_model(SCALED % ", ".join(str(mean) for mean in scaler.mean_))
    schema = input_schema(X, scaler)
    assert np.abs(run(graph, read_columns(X, schema)) - scaler.transform(X)).max() > 1e-2
    assert difference(scaler, graph, schema, X, run) is None


COMPUTED = {
    "one column each": make_pipeline(StandardScaler(), OneHotEncoder(handle_unknown="ignore")),
    "numbers": make_pipeline(
        MinMaxScaler(), OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    ),
    "of a column": ColumnTransformer([("it", make_pipeline(StandardScaler(), OneHotEncoder()), [0])]),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_computed_categories_are_compared(name):
    X = np.random.RandomState(0).randint(0, 7, (60, 2)) + 0.1
    fitted = make_pipeline(COMPUTED[name], Ridge()).fit(X, X.sum(axis=1))
    with pytest.warns(FallbackWarning, match="differs from scikit-learn"):
        assert to_trainable(fitted, X=X, run=run).entry.sklearn_steps is not None
    assert to_trainable(fitted, X=X, dtype=np.float64, run=run).entry.sklearn_steps is None


def test_equal_quantiles_are_compared():
    X = np.random.RandomState(0).randint(0, 3, (60, 1)) + 0.1
    quantiles = QuantileTransformer(n_quantiles=20)
    fitted = make_pipeline(PowerTransformer(), quantiles, Ridge()).fit(X, X.ravel())
    with pytest.warns(FallbackWarning, match=r"'quantiletransformer' \(QuantileTransformer\) stays"):
        assert to_trainable(fitted, X=X, run=run).entry.sklearn_steps is not None
    alone = make_pipeline(quantiles, Ridge()).fit(X, X.ravel())
    assert to_trainable(alone, X=X, run=run).entry.sklearn_steps is None


def test_samples_at_the_edge_of_a_bin_are_not_a_difference():
    X = np.random.RandomState(0).normal(size=(60, 1)).round(1)
    bins = KBinsDiscretizer(4, encode="ordinal", strategy="uniform")
    fitted = make_pipeline(StandardScaler(), bins, OneHotEncoder(), Ridge()).fit(X, X.ravel())
    assert to_trainable(fitted, X=X, run=run).entry.sklearn_steps is None


def test_graphs_that_fail_or_have_other_shapes():
    X = np.ones((4, 2))
    scaler = StandardScaler().fit(X)
    schema = input_schema(X, scaler)
    graph = parser.parse_model(SCALED % "0, 0")
    assert "the shape (4, 1) instead of (4, 2)" in difference(
        scaler, graph, schema, X, lambda model, feeds: np.ones((4, 1))
    )
    assert "missing values" in difference(scaler, graph, schema, X, lambda m, f: np.full((4, 2), np.nan))

    def fails(model, feeds):
        raise RuntimeError("[ONNX] : 1 : no such kernel")

    assert "fails (no such kernel)" in difference(scaler, graph, schema, X, fails)
