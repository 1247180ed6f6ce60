"""Fit a clone of an estimator, and copy arrays that an estimator might overwrite."""

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..models.registry import definition_or_default, find_definition, inner_part, unwrapped
from ..models.transformations.pipelines import working_steps
from ..quiet import quiet
from .columns import column_kind, other_kinds
from .estimator_checks import last_step, target_tags

BLOCK = 2**16  # number of samples to search for classes at a time
FEW_SAMPLES = 200  # number of samples for fits that determine shapes only
LITTLE = 1e-6  # weight of a sample that gives a class to a fit, relative to the mean of others


def is_fitted(estimator: BaseEstimator) -> bool:
    """Return whether an estimator, or all steps of a pipeline, which may be pipelines, are fitted."""
    last = last_step(estimator)
    last = estimator if last is None else last  # an ensemble without members is false
    # A Gaussian process passes the check without a fit, since it can predict: check its attributes.
    fitted = [name for name in vars(last) if name.endswith("_") and not name.startswith("_")]
    return _passes_check(estimator) and (get_tags(last).requires_fit or bool(fitted))


def _passes_check(estimator: Any) -> bool:
    """Return whether ``check_is_fitted`` succeeds, for all steps of a pipeline with a definition."""
    if isinstance(estimator, Pipeline):  # scikit-learn only checks the last step, which may be fitted alone
        steps = [step for _, step in working_steps(estimator)]
        return all(map(_passes_check, [*filter(find_definition, steps[:-1]), *steps[-1:]]))
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def final_step(estimator: BaseEstimator) -> Any:
    """Return the last step of a pipeline, or the estimator itself.

    It is what a fit of the pipeline fits, so steps of a nested pipeline are not searched. For questions about
    the model that predicts, whose X is :func:`after_steps`, ``last_step`` searches them.
    """
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def after_steps(source: Any, X: Any) -> Any:
    """Return X after the steps of a fitted pipeline, and of pipelines at its end, before the last one."""
    model = unwrapped(source)
    if not isinstance(model, Pipeline):
        return X
    return after_steps(model.steps[-1][1], model[:-1].transform(X) if len(model.steps) > 1 else X)


def reached(source: Any) -> Any:
    """Return the estimator at the end of pipelines and wrappers, whose X is :func:`after_steps`."""
    model = unwrapped(source)
    return reached(model.steps[-1][1]) if isinstance(model, Pipeline) else model


def labels_within(source: Any, y: Any) -> Any:
    """Return the labels to which the estimator at the end of pipelines and wrappers is fitted."""
    if isinstance(source, Pipeline):
        return labels_within(source.steps[-1][1], y)
    inner = inner_part(source)
    if inner is None:
        return y
    return labels_within(inner[1], definition_or_default(source).inner_labels(source, y))


def shape_parameters(estimator: BaseEstimator) -> Any:
    """Return the parameters for a fast fit that determines shapes; None if it requires all samples."""
    return definition_or_default(estimator).parameters_for_shapes(estimator)


