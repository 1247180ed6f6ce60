"""Predictions of models for samples that are read in parts; features are not kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .data_files import Table
from .metrics import model_metrics, scores_of
from .predictions import Model, Predictions, match_labels

__all__ = ["ScoredSamples", "scored_samples"]


@dataclass(frozen=True)
class ScoredSamples:
    """Labels as those of the model, weights, groups, and the predictions of each model."""

    labels: np.ndarray | None
    weights: np.ndarray
    groups: np.ndarray | None
    predictions: list[Predictions]

    def __len__(self) -> int:
        return len(self.weights)

    def scores(self, model: Model) -> dict[str, float]:
        """Return the metrics of the predictions of the first model; there must be labels."""
        assert self.labels is not None
        return scores_of(model_metrics(model, self.labels, self.predictions[0]), self.weights)


def scored_samples(parts: Iterable[Table], models: Sequence[Model]) -> ScoredSamples:
    """Return the predictions of models."""
    labels, weights, groups, known = [], [], [], {}  # type: ignore[var-annotated]
    predictions: list[list[Predictions]] = [[] for _ in models]
    for part in parts:
        if part.labels is not None:
            labels.append(match_labels(part, models[0]))
            for model in models[1:]:
                if labels[-1].tolist() != match_labels(part, model).tolist():
                    paths = f"{models[0].path} and {model.path}"
                    raise ValueError(f"{paths} differ in the type of their classes.")
        weights.append(part.weight_per_sample)
        if part.groups is not None:  # one object for all samples of a group
            groups += [known.setdefault(text, text) for text in part.groups.tolist()]
        for found, model in zip(predictions, models, strict=True):
            found.append(model.predict(part))
    return ScoredSamples(
        np.concatenate(labels) if labels else None,
        np.concatenate(weights),
        np.array(groups, dtype=object) if groups else None,
        [Predictions.joined(found) for found in predictions],
    )
