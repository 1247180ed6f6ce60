"""Fewer units, trees or features: ``prune``."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.ensemble import BaseEnsemble
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

from ..differentiation import gradient_of_loss
from ..estimators import OrtGradientOptimizer
from ..exceptions import ConversionError, StartKeptWarning
from ..graphs import initializer_arrays
from ..learning_rates import LearningRateAdam
from ..preprocessing.estimator_checks import is_trainer
from ..quiet import quiet
from ..runtime.deployment import deployed_session
from ..trainable.conversion import to_trainable
from .files import File, as_file, split_samples
from .objectives import LOSS, ScoreGraph, Term
from .results import Compressed, report

__all__ = ["prune"]

#: Shares that are removed in turn while max_loss holds, and samples of a batch of the importance.
SHARES, BATCH = (0.25, 0.5, 0.65, 0.75, 0.85, 0.9), 50


def prune(
    model: Any,
    X: Any,
    y: Any,
    *,
    sparsity: float | None = None,
    max_loss: float | None = None,
    held_out: Any = 0.3,
    steps: int = 3,
    max_iter: int = 30,
    batch_size: int = 32,
    eta0: float = 1e-3,
    random_state: int = 0,
) -> Compressed:
    """Return a model with fewer units, trees or features.

    - Hidden units of ``MLPClassifier`` and ``MLPRegressor``: those of lowest first-order importance are
      removed in steps, and the rest is trained after each step.
    - Trees of forests and bagging: the trees are kept that together predict best, one after the other.
    - Features of linear models: those with the largest coefficients are kept, by a ``SelectFromModel`` in
      front of a model that is fitted on them; scale the features first.

    The model may be the last step of a pipeline.

    Parameters
    ----------
    model : estimator
        Fitted estimator of scikit-learn, or a trained one of ortlearn. It is not changed.
    X : array-like or frame
        Samples, as the model takes them.
    y : array-like
        Labels.
    sparsity : float, default=None
        Share that is removed.
    max_loss : float, default=None
        Largest loss of accuracy, or of R2, on a fifth of the samples, instead of ``sparsity``: up to 90 % are
        removed.
    held_out : float or tuple, default=0.3
        Share of X that scores are measured on, or the samples ``(X, y)``.
    steps : int, default=3
        Number of steps in which units are removed.
    max_iter, batch_size, eta0 : int, int and float
        Largest number of epochs of each step, size of batches and first rate of Adam.
    random_state : int, default=0
        Seed.

    Returns
    -------
    Compressed
        ``model`` is the smaller estimator, ``onnx`` its file, and ``layers`` says what was removed.

    References
    ----------
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
    model = model.to_sklearn() if is_trainer(model) else model
    check_is_fitted(model)
    shrink, size = _kind(model)
    (X_fit, y_fit), (X_test, y_test) = split_samples(X, y, held_out, random_state)
    training: dict[str, Any] = {
        "learning_rate": LearningRateAdam(eta0=eta0, schedule="cosine"),
        **{"max_iter": max_iter, "batch_size": batch_size, "random_state": random_state},
    }
    small = model
    if sparsity is not None:
        small = shrink(model, X_fit, y_fit, sparsity, steps, training)
    else:
        (X_fit, y_fit), (X_choice, y_choice) = split_samples(X_fit, y_fit, 0.2, random_state)
        before = model.score(X_choice, y_choice)
        for share in SHARES:
            found = shrink(model, X_fit, y_fit, share, steps, training)
            if not before - found.score(X_choice, y_choice) <= max_loss:
                break
            small = found
    (old, X_old), (new, X_new) = (as_file(one, X_test, fused=True) for one in (model, small))
    layers = {size.__doc__ or "": f"{size(model)} -> {size(small)}"}
    return report([(File(old), X_old)], File(new), (X_new, y_test), random_state, layers=layers, model=small)


def _kind(model: Any) -> tuple[Callable, Callable]:
    """Return the function that shrinks a model, and the one that describes its size."""
    last = _last(model)
    if isinstance(last, MLPClassifier | MLPRegressor):
        return _fewer_units, _units
    if (
        isinstance(last, BaseEnsemble)
        and isinstance(last.estimators_, list)
        and not hasattr(last, "estimator_weights_")
    ):
        return _fewer_trees, _trees
    if hasattr(last, "coef_") and not hasattr(last, "support_vectors_"):
        return _fewer_features, _features
    raise ConversionError(
        f"{type(last).__name__} cannot be pruned: MLPClassifier, MLPRegressor, forests, bagging and linear "
        "models can, also as the last step of a pipeline. Distil other models."
    )


def _last(model: Any) -> Any:
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def _units(model: Any) -> str:
    """hidden units"""  # noqa: D403 - the name of a row of the result
    return ", ".join(str(coef.shape[1]) for coef in _last(model).coefs_[:-1])


def _trees(model: Any) -> str:
    """trees"""  # noqa: D403 - the name of a row of the result
    return str(len(_last(model).estimators_))


def _features(model: Any) -> str:
    """features"""  # noqa: D403 - the name of a row of the result
    return str(np.shape(_last(model).coef_)[-1])