def fit_clone(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    *,
    sample_weight: np.ndarray | None = None,
    shapes_only: bool = False,
    random_state: np.random.RandomState | None = None,
    classes: Any = None,
    within: Callable[[Any, Any, Any], AbstractContextManager[None]] | None = None,
) -> BaseEstimator:
    """Return a fitted clone of an estimator.

    The fit gets sample weights if it supports them. With ``shapes_only``, a single iteration is sufficient.
    ``random_state`` draws the seeds of parameters ``random_state=None``. The first sample is repeated for
    ``classes`` that y lacks, with little weight if the fit takes weights. The fit runs in the context that
    ``within`` returns for the last step, y and the weights.
    """
    last = final_step(estimator)
    if y is None and any(get_tags(part).target_tags.required for part in (estimator, last)):
        raise ValueError(
            f"Training {type(last).__name__} requires y to be passed, but the target y is None: "
            "pass a value or a class for each sample (fit_stream: batches of (X, y))."
        )
    fitted = clone(estimator)
    if shapes_only:
        last = final_step(fitted)
        fast, known = shape_parameters(last) or {}, last.get_params(deep=False)
        last.set_params(**{name: value for name, value in fast.items() if name in known})
    if random_state is not None:
        _set_seeds(fitted, random_state)
    if shapes_only and shape_parameters(fitted) is not None:
        X, y = _few_samples(X, y, is_classifier(fitted))
        sample_weight = None
    if classes is not None:
        X, y, sample_weight = _with_all_classes(X, y, sample_weight, classes)
    if np.ndim(y) == 2 and np.shape(y)[1] == 1 and target_tags(fitted).single_output:
        y = np.ravel(y)
    X, y, sample_weight = untouched(fitted, X, y, sample_weight)
    name = None if sample_weight is None else _weight_parameter(fitted)
    weights = {} if name is None else {name: sample_weight}
    context = nullcontext() if within is None else within(last_step(fitted), y, sample_weight)
    with context, quiet(ConvergenceWarning) if shapes_only else nullcontext():
        try:
            return fitted.fit(X, y, **weights)
        except (TypeError, ValueError) as error:
            refused = _refused_columns(fitted, X, y, error)
            if refused is None:
                raise
            raise refused from error


#: Parts of the messages of NumPy and scikit-learn about texts and dates in a matrix of numbers.
NO_NUMBERS = (
    "could not convert string to float",
    "could not be promoted",
    "must be a string or a real number",
    "arrays of bytes/strings",
)


def _refused_columns(estimator: Any, X: Any, y: Any, error: Exception) -> ValueError | None:
    """Return the error for columns that a fit could not read as numbers; None for other errors."""
    if not any(part in str(error) for part in NO_NUMBERS):
        return None
    if y is not None and not is_classifier(estimator) and column_kind(np.asarray(y)) in ("text", "other"):
        return None  # the error may be about y
    kinds = other_kinds(X)
    if not kinds:
        return None
    name, keys = type(final_step(estimator)).__name__, list(kinds)[:10]
    more = f" and {len(kinds) - 10} more" if len(kinds) > 10 else ""
    found = ", ".join(f"{key!r} ({kinds[key]})" for key in keys) + more
    texts = [key for key in keys if kinds[key].startswith("text")]
    if isinstance(estimator, Pipeline):
        text = (
            f"A step of the pipeline takes numbers, and not all columns of other types are encoded: {found}."
        )
    else:
        text = f"{name} takes numbers, and X has columns of other types: {found}."
    if texts:
        text += (
            " Encode text in front of the model, such as make_pipeline(make_column_transformer("
            f"(OneHotEncoder(handle_unknown='ignore'), {texts}), remainder='passthrough'), {name}(...)); "
            "convert text that is numbers to float."
        )
    if len(texts) < len(keys):
        text += " Convert dates and durations to numbers, such as days since a fixed date."
    return ValueError(f"{text} Or drop these columns.")


def _set_seeds(estimator: BaseEstimator, random_state: np.random.RandomState) -> None:
    """Set the parameters ``random_state=None`` of an estimator and its parts to drawn seeds."""
    for name, value in sorted(estimator.get_params(deep=True).items(), key=lambda item: item[0]):
        if value is None and (name == "random_state" or name.endswith("__random_state")):
            estimator.set_params(**{name: int(random_state.randint(np.iinfo(np.int32).max))})


def _weight_parameter(estimator: BaseEstimator) -> str | None:
    """Return the name of the fit parameter of sample weights; None if they are not supported."""
    if not isinstance(estimator, Pipeline):
        return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None
    if get_config()["enable_metadata_routing"]:
        requested = get_routing_for_object(estimator).consumes("fit", ["sample_weight"])
        return "sample_weight" if requested else None
    if any(hasattr(step, "fit_resample") for _, step in estimator.steps):
        return None  # samplers do not support weights
    name, last = estimator.steps[-1]
    inner = _weight_parameter(last) if hasattr(last, "fit") else None
    return None if inner is None else f"{name}__{inner}"


