"""Sparse coding: threshold, lasso, orthogonal matching pursuit and least angle regression."""

import numpy as np
import pytest
from sklearn.decomposition import DictionaryLearning, MiniBatchDictionaryLearning, SparseCoder

from ortlearn.estimators import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError
from ortlearn.models import all_covered
from ortlearn.testing import check_model
from ortlearn.trainable.from_estimator import sklearn_to_onnx

RNG = np.random.RandomState(0)
ATOMS = RNG.normal(size=(8, 6))
ATOMS /= np.linalg.norm(ATOMS, axis=1, keepdims=True)
#: Samples of few atoms each, and noise.
CODES = RNG.normal(size=(40, 8)) * (RNG.uniform(size=(40, 8)) < 0.3)
X = CODES @ ATOMS + 0.1 * RNG.normal(size=(40, 6))
#: Samples whose codes use the same atoms after a small change of the dictionary.
SMOOTH = (3 * np.eye(8)[:, [0, 3, 5]] + 1.5 * np.eye(8)[:, [4, 1, 7]]).T @ ATOMS
SMOOTH += 0.3 * RNG.normal(size=SMOOTH.shape)

CODERS = {
    "threshold": {"transform_algorithm": "threshold", "transform_alpha": 0.2},
    "split": {"transform_algorithm": "threshold", "transform_alpha": 0.2, "split_sign": True},
    "positive": {"transform_algorithm": "threshold", "transform_alpha": 0.2, "positive_code": True},
    "alpha of one": {"transform_algorithm": "threshold"},
    "omp": {"transform_algorithm": "omp"},
    "omp of three": {"transform_algorithm": "omp", "transform_n_nonzero_coefs": 3},
    "omp of all": {"transform_algorithm": "omp", "transform_n_nonzero_coefs": 6},
    "lars": {"transform_algorithm": "lars"},
    "lars of three": {"transform_algorithm": "lars", "transform_n_nonzero_coefs": 3},
    "lasso_cd": {"transform_algorithm": "lasso_cd", "transform_alpha": 0.1},
    "positive lasso": {"transform_algorithm": "lasso_cd", "transform_alpha": 0.1, "positive_code": True},
    "lasso_lars": {"transform_algorithm": "lasso_lars", "transform_alpha": 0.1},
    "split lasso": {"transform_algorithm": "lasso_lars", "transform_alpha": 0.1, "split_sign": True},
}


@pytest.mark.parametrize("name", CODERS)
def test_codes(run_onnx, name):
    model = SparseCoder(ATOMS, **CODERS[name]).fit(X)
    expected = model.transform(X)
    assert 0.1 < np.mean(expected != 0) < 0.8 or name == "alpha of one"
    for dtype, tolerance in ((np.float64, 1e-5), (np.float32, 1e-3)):
        found = run_onnx(sklearn_to_onnx(model, dtype=dtype), X.astype(dtype))[0]
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.sweep(9)
@pytest.mark.parametrize("name", CODERS)
def test_gradients_and_write_back(run, name):
    check_model(SparseCoder(ATOMS, **CODERS[name]).fit(SMOOTH), SMOOTH, run=run, rtol=1e-5)


@pytest.mark.parametrize("kind", [DictionaryLearning, MiniBatchDictionaryLearning])
@pytest.mark.parametrize("algorithm", ["omp", "lasso_lars", "threshold"])
def test_learned_dictionaries(run_onnx, kind, algorithm):
    model = kind(4, alpha=0.2, max_iter=10, transform_algorithm=algorithm, random_state=0).fit(X)
    found = run_onnx(sklearn_to_onnx(model, dtype=np.float64), X)[0]
    np.testing.assert_allclose(found, model.transform(X), atol=1e-7)


@pytest.mark.parametrize("name", ["omp of three", "lars of three", "lasso_lars"])
def test_samples_of_zeros_and_of_one_atom(run_onnx, name):
    """The residual of zeros is zero before the first step, that of an atom after it."""
    model = SparseCoder(ATOMS, **CODERS[name]).fit(X)
    samples = np.vstack([np.zeros(6), 2 * ATOMS[3]])
    found = run_onnx(sklearn_to_onnx(model, dtype=np.float64), samples)[0]
    lasso = 0.1 if name == "lasso_lars" else 0
    expected = (2 - lasso) * np.eye(8)[3] * np.array([[0], [1]])
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_pursuit_selects_one_of_two_equal_atoms(run_onnx):
    atoms = ATOMS[[0, 1, 1, 2]]
    model = SparseCoder(atoms, transform_algorithm="omp", transform_n_nonzero_coefs=3).fit(X)
    found = run_onnx(sklearn_to_onnx(model, dtype=np.float64), X)[0]
    both = np.array(
        [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]
    )  # rounding decides which of the two is selected
    np.testing.assert_allclose(found @ both, model.transform(X) @ both, atol=1e-7)
    assert not (found[:, 1] * found[:, 2]).any()