def _fewer_units(model: Any, X: Any, y: Any, share: float, steps: int, training: dict[str, Any]) -> Any:
    """Remove units in steps, and train after each."""
    total = sum(coef.shape[1] for coef in _last(model).coefs_[:-1])
    for step in range(1, steps + 1):
        left = max(len(_last(model).coefs_) - 1, round(total * (1 - share * step / steps)))
        model = _without_units(model, _importance(model, X, y), left)
        trainer = OrtGradientOptimizer(model, warm_start=True, early_stopping=True, **training)
        with quiet(StartKeptWarning), quiet(ConvergenceWarning):
            model = trainer.fit(X, y).to_sklearn()
    return model


def _importance(model: Any, X: Any, y: Any) -> list[np.ndarray]:
    """Return the first-order importance of the hidden units of each layer, divided by its norm.

    It is the sum over batches of ``(sum of g * w) ** 2``, over the weights w into a unit with gradients g.
    """
    trainable = to_trainable(model, X=X)
    graph = ScoreGraph.of(trainable)
    steps = trainable.entry.sklearn_steps
    names = {
        trainable.parameters[name].expression: trainable.original_names[name] for name in trainable.trained
    }
    count = len(_last(model).coefs_)
    pairs = [(names[f"coefs_[{i}]"], names[f"intercepts_[{i}]"]) for i in range(count - 1)]
    wanted = [name for pair in pairs for name in pair]
    loss = graph.with_loss(graph.model, [Term()])
    loss.graph.output.pop(0)
    session = deployed_session(gradient_of_loss(loss, LOSS, wanted))
    file = File(graph.model)
    feeds = file.feeds(X if steps is None else steps.transform(X))
    targets = graph.one_hot(y, graph.classes).astype(np.float32)
    values = initializer_arrays(loss, wanted)
    inputs = {value.name for value in session.get_inputs()}
    totals = [np.zeros(values[weight].shape[1]) for weight, _ in pairs]
    for start in range(0, len(targets), BATCH):
        rows = slice(start, start + BATCH)
        given = {name: array[rows] for name, array in feeds.items()} | values | {"label": targets[rows]}
        found = session.run(
            [f"{name}_grad" for name in wanted], {n: a for n, a in given.items() if n in inputs}
        )
        gradients = dict(zip(wanted, found, strict=True))
        for total, pair in zip(totals, pairs, strict=True):
            products = sum((gradients[name] * values[name]).sum(axis=0).ravel() for name in pair)
            total += np.square(products)
    return [total / max(float(np.linalg.norm(total)), 1e-30) for total in totals]


def _without_units(model: Any, importance: list[np.ndarray], left: int) -> Any:
    """Return a copy with the most important units of all layers, at least one of each."""
    model = copy.deepcopy(model)
    last = _last(model)
    least = np.sort(np.concatenate(importance))[::-1][left - 1]
    for i, values in enumerate(importance):
        kept = np.flatnonzero((values >= least) | (values == values.max()))
        last.coefs_[i], last.intercepts_[i] = last.coefs_[i][:, kept], last.intercepts_[i][kept]
        last.coefs_[i + 1] = last.coefs_[i + 1][kept]
    sizes = tuple(coef.shape[1] for coef in last.coefs_[:-1])
    return model.set_params(**{_path(model, "hidden_layer_sizes"): sizes})


def _path(model: Any, name: str) -> str:
    """Return the name of a parameter of the last step."""
    return f"{model.steps[-1][0]}__{name}" if isinstance(model, Pipeline) else name


def _fewer_trees(model: Any, X: Any, y: Any, share: float, steps: int, training: dict[str, Any]) -> Any:
    """Keep the trees whose mean has the lowest squared error, chosen one after the other."""
    model = copy.deepcopy(model)
    last, before = _last(model), model[:-1] if isinstance(model, Pipeline) else None
    samples = X if before is None or not len(before) else before.transform(X)
    samples = np.asarray(samples)
    chosen_columns = getattr(last, "estimators_features_", [slice(None)] * len(last.estimators_))
    answers = np.stack(
        [
            tree.predict_proba(samples[:, columns])
            if is_classifier(last)
            else tree.predict(samples[:, columns])
            for tree, columns in zip(last.estimators_, chosen_columns, strict=True)
        ]
    ).reshape(len(last.estimators_), len(samples), -1)
    values = np.asarray(y)
    target = values[:, None] == last.classes_ if is_classifier(last) else values.reshape(len(values), -1)
    total, order = np.zeros(answers.shape[1:]), list[int]()
    for count in range(1, max(1, round(len(answers) * (1 - share))) + 1):
        free = [i for i in range(len(answers)) if i not in order]
        errors = np.square((total + answers[free]) / count - target).sum(axis=(1, 2))
        order.append(free[int(np.argmin(errors))])
        total += answers[order[-1]]
    last.estimators_ = [last.estimators_[i] for i in sorted(order)]
    if hasattr(last, "estimators_features_"):
        last.estimators_features_ = [last.estimators_features_[i] for i in sorted(order)]
    return model.set_params(**{_path(model, "n_estimators"): len(order)})


def _fewer_features(model: Any, X: Any, y: Any, share: float, steps: int, training: dict[str, Any]) -> Any:
    """Keep the features with the largest coefficients, and fit a model on them."""
    last, before = _last(model), list(model.steps[:-1]) if isinstance(model, Pipeline) else []
    samples = X
    for _, step in before:
        samples = step.transform(samples)
    count = max(1, round(np.shape(last.coef_)[-1] * (1 - share)))
    selector = SelectFromModel(last, prefit=True, threshold=-np.inf, max_features=count).fit(samples)
    fitted = clone(last).fit(selector.transform(samples), y)
    return make_pipeline(*(step for _, step in before), selector, fitted)
