"""Sparse coding: thresholding, lasso, orthogonal matching pursuit, least-angle regression."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...graphs import GraphBuilder
from ..base import ModelDefinition
from ..formulas.kernels import products
from ..formulas.linear_systems import LARGEST, in_double, iterate, solve_positive
from ..scores import Scores, transformation
from ..writer import ModelWriter

DEGENERATE = 1e-12  # atoms are parallel if their absolute cosine exceeds one minus this


class DictionaryDefinition(ModelDefinition):
    """DictionaryLearning, MiniBatchDictionaryLearning, SparseCoder; the choice of atoms has no gradient."""

    def covers(self, model: Any) -> bool:
        if model.transform_algorithm == "lasso_lars" and model.positive_code:
            return False  # the path may miss the minimum, see sklearn.linear_model.lars_path
        if model.transform_algorithm.startswith("lasso"):
            return _strength(model) > 0 and len(_dictionary(model)) <= LARGEST
        return model.transform_algorithm == "threshold" or _n_nonzero(model) <= LARGEST

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        attribute = "dictionary" if hasattr(model, "dictionary") else "components_"
        rows = op.parameter(model, attribute, role="weight")
        codes, n_outputs = CODES[model.transform_algorithm](op, model, x, rows), len(_dictionary(model))
        if model.split_sign:
            codes = op.Concat(op.Relu(codes), op.Relu(op.Neg(codes)), axis=1)
            n_outputs *= 2
        return transformation(op, codes, n_outputs)


def _dictionary(model: Any) -> np.ndarray:
    return model.dictionary if hasattr(model, "dictionary") else model.components_


def _strength(model: Any) -> float:
    """Return the factor of the L1 norm or the threshold."""
    return float(getattr(model, "alpha", 1.0) if model.transform_alpha is None else model.transform_alpha)


def _n_nonzero(model: Any) -> int:
    n_components, n_features = _dictionary(model).shape
    return int(model.transform_n_nonzero_coefs or min(max(n_features / 10, 1), n_components))


def _lasso(op: ModelWriter, model: Any, x: str, rows: str) -> str:
    return lasso_codes(op, x, rows, _dictionary(model).shape, _strength(model), model.positive_code)


class _Path:
    """Atoms that enter the code of each sample, one at a time."""

    def __init__(self, op: ModelWriter, model: Any, rows: str):
        self.op, self.rows, self.size = op, rows, len(_dictionary(model))
        self.atoms: list[str] = []  # of shape (n, 1, n_features), zeros for samples without a new atom
        self.one_hots: list[str] = []  # of shape (n, 1, size), zeros for samples without a new atom
        self.ones: list[str] = []  # 1 for samples with a new atom, of shape (n, 1, 1)

    def used(self) -> str:
        """Append 1 for atoms in the code, 0 for others, of shape (n, size)."""
        return self.op.ReduceSum(self.op.Concat(*self.one_hots, axis=1), [1], keepdims=0)

    def add(self, index: str, one_hot: str, enters: str) -> None:
        """Add an atom, its index (n, 1) and one-hot code (n, size), to samples where ``enters`` is 1."""
        op, enters = self.op, self.op.Unsqueeze(enters, [2])
        self.atoms.append(op.Mul(op.Gather(self.rows, index, axis=0), enters))
        self.one_hots.append(op.Mul(op.Unsqueeze(one_hot, [1]), enters))
        self.ones.append(enters)

    def solve(self, right: str) -> str:
        """Append the solution of a linear system with the Gram matrix of the atoms, (n, n_atoms, 1)."""
        op, count = self.op, len(self.atoms)
        atoms, ones = op.Concat(*self.atoms, axis=1), op.Concat(*self.ones, axis=1)
        matrix = op.ReduceSum(op.Mul(op.Unsqueeze(atoms, [2]), op.Unsqueeze(atoms, [1])), [3], keepdims=0)
        return solve_positive(op, with_diagonal(op, matrix, ones, count), right, count, 1)[0]

    def combined(self, factors: str, parts: list[str]) -> str:
        """Append the linear combination of atoms or one-hot codes, of shape (n, n_features or size)."""
        return self.op.ReduceSum(self.op.Mul(self.op.Concat(*parts, axis=1), factors), [1], keepdims=0)

    def one_hot(self, index: str) -> str:
        """Append one-hot codes of atoms, of shape (n, size)."""
        identity = np.eye(self.size, dtype=self.op.float_dtype)
        return self.op.Squeeze(self.op.Gather(identity, index, axis=0), [1])


def _matching_pursuit(op: ModelWriter, model: Any, x: str, rows: str) -> str:
    """Append codes by orthogonal matching pursuit (Pati et al., Asilomar 1993)."""
    path, residual, factors = _Path(op, model, rows), x, ""
    for _ in range(_n_nonzero(model)):
        sizes = op.Abs(products(op, residual, rows))
        index = op.ArgMax(sizes, axis=1, keepdims=1)
        one_hot, largest = path.one_hot(index), op.ReduceMax(sizes, [1], keepdims=1)
        enters = op.Greater(op.Mul(largest, largest), float(np.finfo(op.float_dtype).eps))
        if path.one_hots:
            repeated = op.ReduceSum(op.Mul(path.used(), one_hot), [1], keepdims=1)
            enters = op.And(enters, op.Less(repeated, 0.5))
        path.add(index, one_hot, op.Cast(enters, to=op.elem_type))
        right = op.ReduceSum(op.Mul(op.Concat(*path.atoms, axis=1), op.Unsqueeze(x, [1])), [2], keepdims=1)
        factors = path.solve(right)
        residual = op.Sub(x, path.combined(factors, path.atoms))
    return path.combined(factors, path.one_hots)


def _least_angle_regression(op: ModelWriter, model: Any, x: str, rows: str) -> str:
    """Append codes by least-angle regression."""
    # Efron, Hastie, Johnstone and Tibshirani, "Least angle regression", Annals of Statistics 32, 2004,
    # equations 2.10 to 2.13, with correlations that decrease at rate one. As in scikit-learn, an entry that
    # changes its sign flips the sign of its correlation, and no atom enters in the next step.
    atoms = np.asarray(_dictionary(model), dtype=np.float64)
    units = atoms / np.maximum(np.linalg.norm(atoms, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    if np.triu(np.abs(units @ units.T), 1).max() > 1 - DEGENERATE:
        reason = "two of its atoms are parallel, so that least-angle regression is ambiguous: remove one"
        raise op.fail(model, f"{reason}, or set transform_algorithm to 'omp' or 'lasso_lars'.")
    path, residual = _Path(op, model, rows), x
    signs, codes, crossed = "", "", ""
    for _ in range(_n_nonzero(model)):
        correlations = products(op, residual, rows)
        sizes = op.Abs(correlations)
        if path.one_hots:
            sizes = op.Where(op.Greater(path.used(), 0.5), -1.0, sizes)
        index = op.ArgMax(sizes, axis=1, keepdims=1)
        entering = op.GatherElements(correlations, index, axis=1)
        above, below = (op.Cast(side(entering, 0.0), to=op.elem_type) for side in (op.Greater, op.Less))
        sign, enters = op.Sub(above, below), op.Add(above, below)
        if crossed:
            sign, enters = (op.Mul(name, op.Sub(1.0, crossed)) for name in (sign, enters))
        path.add(index, path.one_hot(index), enters)
        sign, zero = op.Unsqueeze(sign, [2]), op.Mul(op.Unsqueeze(sign, [2]), 0.0)
        signs = op.Concat(signs, sign, axis=1) if signs else sign
        codes = op.Concat(codes, zero, axis=1) if codes else zero
        factors = path.solve(signs)
        direction = path.combined(factors, path.atoms)
        rates, level = products(op, direction, rows), op.Abs(entering)
        step = _first_knot(op, correlations, rates, level, path.used())
        signs, crossed = _flipped_signs(op, signs, codes, factors, step)
        codes = op.Add(codes, op.Mul(factors, op.Unsqueeze(step, [2])))
        residual = op.Sub(residual, op.Mul(direction, step))
    return path.combined(codes, path.one_hots)


def _flipped_signs(op: ModelWriter, signs: str, codes: str, factors: str, step: str) -> tuple[str, str]:
    """Append the signs with that of the first entry to cross zero flipped, and whether an entry crosses."""
    far = float(np.finfo(op.float_dtype).max)
    is_zero = op.Equal(factors, 0.0)
    zero = op.Neg(op.Div(codes, op.Where(is_zero, 1.0, factors)))
    zero = op.Where(op.Or(is_zero, op.LessOrEqual(zero, 0.0)), far, zero)
    first = op.ReduceMin(zero, [1], keepdims=1)
    crosses = op.Less(first, op.Unsqueeze(step, [2]))
    flips = op.And(crosses, op.Equal(zero, first))
    return op.Where(flips, op.Neg(signs), signs), op.Squeeze(op.Cast(crosses, to=op.elem_type), [2])


def _first_knot(op: ModelWriter, correlations: str, rates: str, level: str, used: str) -> str:
    """Append the step at which an unused atom correlates as much as the used ones, of shape (n, 1)."""
    far = float(np.finfo(op.float_dtype).max)
    active, steps = op.Greater(used, 0.5), [level]
    above = op.Sub(level, correlations), op.Sub(1.0, rates)
    for gap, rate in (above, (op.Add(level, correlations), op.Add(rates, 1.0))):
        # a used atom may have a rate of zero
        rate = op.Where(op.Or(active, op.Equal(rate, 0.0)), 1.0, rate)
        distance = op.Div(gap, rate)
        excluded = op.Or(active, op.LessOrEqual(distance, 0.0))
        steps.append(op.ReduceMin(op.Where(excluded, far, distance), [1], keepdims=1))
    return op.Min(*steps)


#: Writers of codes by ``transform_algorithm``.
CODES: dict[str, Callable[[ModelWriter, Any, str, str], str]] = {
    "lars": _least_angle_regression,
    "lasso_cd": _lasso,
    "lasso_lars": _lasso,
    "omp": _matching_pursuit,
    "threshold": lambda op, m, x, rows: thresholded(op, products(op, x, rows), _strength(m), m.positive_code),
}


#: The lasso iteration stops once no entry changes by more than this power of the machine epsilon, relative
#: to the largest entry, or after this number of steps.
CONVERGED, MAX_STEPS = 0.75, 100_000
SQUARINGS = 4  # number of squarings of a matrix in the bound of its largest eigenvalue
RIDGE = 8  # ridge of a Gram matrix, in machine epsilons times its largest entry
STEP = "lasso_step"  # name of the loop body


def thresholded(op: GraphBuilder, values: str, amount: Any, positive: bool) -> str:
    """Return soft-thresholded values."""
    above = op.Relu(op.Sub(values, amount))
    return above if positive else op.Sub(above, op.Relu(op.Sub(op.Neg(values), amount)))


def lasso_codes(
    op: ModelWriter, x: str, rows: str, shape: tuple[int, int], alpha: float, positive: bool
) -> str:
    """Append the minimiser c of ``|x - c D|^2 / 2 + alpha |c|`` for samples x and a dictionary D."""
    # With the signs s of c, found by proximal gradient steps, c solves (D D')_s c_s = (D x - alpha s)_s
    # (Osborne, Presnell and Turlach, "On the LASSO and its dual", J. Comput. Graph. Statist. 9, 2000).
    gram, correlations = products(op, rows, rows), products(op, x, rows)
    above, below = _signs(op, x, rows, shape, alpha, positive)
    signs, chosen = op.Sub(above, below), op.Add(above, below)
    pairs = op.Mul(op.Unsqueeze(chosen, [2]), op.Unsqueeze(chosen, [1]))
    right = op.Mul(op.Sub(correlations, op.Mul(signs, alpha)), chosen)
    matrix = with_diagonal(op, op.Mul(gram, pairs), op.Unsqueeze(chosen, [2]), shape[0])
    solution, _ = solve_positive(op, matrix, op.Unsqueeze(right, [2]), shape[0], 1)
    return op.Squeeze(solution, [2])


def with_diagonal(op: ModelWriter, matrix: str, ones: str, size: int) -> str:
    """Append Gram matrices with 1 on the diagonal of unused atoms, and a ridge for duplicate atoms."""
    tiny = RIDGE * float(np.finfo(op.float_dtype).eps)
    ridge = op.Mul(op.ReduceMax(matrix, [1, 2], keepdims=1), tiny)
    added = op.Add(op.Sub(1.0, ones), ridge)
    return op.Add(matrix, op.Mul(added, np.eye(size, dtype=op.float_dtype)))


def _signs(
    op: ModelWriter, x: str, rows: str, shape: tuple[int, int], alpha: float, positive: bool
) -> tuple[str, str]:
    """Append masks of the positive and the negative entries of the lasso codes, computed in float64."""
    size, n_features = shape
    with in_double(op, x, rows) as (x, rows):
        gram, correlations = products(op, rows, rows), products(op, x, rows)
        length = op.Reciprocal(_largest_eigenvalue(op, gram))
        zeros = op.Mul(correlations, 0.0)
        ones = op.Add(op.ReduceSum(zeros, [1], keepdims=1), 1.0)
        kinds = [(op.elem_type, [None, width]) for width in (size, size, 1)]
        step = partial(_proximal_step, (gram, correlations, length, alpha, positive))
        start = list(zip((zeros, zeros, ones), kinds, strict=True))
        codes = op.Reshape(iterate(op, STEP, MAX_STEPS, start, step)[0], [-1, size])
        if size > n_features:  # the atoms are linearly dependent
            sizes = op.Abs(codes)
            least = op.Gather(op.TopK(sizes, [n_features], axis=1, n_outputs=2)[0], [n_features - 1], axis=1)
            codes = op.Where(op.Less(sizes, least), 0.0, codes)
        above, below = op.Greater(codes, 0.0), op.Less(codes, 0.0)
    return op.Cast(above, to=op.elem_type), op.Cast(below, to=op.elem_type)


def _largest_eigenvalue(op: ModelWriter, gram: str) -> str:
    """Append an upper bound of the largest eigenvalue: a root of the norm of a matrix power."""
    scale = op.ReduceMax(op.ReduceSum(op.Abs(gram), [1], keepdims=0), keepdims=0)
    power = op.Div(gram, scale)
    for _ in range(SQUARINGS):
        power = op.MatMul(power, power)
    bound = op.ReduceMax(op.ReduceSum(op.Abs(power), [1], keepdims=0), keepdims=0)
    return op.Mul(scale, op.Pow(bound, 1 / 2**SQUARINGS))


def _proximal_step(
    problem: tuple[Any, ...], op: GraphBuilder, index: str, codes: str, extrapolated: str, momentum: str
) -> tuple[str, ...]:
    """Append a proximal gradient step with momentum (Beck, Teboulle, 2009), restarted (O'Donoghue, 2015)."""
    gram, correlations, length, alpha, positive = problem
    slope = op.Sub(op.MatMul(extrapolated, gram), correlations)
    result = thresholded(op, op.Sub(extrapolated, op.Mul(slope, length)), op.Mul(length, alpha), positive)
    step, moved = op.Sub(extrapolated, result), op.Sub(result, codes)
    restart = op.Greater(op.ReduceSum(op.Mul(step, moved), [1], keepdims=1), 0.0)
    momentum = op.Where(restart, 1.0, momentum)
    next_momentum = op.Mul(op.Add(op.Sqrt(op.Add(op.Mul(op.Mul(momentum, momentum), 4.0), 1.0)), 1.0), 0.5)
    rate = op.Where(restart, 0.0, op.Div(op.Sub(momentum, 1.0), next_momentum))
    largest, bound = (op.ReduceMax(op.Abs(name), keepdims=0) for name in (step, result))
    least = float(np.finfo(op.float_dtype).eps) ** CONVERGED
    unconverged = op.Greater(largest, op.Mul(bound, least))
    return unconverged, result, op.Add(result, op.Mul(moved, rate)), next_momentum
