"""Feature selection, feature agglomeration and image patches."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..base import ModelDefinition
from ..scores import Scores, transformation
from ..writer import ModelWriter


class SelectorDefinition(ModelDefinition):
    """Feature selectors: the columns of ``get_support()``."""

    exact = True
    untrained = "it selects columns, and has no parameters"

    def covers(self, model: Any) -> bool:
        return bool(model.get_support().any())

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        support = model.get_support()
        chosen = np.flatnonzero(support)
        return transformation(op, op.columns(x, chosen, len(support)), len(chosen))


class RecursiveSelectorDefinition(SelectorDefinition):
    """RFE and RFECV, which predict by an estimator on the selected columns."""

    def children(self, model: Any) -> Iterator[Any]:
        yield model.estimator_

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        columns = super().write(op, model, x).score
        with op.inside(reason="it is part of a feature selector, which is not trained"):
            scores = op.write(model.estimator_, columns, "estimator_")
        return replace(scores, transformed=columns)


def _median(op: ModelWriter, group: str, size: int) -> str:
    half = size // 2 + 1
    lower = op.TopK(group, [half], axis=1, largest=0, n_outputs=2)[0]
    middle = op.Slice(lower, [half - 2 + size % 2], [half], [1])
    return op.ReduceMean(middle, [1], keepdims=1)


#: Writers of pooling functions; arguments are the columns of a cluster and their number.
POOLING: dict[Callable[..., Any], Callable[[ModelWriter, str, int], str]] = {
    np.mean: lambda op, group, size: op.ReduceMean(group, [1], keepdims=1),
    np.sum: lambda op, group, size: op.ReduceSum(group, [1], keepdims=1),
    np.max: lambda op, group, size: op.ReduceMax(group, [1], keepdims=1),
    np.min: lambda op, group, size: op.ReduceMin(group, [1], keepdims=1),
    np.median: _median,
}


class FeatureAgglomerationDefinition(ModelDefinition):
    """FeatureAgglomeration: the mean, or another function, of the features of each cluster."""

    untrained = "it learns clusters of features, and has no parameters"

    def covers(self, model: Any) -> bool:
        return model.pooling_func in POOLING

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        pool = POOLING[model.pooling_func]
        groups = [np.flatnonzero(model.labels_ == label) for label in np.unique(model.labels_)]
        columns = [pool(op, op.Gather(x, group, axis=1), len(group)) for group in groups]
        return transformation(op, op.joined(columns), len(columns))


class PatchExtractorDefinition(ModelDefinition):
    """PatchExtractor: all patches of images of known size, in row-major order."""

    untrained = "it has no parameters"

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        if model.max_patches is not None:
            raise op.fail(model, f"max_patches={model.max_patches} draws patches at random: set it to None.")
        known = op.shape(x) or ()
        sizes = [size for size in known[1:] if isinstance(size, int)]
        if len(known) not in (3, 4) or len(sizes) < len(known) - 1:
            reason = (
                "it requires images of shape (n, height, width) or (n, height, width, n_channels), but X has "
                f"{f'shape {known}' if known else 'an unknown shape'}: reshape X by "
                "FunctionTransformer(numpy.reshape, kw_args={'shape': (-1, height, width)})."
            )
            raise op.fail(model, reason)
        patch, n_channels = model.patch_size or [size // 10 for size in sizes[:2]], [*sizes[2:], 1][0]
        pairs = zip(sizes[:2], patch, strict=True)
        rows, columns = (np.arange(size - part + 1)[:, None] + np.arange(part) for size, part in pairs)
        # of shape (n, rows, patch height, columns, patch width, ...)
        blocks = op.Gather(op.Gather(x, rows, axis=1), columns, axis=3)
        blocks = op.Transpose(blocks, perm=[0, 1, 3, 2, 4, *([5] if len(known) == 4 else [])])
        shape = [*patch, *([n_channels] if n_channels != 1 else [])]
        op.sample_dim = None
        patches = op.set_type(op.Reshape(blocks, [-1, *shape]), op.elem_type, (None, *shape))
        return transformation(op, patches, shape[-1])
