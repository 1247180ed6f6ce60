"""Hyper-parameter searches that train many candidates together."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, check_cv
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params

from ..estimators.pretrained import PretrainedModel, provide_pretrained
from ..fitting.callback_support import CALLBACKS
from .candidates import FoldTrainer, candidates_of

__all__ = ["OrtGridSearchCV", "OrtRandomizedSearchCV"]


class _TrainingSplitter:
    """Splitter that trains the candidates once the splits are known."""

    def __init__(self, splitter: Any, evaluation: _Evaluation) -> None:
        self._splitter, self._evaluation = splitter, evaluation

    def split(self, X: Any, y: Any = None, **params: Any) -> list:
        """Return the splits."""
        splits = list(self._splitter.split(X, y, **params))
        self._evaluation.train(X, y, [train for train, _ in splits])
        return splits


class _Evaluation:
    """Candidates of a search, and their trained models in the order in which scikit-learn calls ``fit``."""

    def __init__(
        self, search: Any, parameters: list[Mapping[str, Any]], fit_params: Mapping[str, Any]
    ) -> None:
        self._estimator, self._fit_params = search.estimator, fit_params
        alone = any(getattr(search, name, None) for name in CALLBACKS)
        alone |= effective_n_jobs(search.n_jobs) > 1 or not fit_params.keys() <= {"sample_weight"}
        self._trainer = None if alone else FoldTrainer(candidates_of(search.estimator, parameters))
        self._seconds = np.zeros((len(parameters), 0))
        self.calls: deque[PretrainedModel] = deque()

    def train(self, X: Any, y: Any, folds: list[Any]) -> None:
        """Train the candidates on the samples of each fold."""
        if self._trainer is None:
            return
        candidates, found, seconds = self._trainer.candidates, [], []
        for numbers in folds:
            begun = time.perf_counter()
            X_fold, y_fold = _safe_split(self._estimator, X, y, numbers)
            models = self._trainer.train(X_fold, y_fold, self._weights(X, numbers))
            found.append([(y_fold, model) for model in models])
            trained = np.array([model is not None for model in models])
            seconds.append(trained * (time.perf_counter() - begun) / max(1, trained.sum()))
        self._seconds = np.transpose(seconds)
        for candidate, *fits in zip(candidates, *found, strict=True):
            self.calls.extend(PretrainedModel(candidate.hashes, y_fold, model) for y_fold, model in fits)

    def _weights(self, X: Any, numbers: Any) -> Any:
        # as scikit-learn: weights of another length are not indexed, and their fits fail
        return _check_method_params(X, self._fit_params, numbers).get("sample_weight")

    def with_times(self, results: dict[str, Any]) -> dict[str, Any]:
        """Return the results with the time of the joint training, divided among the candidates."""
        if self._seconds.any():
            last = slice(-len(self._seconds), None)
            results["mean_fit_time"][last] += self._seconds.mean(axis=1)
            results["std_fit_time"][last] = np.hypot(results["std_fit_time"][last], self._seconds.std(axis=1))
        return results


class _JointSearchMixin:
    """Mixin of scikit-learn's searches that trains candidates together."""

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Run the search.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels.
        **params : dict
            Parameters of ``fit`` of the estimator, the scorer and the splitter, such as ``sample_weight``
            and ``groups``.

        Returns
        -------
        object
            This object, fitted.
        """
        self._params, self._labels = params, y
        try:
            return super().fit(X, y, **params)  # type: ignore[misc]
        finally:
            del self._params, self._labels

    def _splitter(self) -> Any:
        """Return the splitter, or None if creating it would exhaust an iterator of splits."""
        if hasattr(self, "_checked_cv_orig"):
            return self._checked_cv_orig
        # scikit-learn before 1.8 does not keep it.
        if isinstance(self.cv, Iterator):  # type: ignore[attr-defined]
            return None
        return check_cv(self.cv, self._labels, classifier=is_classifier(self.estimator))  # type: ignore[attr-defined]

    def _run_search(self, evaluate_candidates: Callable[..., Any], *, callback_ctx: Any = None) -> None:
        # scikit-learn before 1.9 has no callback contexts
        context = {} if callback_ctx is None else {"callback_ctx": callback_ctx}
        splitter = self._splitter()
        if splitter is None:
            super()._run_search(evaluate_candidates, **context)  # type: ignore[misc]
            return
        if get_config()["enable_metadata_routing"]:
            fit_params = process_routing(self, "fit", **self._params).estimator.fit
        else:
            fit_params = {name: value for name, value in self._params.items() if name != "groups"}
        fit_params = {name: value for name, value in fit_params.items() if value is not None}

        def evaluate(
            candidate_params: Iterable[Mapping[str, Any]], cv: Any = None, **others: Any
        ) -> dict[str, Any]:
            parameters = list(candidate_params)
            evaluation = _Evaluation(self, parameters, fit_params)
            with provide_pretrained(evaluation.calls):
                folds = _TrainingSplitter(cv or splitter, evaluation)
                results = evaluate_candidates(parameters, cv=folds, **others)
            return evaluation.with_times(results)

        super()._run_search(evaluate, **context)  # type: ignore[misc]


class OrtGridSearchCV(_JointSearchMixin, GridSearchCV):
    """GridSearchCV that trains candidates together, in one ONNX graph.

    Candidates whose graphs differ only in constants (learning rates, momenta, penalties) are trained
    together: their weights are stacked, and a batch is one step for all of them, on the same samples.
    Parameters, attributes and methods are those of :class:`~sklearn.model_selection.GridSearchCV`, and scores
    are the same up to rounding. Candidates are trained alone, as in GridSearchCV, if they use a solver
    (``"LBFGS"``, which ``"auto"`` often selects), early stopping or ``tol``, warm starts, callbacks, sparse
    features, ``verbose`` or operators that have no batched form, or if their loss becomes non-finite.

    Parameters
    ----------
    estimator : estimator
        An :class:`~ortlearn.OrtGradientOptimizer`; for other estimators the search is that of GridSearchCV.
    param_grid : dict or list of dict
        Parameters to try, as for GridSearchCV.
    scoring : str, callable, list, tuple or dict, default=None
        Scores of the candidates, as for GridSearchCV.
    n_jobs : int, default=None
        Number of processes. Candidates are trained together only if it is None or 1.
    refit : bool, str or callable, default=True
        Whether, or by which score, to train the best candidate on all samples.
    cv : int, cross-validation generator or iterable, default=None
        Folds, as for GridSearchCV.
    verbose : int, default=0
        Verbosity; above 0, candidates are trained alone.
    pre_dispatch : int or str, default="2*n_jobs"
        Number of jobs to dispatch at a time.
    error_score : "raise" or float, default=nan
        Score of a candidate whose training fails.
    return_train_score : bool, default=False
        Whether scores on the training samples are computed, too.

    Attributes
    ----------
    cv_results_, best_estimator_, best_params_, best_index_, best_score_, n_splits_, refit_time_, classes_
        As in GridSearchCV. ``mean_fit_time`` of candidates that were trained together is their share of
        the joint training.

    See Also
    --------
    OrtRandomizedSearchCV : Search over candidates drawn at random.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn import OrtGradientOptimizer
    >>> from ortlearn.learning_rates import LearningRateAdam
    >>> from ortlearn.search import OrtGridSearchCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = OrtGradientOptimizer(Ridge(), learning_rate=LearningRateAdam(), random_state=0)
    >>> search = OrtGridSearchCV(model, {"learning_rate__eta0": [0.001, 0.01, 1.0]}, cv=3)
    >>> search.fit(X, y).best_params_
    {'learning_rate__eta0': 1.0}
    """


class OrtRandomizedSearchCV(_JointSearchMixin, RandomizedSearchCV):
    """RandomizedSearchCV that trains candidates together, in one ONNX graph.

    See :class:`OrtGridSearchCV` for the conditions. Parameters, attributes and methods are those of
    :class:`~sklearn.model_selection.RandomizedSearchCV`.

    Parameters
    ----------
    estimator : estimator
        An :class:`~ortlearn.OrtGradientOptimizer`; for other estimators the search is that of
        RandomizedSearchCV.
    param_distributions : dict or list of dict
        Parameters to draw from, as for RandomizedSearchCV.
    n_iter : int, default=10
        Number of candidates.
    scoring : str, callable, list, tuple or dict, default=None
        Scores of the candidates, as for RandomizedSearchCV.
    n_jobs : int, default=None
        Number of processes. Candidates are trained together only if it is None or 1.
    refit : bool, str or callable, default=True
        Whether, or by which score, to train the best candidate on all samples.
    cv : int, cross-validation generator or iterable, default=None
        Folds, as for RandomizedSearchCV.
    verbose : int, default=0
        Verbosity; above 0, candidates are trained alone.
    pre_dispatch : int or str, default="2*n_jobs"
        Number of jobs to dispatch at a time.
    random_state : int, RandomState instance or None, default=None
        Seed of the candidates.
    error_score : "raise" or float, default=nan
        Score of a candidate whose training fails.
    return_train_score : bool, default=False
        Whether scores on the training samples are computed, too.

    Attributes
    ----------
    cv_results_, best_estimator_, best_params_, best_index_, best_score_, n_splits_, refit_time_, classes_
        As in RandomizedSearchCV.

    See Also
    --------
    OrtGridSearchCV : Search over all candidates of a grid.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn import OrtGradientOptimizer
    >>> from ortlearn.learning_rates import LearningRateAdam
    >>> from ortlearn.search import OrtRandomizedSearchCV
    >>> X, y = load_diabetes(return_X_y=True, scaled=False)
    >>> model = OrtGradientOptimizer(Ridge(), learning_rate=LearningRateAdam(), random_state=0)
    >>> rates = {"learning_rate__eta0": loguniform(0.01, 1.0)}
    >>> OrtRandomizedSearchCV(model, rates, n_iter=4, cv=3, random_state=0).fit(X, y).n_splits_
    3
    """
