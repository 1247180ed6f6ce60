"""Copies of fitted estimators without what skl2onnx trips over, and the options it needs for them."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from ..converters.elementwise import as_elementwise
from ..inputs.first_readers import IDLE_STEPS
from .class_labels import with_plain_classes
from .kinds import last_step
from .text_categories import with_codes
from .thawing import thawed

__all__ = ["conversion_options", "convertible"]

#: scikit-learn's pattern of words, and the same for the regular expressions of onnxruntime.
WORDS = r"(?u)\b\w\w+\b"
WORDS_IN_ONNX = r"[\pL\pN_][\pL\pN_]+"
#: Where small and capital letters are looked up: on Linux only this one is always installed.
LOCALE = "C.UTF-8" if sys.platform == "linux" else None


def convertible(estimator: BaseEstimator) -> BaseEstimator:
    """Return a fitted estimator without what skl2onnx trips over.

    That is steps of pipelines that do nothing, members wrapped as ``FrozenEstimator``, the intercept of
    a linear model without one (a number where others have an array), missing texts, which a graph knows
    as ``"nan"``, functions, categories that are text within a model, and classes of types that it has
    no labels for.

    Parameters
    ----------
    estimator : estimator
        Fitted.

    Returns
    -------
    estimator
        The same one, or a copy that is good for conversion only.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import Pipeline
    >>> from ortlearn.conversion.preparation.convertible import convertible
    >>> convertible(Pipeline([("nothing", "passthrough"), ("ridge", Ridge())])).steps
    [('ridge', Ridge())]
    """
    estimator = with_plain_classes(thawed(estimator))
    if isinstance(estimator, Pipeline):
        steps = [(name, convertible(step)) for name, step in estimator.steps if step not in IDLE_STEPS]
        return Pipeline(steps) if steps else estimator
    if isinstance(estimator, ColumnTransformer):
        columns = copy.copy(estimator)
        columns.transformers_ = [
            (name, convertible(step), own) for name, step, own in estimator.transformers_
        ]
        return columns
    if isinstance(estimator, FeatureUnion):
        union = copy.copy(estimator)
        union.transformer_list = [(name, convertible(step)) for name, step in estimator.transformer_list]
        return union
    if isinstance(estimator, SimpleImputer):
        return _imputer_of_text(estimator)
    if isinstance(estimator, FunctionTransformer):
        return as_elementwise(estimator)
    if isinstance(estimator, HistGradientBoostingClassifier | HistGradientBoostingRegressor):
        return with_codes(estimator)
    if not isinstance(getattr(estimator, "intercept_", None), float):
        return estimator
    estimator = copy.copy(estimator)
    estimator.intercept_ = np.full(len(np.atleast_2d(estimator.coef_)), estimator.intercept_)
    return estimator


def _imputer_of_text(imputer: SimpleImputer) -> SimpleImputer:
    """Return an imputer of texts whose missing value is what a graph is given for it."""
    statistics = getattr(imputer, "statistics_", np.zeros(0))
    if statistics.dtype.kind not in "OUT" or isinstance(imputer.missing_values, str):
        return imputer
    imputer = copy.copy(imputer)
    imputer.missing_values = "None" if imputer.missing_values is None else "nan"
    return imputer


def conversion_options(estimator: BaseEstimator) -> dict[Any, dict] | None:
    """Return skl2onnx's options for a fitted estimator.

    Parameters
    ----------
    estimator : estimator
        What is converted, itself: options go by identity.

    Returns
    -------
    dict or None
        Probabilities of a classifier as a matrix, decisions of one-against-rest as they are, and words as
        scikit-learn splits them, letters beyond ASCII included.
    """
    options: dict[Any, dict] = {}
    for vectorizer in _vectorizers(estimator):
        options[id(vectorizer)] = {"locale": LOCALE}
        if vectorizer.analyzer == "word" and vectorizer.token_pattern == WORDS:
            options[id(vectorizer)]["tokenexp"] = WORDS_IN_ONNX
    if is_classifier(estimator):
        options[id(estimator)] = {"zipmap": False}
    last = last_step(estimator)
    if isinstance(last, LinearSVC) and last is not estimator:
        options[id(last)] = {"nocl": False}  # the default: else skl2onnx gives it an option it has not
    for meta in _deciding_against_rest(last):
        options.setdefault(id(meta), {})["raw_scores"] = True
    return options or None


def _deciding_against_rest(estimator: Any) -> Iterator[OneVsRestClassifier]:
    """Yield a one-against-rest classifier by decisions, which skl2onnx else divides by their sum."""
    if isinstance(estimator, OneVsRestClassifier) and not hasattr(estimator, "predict_proba"):
        members = estimator.estimators_
        # Of LinearSVC it takes both columns, of a regressor the threshold would be another one.
        if all(is_classifier(member) and not isinstance(member, LinearSVC) for member in members):
            yield estimator


def _vectorizers(estimator: Any) -> Iterator[CountVectorizer]:
    if isinstance(estimator, Pipeline):
        inner = [step for _, step in estimator.steps]
    elif isinstance(estimator, ColumnTransformer):
        inner = [step for _, step, _ in estimator.transformers_]
    elif isinstance(estimator, FeatureUnion):
        inner = [step for _, step in estimator.transformer_list]
    else:
        inner = []
        if isinstance(estimator, CountVectorizer):
            yield estimator
    for step in inner:
        yield from _vectorizers(step)
