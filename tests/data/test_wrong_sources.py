"""Errors of wrong sources name the fault, its place and the remedy, and change nothing."""

import copy
import re
import warnings

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import OrtlearnError, SourceError

pytest.importorskip("polars")
pytest.importorskip("pyarrow")
pytest.importorskip("pandas")
from tests.data.wrong_sources import WRONG, X, Y  # noqa: E402

OPTIONS = {"max_iter": 2, "batch_size": 10, "random_state": 0, "learning_rate": 0.1}


def state(model):
    return {name: array.tobytes() for name, array in model.trained_coef_.items()}, model.train_losses_


@pytest.mark.sweep(85)
@pytest.mark.parametrize("name", WRONG)
def test_error_of_a_wrong_source(tmp_path, name):
    wrong = WRONG[name]
    model = OrtGradientOptimizer(LinearRegression() if wrong.regression else LogisticRegression(), **OPTIONS)
    source, before = wrong.source(tmp_path), copy.copy(model.__dict__)
    with pytest.raises((OrtlearnError, ValueError)) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit_stream(source, **wrong.arguments)
    assert re.search(wrong.message, str(caught.value), re.DOTALL), str(caught.value)
    assert isinstance(caught.value, OrtlearnError) or type(caught.value) is ValueError
    if wrong.right is None:
        assert model.__dict__ == before
        return
    assert isinstance(caught.value, SourceError)  # the training so far is kept, and can be resumed
    resumed = model.fit_stream(wrong.right(tmp_path), **wrong.arguments, resume_from=model)
    model = OrtGradientOptimizer(LogisticRegression(), **OPTIONS)
    assert state(resumed) == state(model.fit_stream(wrong.right(tmp_path), **wrong.arguments))


def test_wrong_source_leaves_a_trained_model(tmp_path):
    model = OrtGradientOptimizer(LogisticRegression(), **OPTIONS).fit_stream([(X, Y)])
    before = state(model)
    for number, (name, wrong) in enumerate(WRONG.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        if wrong.regression or wrong.right or number % 5:
            continue
        with pytest.raises((SourceError, ValueError)):
            model.fit_stream(wrong.source(folder), **wrong.arguments)
        assert state(model) == before, name


def test_missing_columns_are_not_imputed(tmp_path):
    for name in ("column missing", "column renamed", "column of a later file", "filtered dataset"):
        wrong, folder = WRONG[f"files: {name}"], tmp_path / name
        folder.mkdir()
        model = OrtGradientOptimizer(make_pipeline(SimpleImputer(), LogisticRegression()), **OPTIONS)
        with pytest.raises(SourceError, match=wrong.message):
            model.fit_stream(wrong.source(folder), **wrong.arguments)


def test_number_of_wrong_sources():
    assert len(WRONG) >= 100 and np.unique(list(WRONG)).size == len(WRONG)
