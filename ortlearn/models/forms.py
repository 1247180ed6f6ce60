"""Invertible transformations of fitted attributes to arrays of a graph."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

__all__ = [
    "AsIs",
    "Dense",
    "Described",
    "FactorOfInverse",
    "Form",
    "Kept",
    "Logarithm",
    "Reshaped",
    "Scaled",
    "Transposed",
    "dense_form",
]


class Form:
    """Invertible function of an array; the base class is the identity.

    An object of this class is a part of a trained model: it must support pickle.

    Examples
    --------
    >>> import numpy as np
    >>> from ortlearn.models.forms import Transposed
    >>> coef = np.array([1.0, 2.0])
    >>> Transposed().forward(coef)
    array([[1.],
           [2.]])
    >>> Transposed().inverse(np.array([[3.0], [4.0]]), coef)
    array([3., 4.])
    """

    #: Expression of the form, with ``{}`` for the attribute.
    text = "{}"
    #: Whether predictions depend on digits of its products that only float64 has: the whole graph is then
    #: float64, while ``needs_float64`` of a definition is about the samples that one part compares.
    wide = False

    def forward(self, value: np.ndarray) -> np.ndarray:
        """Return the array of the graph for a value of the attribute."""
        return value

    def inverse(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        """Return the attribute for an array of the graph, in the shape of ``like``."""
        return value.reshape(like.shape)


class AsIs(Form):
    """The attribute itself."""


@dataclass(frozen=True)
class Described(Form):
    """A form of which only the expression is known, from a file of version 0.2.0."""

    text: str = "{}"


class Dense(Form):
    """The dense array of a sparse matrix."""

    def forward(self, value: np.ndarray) -> np.ndarray:
        return value.item().toarray() if value.dtype == object else value

    def inverse(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        return value


def dense_form(value: Any) -> Form:
    """Return the form of a dense or sparse matrix."""
    return Dense() if issparse(value) else AsIs()


class Transposed(Form):
    """The transpose of a matrix, or a vector as a column."""

    def forward(self, value: np.ndarray) -> np.ndarray:
        return np.atleast_2d(value).T

    def inverse(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        return value.T.reshape(like.shape)


@dataclass(frozen=True)
class Reshaped(Form):
    """The array in another shape."""

    shape: tuple[int, ...]

    def forward(self, value: np.ndarray) -> np.ndarray:
        return value.reshape(self.shape)


@dataclass(frozen=True, eq=False)
class Scaled(Form):
    """The array, reshaped to ``shape`` if given, times a nonzero factor or one factor for each column."""

    factor: float | np.ndarray
    text: str = ""
    shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", self.text or f"{{}} * {self.factor:.3g}")

    def forward(self, value: np.ndarray) -> np.ndarray:
        return (value if self.shape is None else value.reshape(self.shape)) * self.factor

    def inverse(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        return (value / self.factor).reshape(like.shape)


class Logarithm(Form):
    """The logarithm of positive values."""

    text = "log({})"

    def forward(self, value: np.ndarray) -> np.ndarray:
        return np.log(value)

    def inverse(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        return np.exp(value).reshape(like.shape)


class FactorOfInverse(Form):
    """Upper triangular factor R of the inverse ``R'R`` of a symmetric positive definite matrix."""

    text = "cholesky({}^-1)"

    def forward(self, value: np.ndarray) -> np.ndarray:
        return np.linalg.cholesky(np.linalg.inv(value)).T

    def inverse(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        return np.linalg.inv(value.T @ value)


@dataclass(frozen=True, eq=False)
class Kept(Form):
    """The entries of an array selected by a mask; the others are not trained."""

    kept: np.ndarray

    def forward(self, value: np.ndarray) -> np.ndarray:
        return np.asarray(value[self.kept], dtype=np.float64)

    def inverse(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        result = np.array(like, dtype=np.float64)
        result[self.kept] = value
        return result