def _few_samples(X: Any, y: Any, by_class: bool) -> Any:
    """Return the first samples, with the first one of each class."""
    if np.shape(y)[0] <= FEW_SAMPLES:
        return X, y
    y = y if issparse(y) else np.asarray(y)
    chosen = np.arange(FEW_SAMPLES)
    if by_class and y.ndim == 1:
        first = _first_of_each_class(y)
        chosen = np.union1d(chosen, first)
        chosen = np.resize(chosen, max(len(chosen), 2 * len(first) + 1))  # scikit-learn warns of fewer
    return _safe_indexing(X, chosen), y[chosen]


def _first_of_each_class(y: np.ndarray) -> np.ndarray:
    """Return the index of the first sample of each class, in blocks to avoid a copy of y."""
    known, chosen = y[:0], np.empty(0, dtype=np.int64)
    for start in range(0, len(y), BLOCK):
        classes, first = np.unique(y[start : start + BLOCK], return_index=True)
        is_new = ~np.isin(classes, known)
        known = np.concatenate([known, classes[is_new]])
        chosen = np.concatenate([chosen, start + first[is_new]])
    return chosen


def _missing_labels(y: np.ndarray, classes: Any) -> np.ndarray:
    """Return copies of the first labels, each with a class that a column lacks."""
    y = y.astype(np.result_type(y.dtype, *(np.asarray(known).dtype for known in classes)))
    missing = []
    for column, known in enumerate(classes):
        # Binary columns have no classes to add.
        for value in np.setdiff1d(known, y[:, column]) if np.ndim(known) == 1 else ():
            missing.append(y[0].copy())
            missing[-1][column] = value
    return np.array(missing, dtype=y.dtype).reshape(-1, y.shape[1])


def _with_all_classes(X: Any, y: Any, sample_weight: np.ndarray | None, classes: Any) -> Any:
    """Return samples with the first one again, of little weight, for each class that y lacks."""
    if np.ndim(y) == 2 and np.shape(y)[1] > 1:
        missing = _missing_labels(np.asarray(y), classes)
    else:
        missing = np.setdiff1d(classes, y)
    repeated = np.zeros(len(missing), dtype=int)
    X = _safe_indexing(X, np.concatenate([np.arange(len(y)), repeated]))
    y = np.concatenate([np.asarray(y), missing])
    if len(missing):
        known = np.ones(len(y) - len(missing)) if sample_weight is None else sample_weight
        sample_weight = np.concatenate([known, np.full(len(missing), LITTLE * np.mean(known))])
    return X, y, sample_weight


def may_overwrite(estimator: Any) -> bool:
    """Return whether an estimator may overwrite its input."""
    # Estimators of scikit-learn do with parameters such as copy_X=False, or with user functions.
    return any(_is_unsafe(name, value) for name, value in _parameters(estimator))


def _parameters(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the names and values of an estimator's parameters, including nested ones."""
    yield name, value
    if isinstance(value, BaseEstimator):
        for key, inner in value.get_params(deep=False).items():
            yield from _parameters(inner, key)
    elif isinstance(value, dict):  # candidates of a search
        for key, inner in value.items():
            yield from _parameters(inner, str(key).rpartition("__")[2])
    elif isinstance(value, list | tuple):  # steps, members, candidates
        for inner in value:
            yield from _parameters(inner, name)


def _is_unsafe(name: str, value: Any) -> bool:
    if isinstance(value, BaseEstimator):
        return not type(value).__module__.startswith("sklearn.")
    if isinstance(value, bool | np.bool_ | int):
        return not value if "copy" in name else bool(value) and ("overwrite" in name or "inplace" in name)
    return callable(value) or (hasattr(value, "fit") and not isinstance(value, BaseEstimator))


def untouched(estimator: Any, *arrays: Any) -> tuple[Any, ...]:
    """Return arrays, copied if an estimator may overwrite them."""
    if not may_overwrite(estimator):
        return arrays
    return tuple(array.copy("K") if type(array) is np.ndarray else copy.deepcopy(array) for array in arrays)
