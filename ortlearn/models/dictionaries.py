"""Sparse codes of samples by a dictionary: thresholds, lasso, orthogonal matching pursuit, least angles."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .base import ModelDefinition
from .kernels import products
from .lasso_codes import lasso_codes, shrunk, with_diagonal
from .linear_systems import LARGEST, solve_positive
from .scores import Scores, transformation
from .writer import ModelWriter

#: Cosines of atoms are as near to one, or minus one, where they are told apart by rounding alone.
DEGENERATE = 1e-12


class DictionaryDefinition(ModelDefinition):
    """DictionaryLearning, MiniBatchDictionaryLearning and SparseCoder: codes c with few entries, x ~ c D.

    Which entries are not zero is chosen, not differentiated; those of a lasso and of a matching pursuit then
    solve a linear system, whose gradient is exact.
    """

    def covers(self, model: Any) -> bool:
        if model.transform_algorithm == "lasso_lars" and model.positive_code:
            return False  # its path need not lead to the minimum, as scikit-learn says of lars_path
        if model.transform_algorithm.startswith("lasso"):
            return _strength(model) > 0 and len(_dictionary(model)) <= LARGEST
        return model.transform_algorithm == "threshold" or _n_nonzero(model) <= LARGEST

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        is_given = hasattr(model, "dictionary")
        rows = op.parameter(model, "dictionary" if is_given else "components_", role="weight")
        codes, n_outputs = CODES[model.transform_algorithm](op, model, x, rows), len(_dictionary(model))
        if model.split_sign:
            codes = op.Concat(op.Relu(codes), op.Relu(op.Neg(codes)), axis=1)
            n_outputs *= 2
        return transformation(op, codes, n_outputs)


def _dictionary(model: Any) -> np.ndarray:
    return model.dictionary if hasattr(model, "dictionary") else model.components_


def _strength(model: Any) -> float:
    """Return the factor of the absolute values, or the threshold."""
    return float(getattr(model, "alpha", 1.0) if model.transform_alpha is None else model.transform_alpha)


def _n_nonzero(model: Any) -> int:
    n_components, n_features = _dictionary(model).shape
    return int(model.transform_n_nonzero_coefs or min(max(n_features / 10, 1), n_components))


def _lasso(op: ModelWriter, model: Any, x: str, rows: str) -> str:
    return lasso_codes(op, x, rows, _dictionary(model).shape, _strength(model), model.positive_code)


def _thresholded(op: ModelWriter, model: Any, x: str, rows: str) -> str:
    return shrunk(op, products(op, x, rows), _strength(model), model.positive_code)


class _Path:
    """Atoms that join the code of each sample, one at a time."""

    def __init__(self, op: ModelWriter, model: Any, rows: str):
        self.op, self.rows, self.size = op, rows, len(_dictionary(model))
        self.atoms: list[str] = []  # of shape (n, 1, n_features), zero where none joined
        self.places: list[str] = []  # which atom it is, of shape (n, 1, size), zeros where none joined
        self.ones: list[str] = []  # whether one joined, of shape (n, 1, 1)

    def used(self) -> str:
        """Append which atoms are in the code, of shape (n, size)."""
        return self.op.ReduceSum(self.op.Concat(*self.places, axis=1), [1], keepdims=0)

    def join(self, number: str, place: str, joins: str) -> None:
        """Add an atom: its number (n, 1), its place (n, size), and 1 or 0, whether it joins (n, 1)."""
        op, joins = self.op, self.op.Unsqueeze(joins, [2])
        self.atoms.append(op.Mul(op.Gather(self.rows, number, axis=0), joins))
        self.places.append(op.Mul(op.Unsqueeze(place, [1]), joins))
        self.ones.append(joins)

    def solve(self, right: str) -> str:
        """Append the solution of the system of the Gram matrix of the atoms, of shape (n, count, 1)."""
        op, count = self.op, len(self.atoms)
        atoms, ones = op.Concat(*self.atoms, axis=1), op.Concat(*self.ones, axis=1)
        products = op.Mul(op.Unsqueeze(atoms, [2]), op.Unsqueeze(atoms, [1]))
        matrix = op.ReduceSum(products, [3], keepdims=0)
        return solve_positive(op, with_diagonal(op, matrix, ones, count), right, count, 1)[0]

    def combined(self, factors: str, parts: list[str]) -> str:
        """Append the sum of atoms, or of their places, times factors, of shape (n, n_features or size)."""
        op = self.op
        return op.ReduceSum(op.Mul(op.Concat(*parts, axis=1), factors), [1], keepdims=0)

    def one_hot(self, number: str) -> str:
        """Append the places of atoms, of shape (n, size)."""
        places = np.eye(self.size, dtype=self.op.float_dtype)
        return self.op.Squeeze(self.op.Gather(places, number, axis=0), [1])


def _matching_pursuit(op: ModelWriter, model: Any, x: str, rows: str) -> str:
    """Append codes that the atom joins with which the residual correlates most (Pati et al., 1993)."""
    path, residual = _Path(op, model, rows), x
    factors = ""
    for _ in range(_n_nonzero(model)):
        sizes = op.Abs(products(op, residual, rows))
        number = op.ArgMax(sizes, axis=1, keepdims=1)
        place, largest = path.one_hot(number), op.ReduceMax(sizes, [1], keepdims=1)
        joins = op.Greater(op.Mul(largest, largest), float(np.finfo(op.float_dtype).eps))
        if path.places:
            again = op.ReduceSum(op.Mul(path.used(), place), [1], keepdims=1)
            joins = op.And(joins, op.Less(again, 0.5))
        path.join(number, place, op.Cast(joins, to=op.elem_type))
        right = op.ReduceSum(op.Mul(op.Concat(*path.atoms, axis=1), op.Unsqueeze(x, [1])), [2], keepdims=1)
        factors = path.solve(right)
        residual = op.Sub(x, path.combined(factors, path.atoms))
    return path.combined(factors, path.places)


def _least_angles(op: ModelWriter, model: Any, x: str, rows: str) -> str:
    """Append codes that move along the direction of equal angles with their atoms until another one joins.

    Efron, Hastie, Johnstone and Tibshirani, "Least angle regression", Annals of Statistics 32, 2004,
    equations 2.10 to 2.13, with the correlations falling at rate one. Where an entry changes its sign in a
    step, scikit-learn turns the sign of its correlation and lets no atom join in the next step: so does this.
    """
    atoms = np.asarray(_dictionary(model), dtype=np.float64)
    units = atoms / np.maximum(np.linalg.norm(atoms, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    if np.triu(np.abs(units @ units.T), 1).max() > 1 - DEGENERATE:
        reason = (
            "two of its atoms point the same way, and least angles take either: leave one of them out, or"
        )
        raise op.fail(model, f"{reason} set transform_algorithm to 'omp' or 'lasso_lars'.")
    path, residual = _Path(op, model, rows), x
    signs, codes, crossed = "", "", ""
    for _ in range(_n_nonzero(model)):
        correlations = products(op, residual, rows)
        sizes = op.Abs(correlations)
        if path.places:
            sizes = op.Where(op.Greater(path.used(), 0.5), -1.0, sizes)
        number = op.ArgMax(sizes, axis=1, keepdims=1)
        entering = op.GatherElements(correlations, number, axis=1)
        above, below = (op.Cast(side(entering, 0.0), to=op.elem_type) for side in (op.Greater, op.Less))
        sign, joins = op.Sub(above, below), op.Add(above, below)
        if crossed:
            sign, joins = (op.Mul(name, op.Sub(1.0, crossed)) for name in (sign, joins))
        path.join(number, path.one_hot(number), joins)
        sign, nothing = op.Unsqueeze(sign, [2]), op.Mul(op.Unsqueeze(sign, [2]), 0.0)
        signs = op.Concat(signs, sign, axis=1) if signs else sign
        codes = op.Concat(codes, nothing, axis=1) if codes else nothing
        factors = path.solve(signs)
        direction = path.combined(factors, path.atoms)
        rates, level = products(op, direction, rows), op.Abs(entering)
        step = _first_knot(op, correlations, rates, level, path.used())
        signs, crossed = _turned(op, signs, codes, factors, step)
        codes = op.Add(codes, op.Mul(factors, op.Unsqueeze(step, [2])))
        residual = op.Sub(residual, op.Mul(direction, step))
    return path.combined(codes, path.places)


def _turned(op: ModelWriter, signs: str, codes: str, factors: str, step: str) -> tuple[str, str]:
    """Append the signs, turned where an entry is the first to change its own, and where there is one."""
    far = float(np.finfo(op.float_dtype).max)
    still = op.Equal(factors, 0.0)
    zero = op.Neg(op.Div(codes, op.Where(still, 1.0, factors)))
    zero = op.Where(op.Or(still, op.LessOrEqual(zero, 0.0)), far, zero)
    first = op.ReduceMin(zero, [1], keepdims=1)
    crosses = op.Less(first, op.Unsqueeze(step, [2]))
    turns = op.And(crosses, op.Equal(zero, first))
    return op.Where(turns, op.Neg(signs), signs), op.Squeeze(op.Cast(crosses, to=op.elem_type), [2])


def _first_knot(op: ModelWriter, correlations: str, rates: str, level: str, used: str) -> str:
    """Append how far it is until an atom that is not used correlates as much as those that are: (n, 1)."""
    far = float(np.finfo(op.float_dtype).max)
    active, found = op.Greater(used, 0.5), [level]
    above = op.Sub(level, correlations), op.Sub(1.0, rates)
    for gap, rate in (above, (op.Add(level, correlations), op.Add(rates, 1.0))):
        # an atom in use may have a rate of zero here
        rate = op.Where(op.Or(active, op.Equal(rate, 0.0)), 1.0, rate)
        distance = op.Div(gap, rate)
        never = op.Or(active, op.LessOrEqual(distance, 0.0))
        found.append(op.ReduceMin(op.Where(never, far, distance), [1], keepdims=1))
    return op.Min(*found)


#: What appends the codes, by the name of the algorithm.
CODES: dict[str, Callable[[ModelWriter, Any, str, str], str]] = {
    "lars": _least_angles,
    "lasso_cd": _lasso,
    "lasso_lars": _lasso,
    "omp": _matching_pursuit,
    "threshold": _thresholded,
}
