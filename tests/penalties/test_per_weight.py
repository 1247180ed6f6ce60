"""PerWeightPenalty: gradients against NumPy, solutions against scikit-learn, and parameters."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline

from ortlearn import OrtGradientForwardBackwardOptimizer, OrtGradientOptimizer
from ortlearn.exceptions import PluginError
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD, LearningRateSGDNesterov
from ortlearn.penalties import (
    BasePenalty,
    ElasticPenalty,
    L1Penalty,
    L2Penalty,
    MaxNormPenalty,
    NoPenalty,
    PerWeightPenalty,
    resolve_penalty,
)
from ortlearn.testing import check_penalty

BOTH = pytest.mark.parametrize("kind", [OrtGradientOptimizer, OrtGradientForwardBackwardOptimizer])
RATE = 0.01
#: Attribute of a network with one hidden layer, and name of the weight.
NAMES = {
    "coefs_[0]": "coefs_0",
    "coefs_[1]": "coefs_1",
    "intercepts_[0]": "intercepts_0",
    "intercepts_[1]": "intercepts_1",
}


@pytest.fixture(scope="module")
def samples():
    X = np.random.RandomState(0).normal(size=(40, 3))
    return X, X[:, 0] - 2 * X[:, 1] + 1


@pytest.fixture(scope="module")
def network(samples):
    return MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", random_state=0).partial_fit(*samples)


def trained(kind, model, samples, penalty, **options):
    """Return an estimator after one step on all samples, from the weights of the model."""
    given = {"learning_rate": LearningRateSGD(RATE, learning_rate="constant"), "max_iter": 1, **options}
    trainer = kind(
        model,
        learning_penalty=penalty,
        batch_size=40,
        dtype="float64",
        warm_start=True,
        random_state=0,
        **given,
    )
    return trainer.fit(*samples)


def moved(kind, model, samples, penalty, **options):
    """Return the trained weights by attribute."""
    found = trained(kind, model, samples, penalty, **options).trained_coef_
    return {key: found[name] for key, name in NAMES.items()}


def before(model):
    weights = {f"coefs_[{i}]": model.coefs_[i] for i in range(2)}
    return weights | {f"intercepts_[{i}]": model.intercepts_[i][None] for i in range(2)}


#: Penalties, and their values and gradients by attribute.
SMOOTH = {
    "coefs_[0]": L2Penalty(0.3),
    "coefs_[1]": L1Penalty(0.2, proximal=False),
    "intercepts_[0]": ElasticPenalty(0.1, 0.4, proximal=False),
}
GRADIENTS = {
    "coefs_[0]": lambda w: 0.6 * w,
    "coefs_[1]": lambda w: 0.2 * np.sign(w),
    "intercepts_[0]": lambda w: 0.1 * np.sign(w) + 0.8 * w,
    "intercepts_[1]": lambda w: 0 * w,
}


@BOTH
def test_gradients_of_each_penalty(kind, samples, network):
    plain = moved(kind, network, samples, None)
    found = moved(kind, network, samples, SMOOTH)
    for key, weight in before(network).items():
        expected = plain[key] - RATE * GRADIENTS[key](weight.reshape(plain[key].shape))
        np.testing.assert_allclose(found[key], expected, rtol=1e-10, atol=1e-14)


@BOTH
def test_loss_includes_all_penalties(kind, samples, network):
    weights = before(network)
    first, bias = weights["coefs_[0]"], weights["intercepts_[0]"]
    expected = 0.3 * (first**2).sum() + 0.2 * np.abs(weights["coefs_[1]"]).sum()
    expected += 0.1 * np.abs(bias).sum() + 0.4 * (bias**2).sum()
    losses = [trained(kind, network, samples, penalty).train_losses_[0] for penalty in (None, SMOOTH)]
    np.testing.assert_allclose(losses[1] - losses[0], expected, rtol=1e-10)


@BOTH
def test_clipping_uses_the_whole_gradient(kind, samples, network):
    weights, plain = before(network), moved(kind, network, samples, None)
    gradients = {}
    for key, weight in weights.items():
        weight = weight.reshape(plain[key].shape)
        gradients[key] = (weight - plain[key]) / RATE + GRADIENTS[key](weight)
    norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))
    found = moved(kind, network, samples, SMOOTH, clip_norm=norm / 2)
    for key, weight in weights.items():
        expected = weight.reshape(plain[key].shape) - RATE * gradients[key] / 2
        np.testing.assert_allclose(found[key], expected, rtol=1e-7, atol=1e-10)


@BOTH
def test_steps_of_each_penalty(kind, samples, network):
    penalties = {"coefs_[0]": L1Penalty(2.0), "coefs_[1]": "l2", "intercepts_[*]": None}
    plain = moved(kind, network, samples, None)
    found = moved(kind, network, samples, penalties)
    first = plain["coefs_[0]"]
    expected = np.sign(first) * np.maximum(np.abs(first) - RATE * 2.0, 0)
    np.testing.assert_allclose(found["coefs_[0]"], expected, rtol=1e-10, atol=1e-14)
    expected = plain["coefs_[1]"] - RATE * network.coefs_[1]
    np.testing.assert_allclose(found["coefs_[1]"], expected, rtol=1e-10)
    for key in ("intercepts_[0]", "intercepts_[1]"):
        np.testing.assert_array_equal(found[key], plain[key])


@BOTH
def test_projection_leaves_other_penalties_to_the_gradient(kind, samples, network):
    """With Adam, l1 uses its gradient, as there is no proximal step, and max_norm projects."""
    adam = {"learning_rate": LearningRateAdam(RATE)}
    by_gradient = moved(kind, network, samples, L1Penalty(2.0, False, "coefs_[0]", proximal=False), **adam)
    found = moved(
        kind, network, samples, {"coefs_[0]": L1Penalty(2.0), "coefs_[1]": MaxNormPenalty(0.1)}, **adam
    )
    np.testing.assert_allclose(found["coefs_[0]"], by_gradient["coefs_[0]"], rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(found["coefs_[1]"], axis=0), 0.1)


@BOTH
def test_two_keys_of_one_weight_add_up(kind, samples, network):
    both = moved(kind, network, samples, {"coefs_[*]": L2Penalty(0.1), "coefs_[1]": L2Penalty(0.2)})
    for key, strength in (("coefs_[0]", 0.1), ("coefs_[1]", 0.3)):
        alone = moved(kind, network, samples, L2Penalty(strength, weights=key))
        np.testing.assert_allclose(both[key], alone[key], rtol=1e-12)


@pytest.mark.parametrize(
    "rate",
    [LearningRateAdam(1e-2), LearningRateSGDNesterov(1e-2), "LBFGS"],
    ids=lambda rate: type(rate).__name__,
)
@BOTH
@pytest.mark.filterwarnings("ignore:LearningRateLBFGS stopped:sklearn.exceptions.ConvergenceWarning")
def test_one_key_equals_the_selected_penalty(kind, rate, samples, network):
    """Weights are bit-identical, separate or packed into one vector."""
    options = {"learning_rate": rate, "max_iter": 30 if rate == "LBFGS" else 3}
    alone = moved(kind, network, samples, L2Penalty(0.1, weights="coefs_[0]"), **options)
    named = moved(kind, network, samples, {"coefs_[0]": L2Penalty(0.1)}, **options)
    for key in NAMES:
        np.testing.assert_array_equal(alone[key], named[key])


@pytest.mark.parametrize(
    "rate", [LearningRateAdam(1e-2), LearningRateSGDNesterov(1e-3)], ids=lambda rate: type(rate).__name__
)
def test_both_estimators_train_equally(rate, samples, network):
    penalties = {
        "coefs_[0]": ElasticPenalty(0.05, 0.01),
        "coefs_[1]": MaxNormPenalty(0.5),
        "intercepts_[0]": L2Penalty(0.3),
    }
    options = {"learning_rate": rate, "max_iter": 4}
    first = moved(OrtGradientOptimizer, network, samples, penalties, **options)
    second = moved(OrtGradientForwardBackwardOptimizer, network, samples, penalties, **options)
    for key in NAMES:
        np.testing.assert_allclose(first[key], second[key], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("alpha", [1.0, 30.0])
def test_ridge_equals_scikit_learn(alpha, samples):
    """With a penalty on the intercept too, the intercept is one more coefficient of the ridge."""
    X, y = samples
    ones = np.hstack([X, np.ones((len(X), 1))])
    strengths = np.array([alpha] * 3 + [2 * alpha])
    expected = Ridge(alpha=1.0, fit_intercept=False).fit(ones / np.sqrt(strengths), y).coef_ / np.sqrt(
        strengths
    )
    penalties = {"coef_": L2Penalty(alpha / 80), "intercept_": L2Penalty(2 * alpha / 80)}
    found = trained(
        OrtGradientOptimizer, LinearRegression(), samples, penalties, learning_rate="LBFGS", max_iter=200
    ).trained_coef_
    np.testing.assert_allclose(found["coef"].ravel(), expected[:3], atol=1e-5)
    np.testing.assert_allclose(found["intercept"].ravel(), expected[3:], atol=1e-5)


def test_steps_of_a_pipeline(samples):
    model = make_pipeline(PCA(2, random_state=0), Ridge()).fit(*samples)
    options = {"weights_to_train": ["pca", "ridge"]}
    plain = trained(OrtGradientOptimizer, model, samples, None, **options).trained_coef_
    trainer = trained(
        OrtGradientOptimizer, model, samples, {"pca": L2Penalty(0.1), "ridge.coef_": "l2"}, **options
    )
    chosen = {key: part.weights for key, part in trainer.penalty_.penalties.items()}
    assert len(chosen["pca"]) == 2 and len(chosen["ridge.coef_"]) == 1
    assert not set(chosen["pca"]) & set(chosen["ridge.coef_"])
    changed = {
        name for name, array in trainer.trained_coef_.items() if not np.array_equal(array, plain[name])
    }
    assert len(changed) == 3 and "intercept" not in changed


@pytest.mark.parametrize(
    "penalties, message",
    [
        ({"typo": "l2"}, "'typo' must name trained weights.*coefs_0"),
        ({"coefs_[0]": "l2", "coefs_[2]": "l2"}, r"'coefs_\[2\]' must name trained weights"),
        ({"intercepts_[0]": "l2"}, r"'intercepts_\[0\]' must name trained weights"),
        (
            {"coefs_[0]": L2Penalty(weights="coefs_[1]")},
            r"no weight matches both 'coefs_\[0\]' and weights of L2",
        ),
        ({"coefs_[0]": "l3"}, "l3"),
        ({"coefs_[0]": L2Penalty(-1.0)}, "L2Penalty: l2=-1.0"),
        ({"coefs_[0]": {"l2": 1.0}}, "is not a penalty"),
        ({"coefs_[0]": PerWeightPenalty({"coefs_[0]": "l1"})}, "Put all names into one dictionary"),
        ({}, "must be a dictionary of penalties"),
        ({3: "l2"}, "3 must be a name or pattern"),
        (PerWeightPenalty("l2"), "must be a dictionary of penalties"),
        (PerWeightPenalty, "cannot be created"),
        (
            {"coefs_[*]": "group_lasso", "coefs_[1]": "max_norm"},
            "GroupLassoPenalty and MaxNormPenalty on .* cannot be combined",
        ),
    ],
    ids=str,
)
def test_invalid_combinations_are_rejected(penalties, message, samples, network):
    trainer = OrtGradientOptimizer(network, ["coefs_[*]"], learning_penalty=penalties)
    with pytest.raises(PluginError, match=message):
        trainer.fit(*samples)
    assert not hasattr(trainer, "onnx_")


@pytest.mark.parametrize(
    "rate, penalty, message",
    [
        ("LBFGS", "max_norm", "needs a smooth objective, but PerWeightPenalty"),
        ("Adam", "group_lasso", "GroupLassoPenalty requires a proximal step"),
    ],
)
def test_unsupported_updates(rate, penalty, message, samples, network):
    penalties = {"coefs_[0]": "l2", "coefs_[1]": penalty}
    with pytest.raises(PluginError, match=message):
        OrtGradientOptimizer(network, learning_rate=rate, learning_penalty=penalties).fit(*samples)


def test_per_weight_penalty_passes_the_checks_of_plugins():
    check_penalty(PerWeightPenalty({"weight": ElasticPenalty(0.1, 0.2), "wei*": "l2"}))
    penalty = PerWeightPenalty({"coef": "l2"})
    assert penalty.smooth and not penalty.is_proximal() and not penalty.projects and not penalty.needs_step
    assert penalty.applies_to(True, "I0_coef") and not penalty.applies_to(False, "I0_other")
    stepping = PerWeightPenalty({"a": "l1", "b": "max_norm", "c": "group_lasso"})
    assert not stepping.smooth and stepping.is_proximal() and stepping.needs_step and not stepping.projects
    assert PerWeightPenalty({"a": "l2", "b": "max_norm"}).projects
    assert [type(part) for part in PerWeightPenalty({"a": None, "b": L1Penalty}).parts()] == [
        NoPenalty,
        L1Penalty,
    ]


def test_parameters():
    given = {"coefs_[0]": L1Penalty(0.1), "columns__pca": L2Penalty(0.2), "columns": "l2"}
    penalty = PerWeightPenalty(given)
    params = penalty.get_params()
    assert set(penalty.get_params(deep=False)) == {"penalties"} and params["penalties"] is given
    assert params["coefs_[0]"] is given["coefs_[0]"] and params["columns__pca__l2"] == 0.2
    penalty.set_params(**{"columns__pca__l2": 0.3, "coefs_[0]__l1": 0.4, "columns": L2Penalty()})
    assert penalty.penalties["columns__pca"].l2 == 0.3 and penalty.penalties["coefs_[0]"].l1 == 0.4
    assert isinstance(penalty.penalties["columns"], L2Penalty) and given["columns"] == "l2"
    penalty.set_params(penalties={"a": L2Penalty()}, a__l2=3.0)
    assert penalty.get_params()["a__l2"] == 3.0
    for copied in (clone(penalty), pickle.loads(pickle.dumps(penalty)), eval(repr(penalty))):
        assert copied.penalties["a"] is not penalty.penalties["a"] and repr(copied) == repr(penalty)
        assert copied.graph_key() == penalty.graph_key()
    assert repr(penalty) == "PerWeightPenalty(penalties={'a': L2Penalty(l2=3.0)})"


@pytest.mark.parametrize(
    "params, message",
    [
        ({"b__l2": 1.0}, "'b__l2' is not a parameter"),
        ({"b": "l2"}, "'b' is not a parameter"),
        ({"a__l2": 1.0}, "cannot be set, since the penalty of 'a' is 'l2': pass an object"),
        ({"c__l3": 1.0}, "l3"),
    ],
    ids=str,
)
def test_invalid_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        PerWeightPenalty({"a": "l2", "c": L2Penalty()}).set_params(**params)


@pytest.mark.parametrize("penalties", ["l2", None], ids=str)
def test_parameters_without_a_dictionary(penalties):
    penalty = PerWeightPenalty(penalties)
    assert penalty.get_params() == clone(penalty).get_params() == {"penalties": penalties}
    with pytest.raises(ValueError, match="'l2' is not a parameter"):
        penalty.set_params(l2=1.0)
    assert penalty.set_params(penalties={"a": L2Penalty()}, a__l2=2.0).get_params()["a__l2"] == 2.0


@pytest.mark.slow
def test_search_over_the_strength_of_one_weight(samples, network):
    penalty = PerWeightPenalty({"coefs_[0]": L2Penalty(0.1), "coefs_[1]": L2Penalty(0.1)})
    trainer = OrtGradientOptimizer(network, learning_penalty=penalty, max_iter=3, random_state=0)
    grid = {
        "learning_penalty__coefs_[0]__l2": [0.0, 100.0],
        "learning_penalty__coefs_[1]": [L2Penalty(), None],
    }
    search = GridSearchCV(trainer, grid, cv=2).fit(*samples)
    assert search.best_params_["learning_penalty__coefs_[0]__l2"] == 0.0
    assert len(set(search.cv_results_["mean_test_score"])) == 4
    assert penalty.penalties["coefs_[0]"].l2 == 0.1


def test_the_dictionary_of_the_caller_is_not_changed(samples, network):
    given = {"coefs_[0]": L2Penalty(0.1), "coefs_[1]": "l1"}
    trainer = clone(OrtGradientOptimizer(network, learning_penalty=given, max_iter=1, random_state=0)).fit(
        *samples
    )
    assert repr(given) == "{'coefs_[0]': L2Penalty(l2=0.1), 'coefs_[1]': 'l1'}"
    assert repr(trainer.learning_penalty) == repr(given)
    again = clone(trainer).set_params(learning_penalty=trainer.penalty_).fit(*samples)
    np.testing.assert_array_equal(again.predict(samples[0]), trainer.predict(samples[0]))
    with pytest.raises(ValueError, match=r"such as learning_penalty=PerWeightPenalty\(\{...\}\)"):
        trainer.set_params(**{"learning_penalty__coefs_[0]__l2": 1.0})


def test_partial_fit_reads_changed_penalties(samples, network):
    trainer = OrtGradientOptimizer(
        network, learning_penalty={"coefs_[0]": "l2"}, learning_rate=0.1, max_iter=1, random_state=0
    ).fit(*samples)
    before = np.abs(trainer.trained_coef_["coefs_1"]).max()
    trainer.set_params(learning_penalty={"coefs_[1]": L2Penalty(4.0)})
    for _ in range(5):
        trainer.partial_fit(*samples)
    assert np.abs(trainer.trained_coef_["coefs_1"]).max() < 0.5 * before


def test_compiled_graphs_are_distinguished(samples, network):
    """They are distinguished by strengths, weights and classes, also by classes with the same name."""

    def same_name(factor):
        class Mine(BasePenalty):
            def forward(self, op, weight):
                return op.Mul(op.ReduceSum(op.Mul(weight, weight), keepdims=0), factor)

        return Mine()

    penalties = [
        {"coefs_[0]": L2Penalty(0.1), "coefs_[1]": L2Penalty(0.2)},
        {"coefs_[0]": L2Penalty(0.2), "coefs_[1]": L2Penalty(0.1)},
        {"coefs_[0]": L2Penalty(0.1)},
        {"coefs_[1]": L2Penalty(0.1)},
        {"coefs_[0]": L1Penalty(0.1)},
        {"coefs_[0]": same_name(1.0)},
        {"coefs_[0]": same_name(3.0)},
    ]
    keys = [resolve_penalty(penalty).graph_key() for penalty in penalties]
    assert len(set(keys)) == len(keys)
    found = [moved(OrtGradientOptimizer, network, samples, penalty) for penalty in penalties]
    flat = {b"".join(array.tobytes() for array in weights.values()) for weights in found}
    assert len(flat) == len(penalties)
