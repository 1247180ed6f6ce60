"""Gaussian processes: graph, gradients and write-back of all kernels."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Kernel,
    Matern,
    NormalizedKernelMixin,
    PairwiseKernel,
    RationalQuadratic,
    StationaryKernelMixin,
    WhiteKernel,
)

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import TensorType, extract_model, make_inputs_of
from ortlearn.models import write_model, write_parameters
from ortlearn.testing import check_gradient_rule, check_model
from ortlearn.trainable.explanation import explain

RNG = np.random.default_rng(0)
X = RNG.normal(size=(25, 3)) + 0.2
SAMPLES = RNG.normal(size=(8, 3))  # not samples of the fit, where distances have no derivative
Y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=25)
THREE = np.digitize(Y, [-0.3, 0.6])
KERNELS = {
    "none": None,
    "rbf": 2.0 * RBF(1.5),
    "one length for each column": RBF([1.0, 2.0, 0.5]) + WhiteKernel(0.1),
    **{f"matern {nu}": Matern([0.7, 1.5, 2.0], nu=nu) for nu in (0.5, 0.8, 2.5, 3.5, 4.0, np.inf)},
    "rational quadratic": RationalQuadratic(0.7, 1.5),
    "power": (1.0 * RationalQuadratic()) ** 1.5,
    "periodic": ExpSineSquared(1.0, 3.0) * RBF(1.0) + WhiteKernel(1.0),
    "dot product": DotProduct(1.2) + WhiteKernel(0.3),
    "constant and noise": ConstantKernel(2.0) * RBF() + ConstantKernel(0.5) + WhiteKernel(0.3),
    "nothing but a constant": ConstantKernel(2.0) + WhiteKernel(0.3),
    **{
        f"pairwise {metric}": PairwiseKernel(metric=metric, gamma=0.4) + WhiteKernel(1.0)
        for metric in ("linear", "poly", "rbf", "laplacian", "cosine")
    },
    "pairwise sigmoid": PairwiseKernel(metric="sigmoid", gamma=0.4) + WhiteKernel(30.0),
    "options": PairwiseKernel(metric="poly", pairwise_kernels_kwargs={"degree": 2, "coef0": 0.5})
    + WhiteKernel(),
}


def written(model, dtype=np.float64):
    return write_model(model, {"X": TensorType(11 if dtype == np.float64 else 1, (None, 3))}, dtype)


@pytest.mark.parametrize("name", KERNELS)
def test_regressors(name, run):
    model = GaussianProcessRegressor(KERNELS[name], alpha=0.05, optimizer=None, normalize_y=True)
    check_model(model.fit(X, Y + 3), SAMPLES, run=run)


def test_several_targets(run):
    targets = np.column_stack([Y, 5 - 2 * Y])
    check_model(GaussianProcessRegressor(alpha=0.05, normalize_y=True).fit(X, targets), SAMPLES, run=run)


@pytest.mark.sweep(12)
@pytest.mark.parametrize("name", KERNELS)
def test_classifiers_of_two(name, run):
    labels = np.where(Y > 0, "yes", "no")
    check_model(GaussianProcessClassifier(KERNELS[name], optimizer=None).fit(X, labels), SAMPLES, run=run)


@pytest.mark.parametrize("classes", [[0, 1, 2], [5, -3, 8], ["a", "b", "c"]], ids=str)
def test_classifiers_of_three(classes, run):
    model = GaussianProcessClassifier(1.0 * RBF(), optimizer=None).fit(X, np.array(classes)[THREE])
    check_model(model, SAMPLES, run=run)


def test_classifiers_in_float32(run):
    model = GaussianProcessClassifier(1.0 * RBF(), optimizer=None).fit(X, THREE)
    label, probabilities = run(written(model, np.float32).model, {"X": SAMPLES.astype(np.float32)})
    # the coefficients of the approximated integral reach 3500: seven digits become four
    np.testing.assert_allclose(probabilities, model.predict_proba(SAMPLES), atol=1e-3)
    assert label.tolist() == model.predict(SAMPLES).tolist()


class UserKernel(StationaryKernelMixin, NormalizedKernelMixin, Kernel):
    """A user-defined kernel."""

    def __init__(self):
        pass

    def __call__(self, X, Y=None, eval_gradient=False):
        return np.eye(len(X)) if Y is None else np.zeros((len(X), len(Y)))


@pytest.mark.parametrize(
    "kernel, said",
    [
        (UserKernel(), "is not supported: use those of sklearn"),
        (PairwiseKernel(metric=lambda a, b, gamma: float(a @ b)), "is not supported: use one of"),
    ],
)
def test_unsupported_kernels(kernel, said):
    model = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None).fit(np.abs(X), Y)
    with pytest.raises(ConversionError, match=said):
        written(model)


def test_classifiers_of_pairs(run):
    four = np.array(list("dbac"))[np.digitize(Y, [-0.6, 0.2, 0.9])]
    model = GaussianProcessClassifier(1.0 * RBF(), optimizer=None, multi_class="one_vs_one").fit(X, four)
    check_model(model, SAMPLES, run=run)


@pytest.mark.slow
def test_classifiers_of_pairs_have_no_probabilities():
    model = GaussianProcessClassifier(optimizer=None, multi_class="one_vs_one").fit(X, THREE)
    ours = OrtGradientOptimizer(model, max_iter=3, warm_start=True, random_state=0).fit(X, THREE)
    assert not hasattr(ours, "predict_proba")
    assert ours.predict(X).tolist() == ours.to_sklearn().predict(X).tolist()
    # the loss uses normalised products of the probabilities of pairs
    pairs = ours.to_sklearn().base_estimator_.estimators_
    second = [member.predict_proba(SAMPLES)[:, 1] for member in pairs]
    products = [(1 - second[0]) * (1 - second[1]), second[0] * (1 - second[2]), second[1] * second[2]]
    shares = np.array(products).T / np.sum(products, axis=0)[:, np.newaxis]
    numbers = np.arange(len(SAMPLES)) % 3
    expected = -np.log(shares[np.arange(len(SAMPLES)), numbers])
    np.testing.assert_allclose(ours.losses(SAMPLES, numbers), expected, atol=1e-3)


@pytest.mark.parametrize("metric", ["chi2", "additive_chi2"])
def test_kernels_of_histograms(metric):
    samples, new = np.abs(X), np.abs(SAMPLES)
    samples[0, 0] = 0.0
    kernel = PairwiseKernel(metric=metric, gamma=0.4) + 40.0 * RBF()
    check_model(GaussianProcessRegressor(kernel, alpha=0.05, optimizer=None).fit(samples, Y), new)
    classifier = GaussianProcessClassifier(kernel, optimizer=None).fit(samples, Y > 0)
    check_model(classifier, new)


def test_precomputed_kernels():
    kernel, gram = PairwiseKernel(metric="precomputed"), X @ X.T
    model = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None).fit(gram, Y)
    check_model(model, SAMPLES @ X.T)


def test_compound_kernels_of_several_classes():
    """scikit-learn uses this kernel to combine those of the members of a classifier only."""
    model = GaussianProcessClassifier(1.0 * RBF(), optimizer=None).fit(X, THREE)
    assert isinstance(model.kernel_, CompoundKernel)
    scales = [
        p.expression for p in written(model).parameters.values() if p.attribute.endswith("length_scale")
    ]
    assert scales == [f"base_estimator_.estimators_[{i}].kernel_.k2.length_scale" for i in range(3)]
    with pytest.raises(ValueError, match="CompoundKernel"):
        GaussianProcessClassifier(model.kernel_).fit(X, THREE)


@pytest.mark.parametrize("nu", [0.3, 0.8, 1.0, 3.5, 7.2])
def test_gradients_of_matern_length_scales(nu):
    kernel = Matern(1.3, nu=nu)
    model = GaussianProcessRegressor(kernel, alpha=0.5, optimizer=None).fit(X, Y)
    graph = written(model)
    (name,) = [name for name, p in graph.parameters.items() if p.attribute.endswith("length_scale")]
    part = make_inputs_of(extract_model(graph.model, [graph.scores.score]), [name])
    check_gradient_rule(part, SAMPLES, np.array(1.3), wrt=[1], rtol=1e-6, atol=1e-9)


def test_names_and_reasons():
    table = explain(
        GaussianProcessRegressor(2.0 * RBF(1.5), alpha=0.1, optimizer=None, normalize_y=True), X, Y
    )
    assert {row.attribute: row.trainable for row in table.rows if row.attribute} == {
        "X_train_": True,
        "alpha_": True,
        "_y_train_mean": True,
        "_y_train_std": True,
        "kernel_.k1.constant_value": False,
        "kernel_.k2.length_scale": False,
    }
    model = GaussianProcessClassifier(2.0 * RBF(1.5), optimizer=None).fit(X, THREE)
    found = [p for p in written(model).parameters.values() if not p.reason]
    assert [p.expression for p in found] == [
        f"y_train_ - base_estimator_.estimators_[{i}].pi_" for i in range(3)
    ]


def test_write_back_updates_standard_deviations():
    model = GaussianProcessRegressor(2.0 * RBF(1.5), alpha=0.1, optimizer=None).fit(X, Y)
    graph = written(model)
    (name,) = [name for name, p in graph.parameters.items() if p.attribute == "X_train_"]
    changed = write_parameters(model, graph.parameters, {name: 0.9 * model.X_train_})
    expected = GaussianProcessRegressor(2.0 * RBF(1.5), alpha=0.1, optimizer=None).fit(0.9 * X, Y)
    np.testing.assert_allclose(
        changed.predict(SAMPLES, return_std=True)[1], expected.predict(SAMPLES, return_std=True)[1]
    )
