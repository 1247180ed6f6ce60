"""Patches of images."""

from typing import Any

import numpy as np

from .base import ModelDefinition
from .scores import Scores, transformation
from .writer import ModelWriter


class PatchExtractorDefinition(ModelDefinition):
    """PatchExtractor: every patch of every image, those of an image one row of pixels after the other.

    It takes images of shape (n, height, width) or (n, height, width, n_channels), whose size is known, and
    gives more samples than it is given.
    """

    untrained = "it has no parameters"

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        if model.max_patches is not None:
            raise op.fail(
                model,
                f"max_patches={model.max_patches} draws patches at random: leave it out for all of them.",
            )
        known = op.shape(x) or ()
        sizes = [own for own in known[1:] if isinstance(own, int)]
        if len(known) not in (3, 4) or len(sizes) < len(known) - 1:
            raise op.fail(
                model,
                "it takes images of shape (n, height, width) or (n, height, width, n_channels), and X has "
                f"{known or 'an unknown shape'}: reshape X before, by "
                "FunctionTransformer(numpy.reshape, kw_args={'shape': (-1, height, width)}).",
            )
        patch, n_channels = model.patch_size or [own // 10 for own in sizes[:2]], [*sizes[2:], 1][0]
        rows, columns = (
            np.arange(whole - part + 1)[:, None] + np.arange(part)
            for whole, part in zip(sizes[:2], patch, strict=True)
        )
        # (n, rows, height of a patch, columns, width of a patch, ...)
        blocks = op.Gather(op.Gather(x, rows, axis=1), columns, axis=3)
        blocks = op.Transpose(blocks, perm=[0, 1, 3, 2, 4, *([5] if len(known) == 4 else [])])
        shape = [*patch, *([n_channels] if n_channels != 1 else [])]
        op.sample_dim = None
        patches = op.set_type(op.Reshape(blocks, [-1, *shape]), op.elem_type, (None, *shape))
        return transformation(op, patches, shape[-1])
