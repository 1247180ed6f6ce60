"""Forms that a fitted attribute takes in a graph, each with its inverse."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

__all__ = [
    "AsIs",
    "Dense",
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
    """A one-to-one function of an array; the base class is the identity.

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

    #: Expression in the attribute, which is written ``{}``.
    text = "{}"

    def forward(self, value: np.ndarray) -> np.ndarray:
        """Return the array of the graph from the attribute."""
        return value

    def inverse(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        """Return the attribute from the array of the graph, of the shape of the one before the training."""
        return value.reshape(like.shape)


class AsIs(Form):
    """The attribute itself."""


class Dense(Form):
    """All values of a sparse matrix."""

    def forward(self, value: np.ndarray) -> np.ndarray:
        return value.item().toarray() if value.dtype == object else value

    def inverse(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        return value


def dense_form(value: Any) -> Form:
    """Return the form of a matrix that may be sparse."""
    return Dense() if issparse(value) else AsIs()


class Transposed(Form):
    """The transpose of a matrix, a column of a vector."""

    def forward(self, value: np.ndarray) -> np.ndarray:
        return np.atleast_2d(value).T

    def inverse(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        return value.T.reshape(like.shape)


@dataclass(frozen=True)
class Reshaped(Form):
    """The same values in the same order, with another shape in the graph."""

    shape: tuple[int, ...]

    def forward(self, value: np.ndarray) -> np.ndarray:
        return value.reshape(self.shape)


@dataclass(frozen=True, eq=False)
class Scaled(Form):
    """A multiple, of a factor other than zero; of one for each column, with an expression for ``text``.

    The graph has it in a ``shape`` of its own, if given.
    """

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
    """The upper triangular R with ``R'R`` the inverse of a symmetric positive definite matrix."""

    text = "cholesky({}^-1)"

    def forward(self, value: np.ndarray) -> np.ndarray:
        return np.linalg.cholesky(np.linalg.inv(value)).T

    def inverse(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        return np.linalg.inv(value.T @ value)


@dataclass(frozen=True, eq=False)
class Kept(Form):
    """The entries of a vector that a mask selects; others are unchanged."""

    kept: np.ndarray

    def forward(self, value: np.ndarray) -> np.ndarray:
        return np.asarray(value[self.kept], dtype=np.float64)

    def inverse(self, value: np.ndarray, like: np.ndarray) -> np.ndarray:
        result = np.array(like, dtype=np.float64)
        result[self.kept] = value
        return result
