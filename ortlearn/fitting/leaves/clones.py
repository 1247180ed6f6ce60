"""Predictions of samples by clones that have not seen them."""

from __future__ import annotations

import numpy as np

from ...comparison.measures import folds
from ...data.samples import Data
from ...models import fitted_part
from ...preprocessing.initial_fit import after_steps, fit_clone
from ...problem.problem import Problem
from ...problem.samples import Samples

__all__ = ["unseen_predictions"]

#: Folds of the fits.
FOLDS = 3


def unseen_predictions(
    problem: Problem, samples: Samples, data: Data, random_state: np.random.RandomState, method: str
) -> tuple[Data, np.ndarray] | None:
    """Return some samples, and outputs of a method by fits on others; None if a fit fails."""
    part, labels = fitted_part(problem.source), problem.encoder.class_indices(data.y)
    classes = getattr(part, "classes_", None)
    samples = Samples(after_steps(problem.source, samples.X), samples.y, samples.sample_weight)
    numbers, found = [], []
    for kept, left_out in folds(labels, len(data), random_state, FOLDS):
        own = samples.take(kept)
        try:
            model = fit_clone(part, own.X, own.y, sample_weight=own.sample_weight, random_state=random_state)
            if classes is not None and not np.array_equal(model.classes_, classes):
                return None
            found.append(getattr(model, method)(samples.take(left_out).X))
        except ValueError:  # too few samples for its parameters
            return None
        numbers.append(left_out)
    order, outputs = np.concatenate(numbers), np.concatenate(found)
    known = np.isfinite(outputs.reshape(len(outputs), -1)).all(axis=1)  # some have no neighbours
    return data.take(order[known]), outputs[known]
