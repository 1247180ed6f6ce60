"""Samples of models with several inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["Columns"]


class Columns:
    """Samples of models with several inputs: arrays of equal length by the name of their input.

    Parameters
    ----------
    arrays : mapping of str to ndarray of shape (n_samples, ...)
        Array of each input, at least one.

    Attributes
    ----------
    arrays : dict of str to ndarray
        Array of each input.
    shape : tuple of int
        Number of samples, as a tuple.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.training import Columns
    >>> rows = Columns({"city": np.array(["a", "b"], dtype=object), "age": np.array([1.0, 2.0])})
    >>> len(rows), rows[1:].arrays["city"].tolist()
    (2, ['b'])
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        self.arrays = dict(arrays)
        self.shape = (len(next(iter(self.arrays.values()))),)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Columns:
        return Columns({name: array[rows] for name, array in self.arrays.items()})

    def feeds(self, names: list[str]) -> dict[str, np.ndarray]:
        """Return the arrays of some inputs.

        Parameters
        ----------
        names : list of str
            Inputs of a graph.

        Returns
        -------
        dict of str to ndarray
            Arrays by name, not copied.
        """
        return {name: self.arrays[name] for name in names}
