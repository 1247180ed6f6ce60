"""HistGradientBoosting estimators whose categories are text: an encoder, and the same model of codes."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..inputs.first_readers import column_indices

__all__ = ["with_codes"]


def with_codes(model: Any) -> Any:
    """Return a fitted model of text categories as a pipeline, any other one as it is.

    The model has an encoder of its own, which puts the columns of categories first.

    Parameters
    ----------
    model : HistGradientBoostingClassifier or HistGradientBoostingRegressor
        Fitted.

    Returns
    -------
    estimator
        What is good for conversion only.

    Examples
    --------
    >>> import pandas
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from ortlearn.conversion.preparation.text_categories import with_codes
    >>> X = pandas.DataFrame({"city": pandas.Categorical(["Oslo", "Lima"] * 20)})
    >>> [name for name, _ in with_codes(HistGradientBoostingRegressor().fit(X, range(40))).steps]
    ['codes', 'trees']
    """
    own = getattr(model, "_preprocessor", None)
    if own is None:
        return model
    known = own.named_transformers_["encoder"].categories_
    if all(values.dtype.kind in "biuf" for values in known):
        return model
    columns = copy.copy(own)
    columns.transformers_ = [
        (name, step if name == "encoder" else "passthrough", indices)
        for name, step, indices in column_indices(own)
    ]
    coded = copy.copy(model)
    coded.is_categorical_ = np.arange(model.n_features_in_) < len(known)
    codes = SimpleNamespace(categories_=[np.arange(len(values), dtype=np.float64) for values in known])
    coded._preprocessor = SimpleNamespace(named_transformers_={"encoder": codes})
    return Pipeline([("codes", columns), ("trees", coded)])
