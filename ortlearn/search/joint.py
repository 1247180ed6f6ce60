"""Joint training of the candidates of scikit-learn's searches."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params

from ..estimators.pretrained import PretrainedModel, provide_pretrained
from ..fitting.callback_support import CALLBACKS
from .candidates import Fold, JointTrainer, candidates_of

__all__ = ["JointSearchMixin"]


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
        self._trainer: JointTrainer = search._trainer
        own = [] if alone else parameters
        self._candidates = candidates_of(search.estimator, own)
        self._seconds = np.zeros((len(parameters), 0))
        self.calls: deque[PretrainedModel] = deque()

    def train(self, X: Any, y: Any, folds: list[Any]) -> None:
        """Train the candidates on the samples of each fold."""
        if not self._candidates:
            return
        begun, labels = time.perf_counter(), []

        def prepared() -> Iterator[Fold]:
            for number, numbers in enumerate(folds):
                X_fold, y_fold = _safe_split(self._estimator, X, y, numbers)
                labels.append(y_fold)
                yield Fold(number, X_fold, y_fold, self._weights(X, numbers))

        found = list(self._trainer.train(self._candidates, prepared()))
        trained = np.array([[model is not None for model in models] for models in found]).T
        self._seconds = trained * ((time.perf_counter() - begun) / max(1, trained.sum()))
        for candidate, *models in zip(self._candidates, *found, strict=True):
            fits = zip(labels, models, strict=True)
            self.calls.extend(PretrainedModel(candidate.keys, y_fold, model) for y_fold, model in fits)

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


class JointSearchMixin:
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
        self._params, self._labels, self._trainer = params, y, JointTrainer(self._continues)
        try:
            return super().fit(X, y, **params)  # type: ignore[misc]
        finally:
            del self._params, self._labels, self._trainer

    @property
    def _continues(self) -> bool:
        """Whether candidates are evaluated several times, after more and more epochs."""
        return False

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
