"""scikit-learn's checks of estimators, on both estimators around many models."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn import config_context
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_estimator,
    check_estimator_sparse_matrix,
    check_regressor_data_not_an_array,
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    check_sample_weights_not_an_array,
    check_sample_weights_pandas_series,
)

from .expected_failures import ARRAY_API, expected_failures
from .models import MODELS, OPTIMIZERS, checks_of, estimators

ROOT = Path(__file__).parents[3]


def _checks():
    for step, model, estimator in estimators():
        failures, numbers = expected_failures(estimator), {}
        for name, instance, check in checks_of(estimator):
            if name == ARRAY_API:
                continue
            marks = []
            if name in failures:
                kinds = (AssertionError, ValueError)
                marks.append(pytest.mark.xfail(reason=failures[name], raises=kinds, strict=True))
            numbers[name] = number = numbers.get(name, 0) + 1
            case = f"{step}-{model}|{name}" + (f"_{number}" if number > 1 else "")
            yield pytest.param(instance, check, marks=marks, id=case)


@pytest.mark.sweep(12, times=5)
@pytest.mark.filterwarnings("ignore")  # as in scikit-learn, since checks test warnings themselves
@pytest.mark.parametrize("estimator, check", list(_checks()))
def test_check_of_sklearn(estimator, check):
    check(estimator)


def test_expected_failures_are_checks():
    for _, _, estimator in estimators():
        assert set(expected_failures(estimator)) <= {name for name, _, _ in checks_of(estimator)}


@pytest.mark.sweep(5)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("learning_rate", [pytest.param("LBFGS", marks=pytest.mark.slow), "Adam"])
@pytest.mark.parametrize("model", [name for name in MODELS if not name.startswith("pipeline")])
@pytest.mark.parametrize("step", OPTIMIZERS)
def test_weights_equal_repeated_samples(step, model, learning_rate):
    options = {"batch_size": 1000, "max_iter": 20, "dtype": "float64"}
    if learning_rate == "LBFGS":  # classes of the check are separable: without a penalty, there is no minimum
        options["learning_penalty"] = "l2"
    estimator = OPTIMIZERS[step](MODELS[model], learning_rate=learning_rate, **options)
    check_sample_weight_equivalence_on_dense_data("", estimator)
    check_sample_weight_equivalence_on_sparse_data("", estimator)


@pytest.mark.parametrize("step", OPTIMIZERS)
def test_weights_routed_to_a_scaler(step):
    with config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        model = make_pipeline(scaler, Ridge().set_fit_request(sample_weight=True))
        estimator = OPTIMIZERS[step](model, learning_rate="Adam", batch_size=1000, dtype="float64")
        check_sample_weight_equivalence_on_dense_data("", estimator.set_params(max_iter=20))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("step", OPTIMIZERS)
def test_check_estimator(step):
    estimator = OPTIMIZERS[step](MODELS["Ridge"], learning_rate="Adam", max_iter=1)
    failures = expected_failures(estimator)
    found = check_estimator(estimator, expected_failed_checks=failures, on_skip=None)
    assert {result["check_name"] for result in found if result["status"] == "xfail"} == set(failures)


@pytest.mark.slow
def test_array_api_dispatch():
    listed = [name for _, _, estimator in estimators() for name, _, _ in checks_of(estimator)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.estimators.common.array_api"],
        cwd=ROOT,
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == (4 if ARRAY_API in listed else 0)  # older versions check none


@pytest.mark.sweep(4)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "check",
    [
        check_estimator_sparse_matrix,
        check_regressor_data_not_an_array,
        check_sample_weights_not_an_array,
        check_sample_weights_pandas_series,
    ],
)
@pytest.mark.parametrize("step", OPTIMIZERS)
def test_validation_split_of_any_data(step, check):
    estimator = OPTIMIZERS[step](MODELS["LinearRegression"], learning_rate="Adam", early_stopping=True)
    check("", estimator.set_params(max_iter=2, n_iter_no_change=2, batch_size=20))


def test_stratified_split_of_values_is_rejected():
    estimator = OPTIMIZERS["one_graph"](MODELS["LogisticRegression"], early_stopping=True)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        estimator.fit([[0.0], [1.0], [2.0], [3.0]], [0.1, 0.2, 0.3, 0.4])
