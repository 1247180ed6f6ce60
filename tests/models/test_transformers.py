"""Numeric transformers, imputers and feature selectors."""

import numpy as np
import pytest
from sklearn import feature_selection, preprocessing
from sklearn.ensemble import RandomTreesEmbedding, VotingClassifier
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import NoTrainableWeightError
from ortlearn.graphs import TensorType
from ortlearn.models import all_covered, write_model
from ortlearn.models.transformations.numeric import FUNCTIONS
from ortlearn.testing import check_model
from ortlearn.trainable.conversion import to_trainable
from tests.models.transformations import transformed

RNG = np.random.RandomState(0)
X = RNG.normal(size=(60, 4))
Y = X @ [1.0, -2.0, 0.5, 0.0]
GAPS = np.where(RNG.uniform(size=X.shape) < 0.2, np.nan, X)
TIED = np.round(X)
BINS = {"n_bins": 4, "quantile_method": "averaged_inverted_cdf"}


def check_transformation(model, samples):
    """Compare the graph of a transformer with scikit-learn, and check that it has no parameters."""
    assert all_covered(model)
    expected = model.transform(samples)
    expected = expected.toarray() if hasattr(expected, "toarray") else expected
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-5)):
        found = transformed(model, samples, dtype)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    with pytest.raises(NoTrainableWeightError):
        to_trainable(model, X=samples)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("method", ["yeo-johnson", "box-cox"])
def test_powers(method, standardize):
    samples = np.exp(X) if method == "box-cox" else X
    model = preprocessing.PowerTransformer(method, standardize=standardize).fit(samples)
    check_model(model, samples)
    gaps = np.where(np.isnan(GAPS), np.nan, samples)
    np.testing.assert_allclose(transformed(model, gaps, np.float64), model.transform(gaps), rtol=1e-8)


@pytest.mark.parametrize("power", [0.0, 1e-9, 1.0, 2.0, 2.0 + 1e-9])
def test_powers_outside_the_domain_of_the_usual_formula(power):
    model = preprocessing.PowerTransformer().fit(X)
    model.lambdas_ = np.full(4, power)
    check_model(model, X)


@pytest.mark.parametrize("n_quantiles", [1, 2, 7, 60])
@pytest.mark.parametrize("samples", [X, TIED], ids=["distinct", "tied"])
def test_quantiles(samples, n_quantiles):
    model = preprocessing.QuantileTransformer(n_quantiles=n_quantiles).fit(samples)
    beyond = np.concatenate([samples, 2 * samples, GAPS])
    found = transformed(model, beyond, np.float64)
    np.testing.assert_allclose(found, model.transform(beyond), atol=1e-12)
    if samples is X and n_quantiles > 1:
        check_model(model, 0.9 * X + 0.01)


@pytest.mark.parametrize("n_quantiles", [1, 2, 7, 60])
@pytest.mark.parametrize("samples", [X, TIED, np.ones((60, 4))], ids=["distinct", "tied", "constant"])
def test_quantiles_of_a_normal_distribution(samples, n_quantiles):
    model = preprocessing.QuantileTransformer(n_quantiles=n_quantiles, output_distribution="normal").fit(
        samples
    )
    beyond = np.concatenate([samples, 2 * samples, GAPS, samples + 1e-8, samples - 1e-8])
    found = transformed(model, beyond, np.float64)
    # quantiles are clipped to 1e-7 at both ends; scikit-learn rounds at the upper one
    np.testing.assert_allclose(found, model.transform(beyond), atol=1e-9)
    if samples is X and n_quantiles > 1:
        check_model(model, 0.9 * X + 0.01)


def test_the_ends_of_a_normal_distribution():
    samples = np.linspace(0.0, 1.0, 4001)[:, None]
    model = preprocessing.QuantileTransformer(n_quantiles=2, output_distribution="normal").fit(samples)
    ends = np.concatenate([np.geomspace(1e-9, 1e-2, 500), 1 - np.geomspace(1e-9, 1e-2, 500)])[:, None]
    for values in (samples, ends):
        np.testing.assert_allclose(transformed(model, values, np.float64), model.transform(values), atol=1e-9)
        near = values.astype(np.float32).astype(np.float64)
        np.testing.assert_allclose(transformed(model, near, np.float32), model.transform(near), atol=1e-3)


@pytest.mark.parametrize(
    "model",
    [
        *[preprocessing.PolynomialFeatures(degree) for degree in (0, 1, 2, 3, (2, 3))],
        preprocessing.PolynomialFeatures(3, interaction_only=True, include_bias=False),
        *[preprocessing.Normalizer(norm) for norm in ("l1", "l2", "max")],
        preprocessing.Binarizer(threshold=0.5),
        *[preprocessing.KBinsDiscretizer(encode=e, **BINS) for e in ("ordinal", "onehot-dense", "onehot")],
        preprocessing.KBinsDiscretizer([2, 3, 4, 5], encode="ordinal", strategy="uniform"),
        preprocessing.KBinsDiscretizer(4, encode="onehot", strategy="uniform"),
        preprocessing.KBinsDiscretizer(3, encode="onehot-dense", strategy="kmeans", random_state=0),
        preprocessing.KBinsDiscretizer(3, encode="onehot", strategy="kmeans", random_state=0),
        RandomTreesEmbedding(n_estimators=5, max_depth=3, random_state=0),
        RandomTreesEmbedding(n_estimators=2, max_depth=4, min_samples_leaf=30, sparse_output=False),
        feature_selection.VarianceThreshold(0.9),
    ],
    ids=str,
)
@pytest.mark.parametrize("samples", [X, TIED], ids=["distinct", "tied"])
@pytest.mark.filterwarnings("ignore:Bins whose width", "ignore:Number of distinct clusters")
def test_transformers_without_parameters(model, samples):
    zeros = np.concatenate([samples, np.zeros((2, 4))])
    check_transformation(model.fit(zeros), zeros)


