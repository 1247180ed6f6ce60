"""Attributions beside those of shap, where both definitions agree; make test-bridges installs it."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor

from ortlearn.inspection import integrated_gradients

from .test_function import CLASSES, NETWORK, P, X, Y

shap = pytest.importorskip("shap", reason="needs shap: make test-bridges")
pytestmark = pytest.mark.filterwarnings("ignore")
BASELINE = X.mean(axis=0)


def test_linear_models():
    """Both are the coefficients times the difference from the mean."""
    masker = shap.maskers.Independent(X, max_samples=len(X))
    model = Ridge().fit(X, Y)
    found = integrated_gradients(model, P, BASELINE)
    explainer = shap.LinearExplainer(model, masker)
    np.testing.assert_allclose(found.attributions, explainer.shap_values(P), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.baseline_value, explainer.expected_value, rtol=1e-9)
    classifier = LogisticRegression().fit(X, CLASSES)
    expected = shap.LinearExplainer(classifier, masker).shap_values(P)
    for index in range(3):
        found = integrated_gradients(classifier, P, BASELINE, output=index, method="decision_function")
        np.testing.assert_allclose(found.attributions, expected[..., index], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("activation", ["tanh", "logistic", "relu"])
def test_networks_of_one_hidden_layer(activation):
    """The mean slope of a unit on a line is its change per change of input: the rescale rule of DeepLIFT."""
    torch = pytest.importorskip("torch", reason="needs torch: make test-bridges")
    units = {"tanh": torch.nn.Tanh, "logistic": torch.nn.Sigmoid, "relu": torch.nn.ReLU}
    model = MLPRegressor(**{**NETWORK, "activation": activation}).fit(X, Y)
    layers = []
    for weights, bias in zip(model.coefs_, model.intercepts_, strict=True):
        layers += [torch.nn.Linear(*weights.shape).double(), units[activation]()]
        layers[-2].weight.data, layers[-2].bias.data = torch.tensor(weights.T), torch.tensor(bias)
    network = torch.nn.Sequential(*layers[:-1])
    explainer = shap.DeepExplainer(network, torch.tensor(BASELINE[None]))
    expected = explainer.shap_values(torch.tensor(P), check_additivity=True)[..., 0]
    found = integrated_gradients(model, P, BASELINE, steps=2000 if activation == "relu" else "auto")
    tolerance = 1e-3 if activation == "relu" else 1e-6  # quadrature of a kink, and of a smooth function
    np.testing.assert_allclose(found.attributions, expected, atol=tolerance * np.abs(expected).max())


def test_trees_of_one_split():
    """In a sum of functions of one feature each, attributions are the changes of these functions."""
    model = GradientBoostingRegressor(max_depth=1, n_estimators=30).fit(X, Y)
    explainer = shap.TreeExplainer(model, BASELINE[None], feature_perturbation="interventional")
    found = integrated_gradients(model, P, BASELINE)
    assert found.exact
    np.testing.assert_allclose(found.attributions, explainer.shap_values(P), rtol=1e-6, atol=1e-9)


def test_trees_have_the_same_sum():
    """Shapley values and jumps along a line share the difference differently."""
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, CLASSES)
    explainer = shap.TreeExplainer(model, BASELINE[None], feature_perturbation="interventional")
    expected = explainer.shap_values(P)[..., 1]
    found = integrated_gradients(model, P, BASELINE, output=1)
    np.testing.assert_allclose(found.attributions.sum(axis=1), expected.sum(axis=1), atol=1e-9)
