"""Scikit-learn's searches with candidates that are trained together."""

from __future__ import annotations

import copy
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV

from .joint import JointSearchMixin

__all__ = ["OrtGridSearchCV", "OrtHalvingGridSearchCV", "OrtRandomizedSearchCV"]


class OrtGridSearchCV(JointSearchMixin, GridSearchCV):
    """GridSearchCV that trains candidates together, in one ONNX graph.

    Candidates whose graphs differ only in constants (learning rates, momenta, penalties) are trained
    together: their weights are stacked, and a batch is one step for all of them, on the same samples.
    Parameters, attributes and methods are those of :class:`~sklearn.model_selection.GridSearchCV`, and scores
    are the same up to rounding. With early stopping or ``tol``, candidates leave the graph once they stop.
    Candidates with a solver (``"LBFGS"``, which ``"auto"`` often selects) share what is prepared for a model
    and a fold. Candidates are trained alone, as in GridSearchCV, if they use ``max_seconds``, warm starts,
    callbacks, sparse features, ``verbose`` or operators that have no batched form, if held-out samples choose
    their rate, or if their loss becomes non-finite.

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
    OrtHalvingGridSearchCV : Search that trains the best candidates for more and more epochs.

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


class OrtRandomizedSearchCV(JointSearchMixin, RandomizedSearchCV):
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


class OrtHalvingGridSearchCV(JointSearchMixin, HalvingGridSearchCV):
    """HalvingGridSearchCV that trains candidates together, and trains no epoch twice.

    Successive halving: all candidates are trained for a few epochs, the best ``1 / factor`` of them for
    ``factor`` times as many, and so on. The candidates of an iteration are trained in one graph on all folds;
    the others leave it, and the best ones continue from their weights and the state of their update, while
    HalvingGridSearchCV trains them again from the start. Results are the same up to rounding if
    ``random_state`` of the estimator is an int. See :class:`OrtGridSearchCV` for the conditions; candidates
    that are trained alone begin anew in each iteration, as do those whose schedule spans all epochs, such as
    ``"cosine"`` without a ``period``.

    Parameters
    ----------
    estimator : estimator
        An :class:`~ortlearn.OrtGradientOptimizer`; for other estimators the search is that of
        HalvingGridSearchCV.
    param_grid : dict or list of dict
        Parameters to try, as for HalvingGridSearchCV.
    factor : int or float, default=3
        Quotient of the numbers of candidates of two iterations, and of their numbers of epochs.
    resource : str, default="max_iter"
        Parameter that increases, or ``"n_samples"``. Trainings continue only if it is ``"max_iter"``.
    max_resources : int or "auto", default="auto"
        Maximum of the resource; ``"auto"`` is the value that the estimator has, or the number of samples.
    min_resources : {"exhaust", "smallest"} or int, default="exhaust"
        Resource of the first iteration. With ``"exhaust"``, that of the last one is about the maximum.
    aggressive_elimination : bool, default=False
        Whether to repeat the first iteration until few enough candidates remain.
    cv : int, cross-validation generator or iterable, default=5
        Folds, which must be the same at each call.
    scoring : str or callable, default=None
        Score of the candidates.
    refit : bool or callable, default=True
        Whether to train the best candidate on all samples.
    error_score : "raise" or float, default=nan
        Score of a candidate whose training fails.
    return_train_score : bool, default=True
        Whether scores on the training samples are computed, too.
    random_state : int, RandomState instance or None, default=None
        Seed of the subsets of samples, if these are the resource.
    n_jobs : int, default=None
        Number of processes. Candidates are trained together only if it is None or 1.
    verbose : int, default=0
        Verbosity.

    Attributes
    ----------
    n_resources_, n_candidates_ : list of int
        Epochs (or samples), and number of candidates of each iteration, ``n_iterations_`` of them.
    n_iterations_, n_required_iterations_, n_possible_iterations_, n_remaining_candidates_ : int
        As in HalvingGridSearchCV.
    min_resources_, max_resources_ : int
        Resources of the first iteration, and the maximum.
    cv_results_ : dict of ndarray
        As in HalvingGridSearchCV, with ``iter`` and ``n_resources``. ``mean_fit_time`` has the time of the
        epochs that an iteration adds.
    best_estimator_, best_params_, best_index_, best_score_, n_splits_, refit_time_, classes_
        As in HalvingGridSearchCV.

    See Also
    --------
    OrtGridSearchCV : Search that trains all candidates for all epochs.

    References
    ----------
    Karnin, Z., Koren, T. and Somekh, O., "Almost optimal exploration in multi-armed bandits", ICML 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn import OrtGradientOptimizer
    >>> from ortlearn.learning_rates import LearningRateAdam
    >>> from ortlearn.search import OrtHalvingGridSearchCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = OrtGradientOptimizer(Ridge(), learning_rate=LearningRateAdam(), max_iter=9, random_state=0)
    >>> search = OrtHalvingGridSearchCV(model, {"learning_rate__eta0": [0.001, 0.01, 1.0]}, cv=3)
    >>> search.fit(X, y).n_resources_, search.n_candidates_, search.best_params_["learning_rate__eta0"]
    ([3, 9], [3, 1], 1.0)
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        factor: float = 3,
        resource: str = "max_iter",
        max_resources: Any = "auto",
        min_resources: Any = "exhaust",
        aggressive_elimination: bool = False,
        cv: Any = 5,
        scoring: Any = None,
        refit: Any = True,
        error_score: Any = np.nan,
        return_train_score: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            factor=factor,
            resource=resource,
            max_resources=max_resources,
            min_resources=min_resources,
            aggressive_elimination=aggressive_elimination,
            cv=cv,
            scoring=scoring,
            refit=refit,
            error_score=error_score,
            return_train_score=return_train_score,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )

    @property
    def _continues(self) -> bool:
        return self.resource == "max_iter"

    def _check_input_parameters(self, *samples: Any, **options: Any) -> None:
        parameters = self.estimator.get_params()
        if self.max_resources != "auto" or self.resource not in parameters:
            super()._check_input_parameters(*samples, **options)
            return
        most = parameters[self.resource]
        if not isinstance(most, Integral):
            raise ValueError(
                f"max_resources='auto' is the value of {self.resource}, which is {most!r} and not a whole "
                "number: pass max_resources."
            )
        resolved = copy.copy(self).set_params(max_resources=int(most))
        super(OrtHalvingGridSearchCV, resolved)._check_input_parameters(*samples, **options)
        self.min_resources_, self.max_resources_ = resolved.min_resources_, resolved.max_resources_