@pytest.mark.parametrize("encode", ["ordinal", "onehot", "onehot-dense"])
@pytest.mark.parametrize("strategy", ["uniform", "quantile", "kmeans"])
@pytest.mark.filterwarnings("ignore:Bins whose width", "ignore:Number of distinct", "ignore:Feature 3 is")
def test_borders_of_bins(strategy, encode):
    samples = np.column_stack([TIED[:, :3], np.ones(60)])  # the last column is constant
    options = {**BINS, "n_bins": 3, "strategy": strategy, "encode": encode}
    model = preprocessing.KBinsDiscretizer(**options).fit(samples)
    borders = np.column_stack([np.resize(edges, 5) for edges in model.bin_edges_])
    inner = np.where(np.isfinite(borders), borders, 0.0)
    check_transformation(model, np.concatenate([samples, inner, inner[:1] * 9]))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: getattr(f, "__name__", "identity"))
def test_functions(function):
    samples = np.exp(X)
    samples = samples / (1 + samples.max()) if function is np.arctanh else samples
    check_transformation(preprocessing.FunctionTransformer(function).fit(samples), samples)


@pytest.mark.parametrize(
    "model",
    [
        preprocessing.FunctionTransformer(lambda samples: samples + 1),
        preprocessing.FunctionTransformer(np.log1p, kw_args={"where": True}),
    ],
)
def test_other_functions_have_no_definition(model):
    assert not all_covered(model.fit(X))


@pytest.mark.parametrize("indicator", [True, False])
@pytest.mark.parametrize("missing", [np.nan, -1, 0])
@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
def test_imputers(strategy, missing, indicator):
    samples = np.where(np.isnan(GAPS), missing, GAPS)
    model = SimpleImputer(missing_values=missing, strategy=strategy, add_indicator=indicator).fit(samples)
    check_model(model, samples)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.filterwarnings("ignore:Skipping features")
def test_a_column_of_gaps(kept):
    samples = GAPS.copy()
    samples[:, 1] = np.nan
    model = SimpleImputer(keep_empty_features=kept).fit(samples)
    check_model(model, samples)
    optimizer = OrtGradientOptimizer(model, max_iter=2, learning_rate=0.01, warm_start=True, random_state=0)
    optimizer.fit(samples, X if kept else X[:, [0, 2, 3]])
    expected = model.statistics_
    trained = optimizer.to_sklearn().statistics_
    assert np.array_equal(np.isnan(trained), np.isnan(expected))
    assert not np.allclose(trained, expected, equal_nan=True)


@pytest.mark.parametrize("features", ["all", "missing-only"])
@pytest.mark.parametrize("missing", [np.nan, -1])
def test_indicators(features, missing):
    samples = np.where(np.isnan(GAPS), missing, GAPS)
    samples[:, 2] = X[:, 2]
    check_transformation(MissingIndicator(missing_values=missing, features=features).fit(samples), samples)


@pytest.mark.parametrize(
    "model",
    [
        feature_selection.SelectKBest(feature_selection.f_regression, k=2),
        feature_selection.SelectPercentile(feature_selection.f_regression, percentile=50),
        feature_selection.SelectFdr(feature_selection.f_regression),
        feature_selection.SelectFpr(feature_selection.f_regression),
        feature_selection.SelectFwe(feature_selection.f_regression),
        feature_selection.GenericUnivariateSelect(feature_selection.f_regression, mode="k_best", param=3),
        feature_selection.SelectFromModel(Ridge()),
        feature_selection.SequentialFeatureSelector(Ridge(), n_features_to_select=2),
        feature_selection.RFE(Ridge(), n_features_to_select=2),
        feature_selection.RFECV(Ridge()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_selectors(model):
    model.fit(X, Y)
    assert all_covered(model)
    with pytest.raises(NoTrainableWeightError):
        to_trainable(model, X=X)
    check_model(make_pipeline(model, Ridge()).fit(X, Y), X)
    written = write_model(make_pipeline(model, Ridge()).fit(X, Y), {"X": TensorType(1, (None, 4))})
    assert len(written.model.graph.node) <= 4


@pytest.mark.parametrize("name", ["RFE", "RFECV"])
def test_recursive_selectors_as_members(name):
    selector = getattr(feature_selection, name)(LogisticRegression())
    model = VotingClassifier([("some", selector), ("all", LogisticRegression())], voting="soft").fit(X, Y > 0)
    check_model(model, X)


def test_a_selector_without_columns_has_no_definition():
    model = feature_selection.SelectFromModel(Ridge(), threshold=np.inf).fit(X, Y)
    assert not all_covered(model)


def test_only_the_last_step_is_trained_by_default():
    model = make_pipeline(
        SimpleImputer(),
        preprocessing.PowerTransformer(),
        preprocessing.KBinsDiscretizer(encode="onehot-dense", **BINS),
        Ridge(),
    ).fit(GAPS, Y)
    trainable = to_trainable(model, X=GAPS)
    assert {trainable.weights[name].origin for name in trainable.trained} == {
        "ridge: coef_",
        "ridge: intercept_",
    }