def test_lasso_with_two_equal_atoms_reconstructs_as_with_one(run_onnx):
    atoms = ATOMS[[0, 1, 1, 2]]
    model = SparseCoder(atoms, transform_algorithm="lasso_cd", transform_alpha=0.1).fit(X)
    once = SparseCoder(ATOMS[:3], transform_algorithm="lasso_cd", transform_alpha=0.1).fit(X)
    for dtype, tolerance in ((np.float64, 1e-8), (np.float32, 1e-4)):
        found = run_onnx(sklearn_to_onnx(model, dtype=dtype), X.astype(dtype))[0]
        np.testing.assert_allclose(found @ atoms, once.transform(X) @ ATOMS[:3], atol=tolerance)


@pytest.mark.parametrize("factor", [1.0, -0.3])
def test_least_angles_of_an_atom_twice_are_refused(factor):
    atoms = np.vstack([ATOMS[:3], factor * ATOMS[1]])
    with pytest.raises(ConversionError, match="two of its atoms are parallel.*: remove one"):
        sklearn_to_onnx(SparseCoder(atoms, transform_algorithm="lars").fit(X))


def test_coefficients_that_change_their_sign_on_the_path(run_onnx):
    atoms = np.random.RandomState(1).normal(size=(30, 20))
    samples = np.random.RandomState(2).normal(size=(60, 20))
    model = SparseCoder(atoms, transform_algorithm="lars", transform_n_nonzero_coefs=10).fit(samples)
    expected = model.transform(samples)
    assert len({*(expected != 0).sum(axis=1)}) > 1  # no atom joins after a change
    found = run_onnx(sklearn_to_onnx(model, dtype=np.float64), samples)[0]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [0.05, 3.0, "other norms"])
@pytest.mark.parametrize("seed", [0, 2])
def test_lasso_of_more_atoms_than_features_is_the_minimum(run_onnx, seed, scale):
    """Coordinate descent of scikit-learn stops early with a warning; the graph reaches the minimum."""
    rng = np.random.RandomState(seed)
    atoms = rng.normal(size=(20, 10))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    samples = (rng.normal(size=(30, 20)) * (rng.uniform(size=(30, 20)) < 0.3)) @ atoms
    samples += 0.1 * rng.normal(size=samples.shape)
    atoms = atoms * (np.exp(1.5 * rng.normal(size=(20, 1))) if scale == "other norms" else scale)

    def objective(codes):
        return np.square(samples - codes @ atoms).sum(axis=1) / 2 + 0.01 * np.abs(codes).sum(axis=1)

    coder = SparseCoder(atoms, transform_algorithm="lasso_cd", transform_alpha=0.01).fit(samples)
    found = run_onnx(sklearn_to_onnx(coder, dtype=np.float64), samples)[0]
    assert (objective(found) <= objective(coder.transform(samples)) + 1e-12).all()
    expected = coder.set_params(transform_algorithm="lasso_lars").transform(samples)
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.sweep(2)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["threshold", "omp of three", "lasso_lars"])
def test_training_recovers_the_dictionary_of_codes(name):
    expected = SparseCoder(ATOMS, **CODERS[name]).fit(X).transform(X)
    start = SparseCoder(ATOMS + 0.02 * RNG.normal(size=ATOMS.shape), **CODERS[name]).fit(X)
    # the error is not continuous where the selected atoms change
    same = ((start.transform(X) != 0) == (expected != 0)).all(axis=1)
    samples, expected = X[same], expected[same]
    options = {"max_iter": 300, "learning_rate": "LBFGS", "random_state": 0}
    ours = OrtGradientOptimizer(start, warm_start=True, **options).fit(samples, expected)
    before, after = (np.square(m.transform(samples) - expected).mean() for m in (start, ours))
    assert len(samples) > 15 and after < 0.1 * before
    # float32 may select the other of two atoms with equal correlations
    gaps = np.abs(ours.to_sklearn().transform(samples) - ours.transform(samples)).max(axis=1)
    assert np.mean(gaps < 1e-3) > 0.95


def test_estimators_without_a_definition():
    def covered(**params):
        return all_covered(SparseCoder(ATOMS, **params).fit(X))

    assert not covered(transform_algorithm="lasso_lars", positive_code=True)
    assert not covered(transform_algorithm="lasso_cd", transform_alpha=0.0)
