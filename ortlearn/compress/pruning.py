"""Fewer units, channels, trees, leaves or features: ``prune``."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaseEnsemble
from sklearn.feature_selection import SelectFromModel
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.tree import BaseDecisionTree
from sklearn.utils.validation import check_is_fitted

from ..exceptions import ConversionError
from ..onnx_files.loading import is_onnx_source
from ..preprocessing.estimator_checks import check_trains_one_model, is_trainer
from .files import File, as_file, check_samples, class_numbers, split_samples
from .objectives import training_options
from .results import Compressed, report
from .teachers import unseen_by_members
from .trees import fewer_leaves, fewer_trees, n_leaves, n_trees
from .units import fewer_units, units

__all__ = ["prune"]

#: Shares that are removed in turn while max_loss holds.
SHARES = (0.25, 0.5, 0.65, 0.75, 0.85, 0.9)


def prune(
    model: Any,
    X: Any,
    y: Any,
    *,
    sparsity: float | None = None,
    max_loss: float | None = None,
    leaves: bool = False,
    held_out: Any = 0.3,
    steps: int = 5,
    max_iter: int = 30,
    batch_size: int = 32,
    eta0: float = 1e-3,
    random_state: int = 0,
) -> Compressed:
    """Return a model with fewer units, channels, trees, leaves or features.

    - Hidden units of ``MLPClassifier`` and ``MLPRegressor``, units and channels in ONNX files: those
      of lowest first-order importance are removed in steps, and the rest is trained after each step, on the
      labels and on the answers of the whole network.
    - Trees of forests and bagging: the trees are kept that together predict best, one after the other.
    - Leaves of decision trees, and of forests with ``leaves=True``: by cost-complexity pruning, after some
      trees of a forest.
    - Features of linear models: those with the largest coefficients are kept, by a ``SelectFromModel`` in
      front of a model that is fitted on them; scale the features first.

    If X are the samples of the fit of a forest, trees are judged by those that they have not drawn, and all
    leaves that stay get new values, which correct the forest. The model may be inside of pipelines and of a
    ``TransformedTargetRegressor``.

    Parameters
    ----------
    model : estimator, onnx.ModelProto, bytes, str or os.PathLike
        Fitted estimator of scikit-learn, a trained one of ortlearn, or an ONNX file of a network. It is not
        changed.
    X : array-like or frame
        Samples, as the model takes them.
    y : array-like
        Labels.
    sparsity : float, default=None
        Share that is removed.
    max_loss : float, default=None
        Largest loss of accuracy, or of R2, on a fifth of the samples, instead of ``sparsity``: up to 90 % are
        removed.
    leaves : bool, default=False
        Whether leaves of a forest are removed instead of whole trees.
    held_out : float or tuple, default=0.3
        Share of X that scores are measured on, or the samples ``(X, y)``.
    steps : int, default=5
        Number of steps in which units are removed.
    max_iter, batch_size, eta0 : int, int and float
        Largest number of epochs of each step, size of batches and first rate of Adam.
    random_state : int, default=0
        Seed.

    Returns
    -------
    Compressed
        ``model`` is the smaller estimator, None for an ONNX file, ``onnx`` the file, and ``layers`` says what
        was removed.

    Raises
    ------
    ValueError
        If there are no samples, if X or y has values that are not finite and that the model does not take, or
        for both or none of ``sparsity`` and ``max_loss``.
    ConversionError
        If nothing of the model can be removed; the message names operators.

    References
    ----------
    Breiman, L. et al., "Classification and regression trees", 1984, section 3.3. Ren, S. et al., "Global
    refinement of random forest", CVPR 2015. Zhou, Z.-H. et al., "Ensembling neural networks: many could be
    better than all", 2002.
    Molchanov, P. et al., "Importance estimation for neural network pruning", CVPR 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from ortlearn.compress import prune
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> forest = RandomForestClassifier(60, random_state=0).fit(X[:300], y[:300])
    >>> found = prune(forest, X[:300], y[:300], sparsity=2 / 3, held_out=(X[300:], y[300:]))
    >>> len(found.model.estimators_), found.n_bytes["new"] < 0.5 * found.n_bytes["old"]
    (20, True)
    """
    if (sparsity is None) == (max_loss is None):
        raise ValueError("Pass sparsity, the share to remove, or max_loss, the largest loss; not both.")
    if sparsity is not None and not 0 <= sparsity < 1:
        raise ValueError(f"sparsity={sparsity!r} must be at least 0 and below 1.")
    if max_loss is not None and not max_loss >= 0:
        raise ValueError(f"max_loss={max_loss!r} must be 0 or more.")
    if is_trainer(model):
        check_trains_one_model(model)
    if not is_onnx_source(model):
        check_is_fitted(model)
    check_samples(X, y, held_out)
    y, held_out = class_numbers(model, X, y, held_out)
    if is_trainer(model):
        model = model.get_trained_onnx() if is_onnx_source(model.estimator) else model.to_sklearn()
    last, put_back = _inside(model)
    shrink, size, parts = _kind(last, leaves)
    known = unseen_by_members(last, _samples_inside(model, X, y)[0])
    own = () if known is None else (known,)
    (X_fit, y_fit, *own), (X_test, y_test, *_) = split_samples(X, y, held_out, random_state, *own)
    file, X_old = as_file(model, X_test, fused=True)
    before = (old := File(file)).metrics(X_old, y_test)
    if max_loss is not None:
        parts_of_fit = split_samples(X_fit, y_fit, 0.2, random_state, *own)
        (X_fit, y_fit, *own), (X_choice, y_choice, *_) = parts_of_fit
    options = {"steps": steps, **training_options(max_iter, batch_size, eta0, random_state)}
    given = _samples_inside(model, X_fit, y_fit)

    def shrunk(share: float) -> Any:
        return shrink(last, *given, share, options, *own)

    small = last if sparsity is None else shrunk(sparsity)
    if max_loss is not None:
        whole = _score(model, X_choice, y_choice)
        for share in SHARES:
            found = shrunk(share)
            if not whole - _score(put_back(found), X_choice, y_choice) <= max_loss:
                break
            small = found
    layers = {parts: f"{size(last)} -> {size(small)}"}
    small = put_back(small)
    new, X_new = as_file(small, X_test, fused=True)
    made = None if is_onnx_source(model) else small
    return report([(old, X_old)], File(new), (X_new, y_test), random_state, before, layers, {}, made)


def _inside(model: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the model that predicts, inside of others, and the function that puts another in its place."""
    if isinstance(model, Pipeline):
        name, step = model.steps[-1]
        last, put_back = _inside(step)

        def with_step(small: Any) -> Any:
            found, own = copy.copy(model), put_back(small)
            own = own.steps if isinstance(own, Pipeline) and last is step else [(name, own)]
            found.steps = [*model.steps[:-1], *own]
            return found

        return last, with_step
    if isinstance(model, TransformedTargetRegressor):
        last, put_back = _inside(model.regressor_)

        def with_regressor(small: Any) -> Any:
            found = copy.copy(model)
            found.regressor_ = put_back(small)
            return found.set_params(regressor=clone(found.regressor_))

        return last, with_regressor
    return model, lambda small: small


