"""Parts of an unfitted model that are trained for themselves, as their fits are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor

from ..exceptions import WriteBackError
from ..models.capabilities import SeparateParts, capability_of
from ..onnx_files.loading import is_onnx_source
from ..preprocessing.estimator_checks import last_step
from ..preprocessing.initial_fit import after_steps, fit_clone, is_fitted
from .configuration import Configuration
from .samples import Samples

__all__ = ["with_trained_parts"]


def with_trained_parts(
    owner: Any, configuration: Configuration, samples: Samples, random_state: np.random.RandomState
) -> Configuration:
    """Return the configuration of a fitted model whose parts are trained with a named loss.

    A part with trees is grown on the loss, or leaves out samples, only if it is trained for itself. Others
    are returned as they are: they are trained together. ``owner`` is the estimator whose ``fit`` was called.
    """
    source, loss, chosen = configuration.source, configuration.loss, configuration.conversion.weights_to_train
    if is_onnx_source(source) or is_fitted(source) or loss is None or loss.in_python or chosen is not None:
        return configuration
    if configuration.warm_start or configuration.names_training:
        return configuration
    model = last_step(source)
    rule = capability_of(model, SeparateParts) if is_regressor(model) else None
    if rule is None or not rule.applies(model, loss):
        return configuration
    X, y, weights = samples.X, samples.y, samples.sample_weight
    fitted = fit_clone(source, X, y, sample_weight=weights, random_state=random_state)
    last, found = last_step(fitted), []
    parts = rule.samples(last, Samples(after_steps(fitted, X), np.asarray(y), weights))
    try:
        part, own = next(parts)
        while True:
            trainer = clone(owner).set_params(estimator=clone(part))
            found.append(trainer.fit(own.X, own.y, sample_weight=own.sample_weight).to_sklearn())
            part, own = parts.send(found[-1])
    except StopIteration:
        pass
    except WriteBackError:  # a part cannot store scores of the loss, such as logarithms
        return configuration
    if not found:
        return configuration
    rule.replace(last, found)
    return replace(configuration, source=fitted, is_trained=True)
