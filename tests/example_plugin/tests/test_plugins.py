"""Each plugin passes the check of its kind and is found by its name."""

import numpy as np
import pytest
from ortlearn_example_plugin.learning_rates import LearningRateSignSGD
from ortlearn_example_plugin.losses import LogCoshLoss
from ortlearn_example_plugin.models import PowerLawRegressor
from ortlearn_example_plugin.penalties import SquaredHingePenalty
from ortlearn_example_plugin.schedules import TriangleSchedule
from sklearn.linear_model import Ridge

from ortlearn import OrtGradientOptimizer
from ortlearn.learning_rates import LearningRateAdam
from ortlearn.testing import check_gradient_rule, check_learning_rate, check_loss, check_model, check_penalty


@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_loss(scale):
    check_loss(LogCoshLoss(scale))


def test_penalty():
    check_penalty(SquaredHingePenalty(limit=0.5))


def test_learning_rate():
    check_learning_rate(LearningRateSignSGD())


def test_schedule():
    rate = LearningRateAdam(learning_rate=TriangleSchedule(period=4, low=0.5))
    check_learning_rate(rate)
    assert [rate.rate(epoch) / rate.eta0 for epoch in range(5)] == [0.5, 0.75, 1.0, 0.75, 0.5]


@pytest.mark.parametrize("attributes", [{}, {"batch_axis": 0, "time_axis": 1}])
def test_gradient_rule(attributes):
    check_gradient_rule(
        "ReverseSequence", np.arange(9.0).reshape(3, 3), np.array([3, 1, 2]), attributes=attributes
    )


def test_names_are_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    trainer = OrtGradientOptimizer(
        Ridge(),
        learning_loss="example_log_cosh",
        learning_penalty="example_squared_hinge",
        learning_rate=LearningRateSignSGD(eta0=0.01, learning_rate="example_triangles"),
        max_iter=20,
        random_state=0,
    )
    assert trainer.fit(X, X @ [1.0, -0.5, 0.0]).score(X, X @ [1.0, -0.5, 0.0]) > 0.9


def test_model():
    X = np.random.default_rng(0).uniform(1, 3, size=(40, 2))
    y = 2 * X[:, 0] ** 1.5 / X[:, 1]
    model = PowerLawRegressor().fit(X, y)
    check_model(model, X)
    trainer = OrtGradientOptimizer(PowerLawRegressor(), learning_rate="Adam", warm_start=True, random_state=0)
    trainer.fit(X, 2 * y)
    assert trainer.weights_to_train_ == {"exponents": "exponents_", "scale": "scale_"}
    assert trainer.train_losses_[-1] < trainer.train_losses_[0] / 2
    np.testing.assert_allclose(trainer.to_sklearn().predict(X), trainer.predict(X), rtol=1e-5)
