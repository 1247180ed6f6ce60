"""The definitions of the tutorial predict as LightGBM and write weights back."""

import doctest

import numpy as np
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping

from ortlearn import OrtGradientOptimizer, plugins
from ortlearn.models import all_covered, objective_of, public_path
from ortlearn.testing import check_model, check_objective
from tests.docs.pages import DOCS

RNG = np.random.RandomState(0)
X = RNG.normal(size=(300, 4))
Y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * RNG.normal(size=300) + 5.0
MISSING = np.where(RNG.uniform(size=X.shape) < 0.1, np.nan, X)
ZEROS = np.where(RNG.uniform(size=X.shape) < 0.2, 0.0, X)
AMOUNTS = np.exp(Y / 4)
SMALL = {"n_estimators": 6, "num_leaves": 6, "verbose": -1, "n_jobs": 1, "random_state": 0}


@pytest.fixture(scope="module", autouse=True)
def definitions():
    """Register the definitions in the page."""
    page = (DOCS / "tutorials/add-a-model.md").read_text(encoding="utf-8")
    found = {}
    for example in doctest.DocTestParser().get_examples(page):
        if example.source.startswith(("from ", "import ", "class ", "def ")):
            exec(example.source, found)
    with (
        plugins.temporary(plugins.MODELS, public_path(LGBMRegressor), found["LGBMRegressorDefinition"]),
        plugins.temporary(plugins.MODELS, public_path(LGBMClassifier), found["LGBMClassifierDefinition"]),
    ):
        yield found


@pytest.mark.parametrize("fitted_on", [X, MISSING, ZEROS], ids=["all", "missing", "zeros"])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"zero_as_missing": True},
        {"use_missing": False},
        {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.7},
        {"boosting_type": "dart"},
        {"extra_trees": True},
        {"min_child_samples": 200},  # trees of one leaf
    ],
    ids=str,
)
def test_regressor(params, fitted_on, run):
    model = LGBMRegressor(**SMALL, **params).fit(fitted_on, Y)
    given = np.concatenate(
        [MISSING[:40], ZEROS[:40], [[0.0, -0.0, 1e-36, -1e-36], [1e-34, np.nan, 9.0, -9.0]]]
    )
    check_model(model, given, run=run)


OBJECTIVES = "regression regression_l1 huber quantile fair mape poisson gamma tweedie".split()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_objectives(objective, run):
    check_model(LGBMRegressor(objective=objective, **SMALL).fit(MISSING, AMOUNTS), X, run=run)


@pytest.mark.parametrize("params", [{}, {"sigmoid": 2.0}, {"is_unbalance": True}], ids=str)
@pytest.mark.parametrize("bins", [[5.0], [4.0, 6.0]], ids=["two", "three"])
def test_classifier(bins, params, run):
    y = np.array(["low", "mid", "top"])[np.digitize(Y, bins)]
    check_model(LGBMClassifier(**SMALL, **params).fit(MISSING, y), MISSING, run=run)


@pytest.mark.filterwarnings("ignore:The argument 'eval_set'")
def test_early_stopping(run):
    model = LGBMRegressor(**{**SMALL, "n_estimators": 60}, learning_rate=0.5)
    held_out = [(X[:100], Y[:100] + RNG.normal(size=100))]
    model.fit(X[100:], Y[100:], eval_set=held_out, callbacks=[early_stopping(2, verbose=False)])
    assert model.best_iteration_ < 60
    check_model(model, X, run=run)


@pytest.mark.parametrize(
    "model, options",
    [
        (LGBMRegressor(linear_tree=True, **SMALL), {}),
        (LGBMRegressor(reg_sqrt=True, **SMALL), {}),
        (LGBMRegressor(objective=lambda y, f: (f - y, np.ones_like(y)), **SMALL), {}),
        (LGBMRegressor(objective="cross_entropy", **SMALL), {}),
        (LGBMClassifier(objective="multiclassova", **SMALL), {}),
        (LGBMRegressor(**SMALL), {"categorical_feature": [0]}),
    ],
    ids=["linear", "sqrt", "function", "cross_entropy", "one_against_rest", "categories"],
)
def test_unsupported_models(model, options):
    integers = np.column_stack([np.round(X[:, 0] * 2) ** 2, X[:, 1:]])
    y = Y if isinstance(model, LGBMRegressor) else np.digitize(Y, [4.0, 6.0])
    if model.objective == "cross_entropy":
        y = (Y > 5).astype(float)
    assert not all_covered(model.fit(integers, integers[:, 0] % 3 if options else y, **options))


@pytest.mark.parametrize("objective, rtol", [("regression", 1e-4), ("regression_l1", 0.05)])
def test_a_single_tree_minimises_the_objective(objective, rtol, run):
    alone = {**SMALL, "n_estimators": 1, "learning_rate": 1.0, "objective": objective}
    check_objective(LGBMRegressor(**alone).fit(X, Y), X, Y, run=run, rtol=rtol)  # medians are interpolated
    low = LGBMRegressor(**alone).fit(X, Y - 0.3)
    with pytest.raises(AssertionError, match="falls along"):
        check_objective(low, X, Y, run=run, rtol=rtol)


def test_penalised_leaves_have_no_objective():
    assert objective_of(LGBMRegressor(reg_lambda=1.0, **SMALL).fit(X, Y), 300) is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_training_and_back(dtype):
    given, y = MISSING.astype(dtype), np.digitize(Y, [4.0, 6.0])
    fitted = LGBMClassifier(**SMALL).fit(given, y)
    trainer = OrtGradientOptimizer(
        fitted, warm_start=True, learning_rate=0.05, max_iter=10, dtype=dtype, random_state=0
    ).fit(given, y)
    assert trainer.weights_to_train_ == {"leaf_values": "booster_.leaf_outputs"}
    assert trainer.train_losses_[-1] < trainer.train_losses_[0] * 0.8
    back = trainer.to_sklearn()
    np.testing.assert_allclose(back.predict_proba(given), trainer.predict_proba(given), atol=1e-5)
    assert back.booster_ is not fitted.booster_