def _samples_inside(model: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return samples and targets as the model inside of others takes them."""
    if isinstance(model, Pipeline):
        return _samples_inside(model.steps[-1][1], model[:-1].transform(X) if len(model.steps) > 1 else X, y)
    if isinstance(model, TransformedTargetRegressor):
        inner = model.transformer_.transform(np.reshape(y, (len(y), -1)))
        return _samples_inside(model.regressor_, X, inner.ravel() if np.ndim(y) == 1 else inner)
    return X, y


def _score(model: Any, X: Any, y: Any) -> float:
    """Return the accuracy or R2."""
    file, samples = as_file(model, X, fused=True)
    return next(iter(File(file).metrics(samples, y).values()))(np.ones(len(y)))


def _kind(last: Any, leaves: bool) -> tuple[Callable, Callable, str]:
    """Return the function that shrinks a model, the one that returns its size, and what is counted."""
    if is_onnx_source(last) or isinstance(last, MLPClassifier | MLPRegressor):
        return fewer_units, units, "hidden units"
    forest = isinstance(getattr(last, "estimators_", None), list) and isinstance(last, BaseEnsemble)
    if isinstance(last, BaseDecisionTree) or (leaves and forest and hasattr(last, "ccp_alpha")):
        return fewer_leaves, n_leaves, "leaves"
    if forest and not hasattr(last, "estimator_weights_") and not leaves:
        return fewer_trees, n_trees, "trees"
    if hasattr(last, "coef_") and not hasattr(last, "support_vectors_") and not leaves:
        return _fewer_features, _features, "features"
    how = " by leaves" if leaves else ""
    raise ConversionError(
        f"{type(last).__name__} cannot be pruned{how}: networks, forests, bagging, "
        "decision trees and linear models can, also inside of pipelines, and ONNX files of "
        "networks. Distil other models."
    )


def _features(model: Any) -> str:
    """Return the number of features of a linear model."""
    return str(np.shape((model[-1] if isinstance(model, Pipeline) else model).coef_)[-1])


def _fewer_features(model: Any, X: Any, y: Any, share: float, options: Any) -> Any:
    """Keep the features with the largest coefficients, and fit a model on them."""
    count = max(1, round(np.shape(model.coef_)[-1] * (1 - share)))
    selector = SelectFromModel(model, prefit=True, threshold=-np.inf, max_features=count).fit(X)
    return make_pipeline(selector, clone(model).fit(selector.transform(X), y))
