"""Models of other packages with converters for skl2onnx are trained like forests."""

import numpy as np
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from onnxmltools.convert.lightgbm.operator_converters.LightGbm import convert_lightgbm
from skl2onnx import update_registered_converter
from skl2onnx.common.shape_calculator import (
    calculate_linear_classifier_output_shapes,
    calculate_linear_regressor_output_shapes,
)
from sklearn.metrics import log_loss

from ortlearn import OrtGradientOptimizer, plugins
from ortlearn.models import ModelDefinition, public_path

SMALL = {"n_estimators": 5, "num_leaves": 6, "verbose": -1, "n_jobs": 1, "random_state": 0}
BACKENDS = ["rules", pytest.param("ort", marks=pytest.mark.needs_training)]


class CoversNothing(ModelDefinition):
    """Definition that covers no model, so that converters are used."""

    def covers(self, model):
        return False


@pytest.fixture(autouse=True, scope="module")
def _registered():
    update_registered_converter(
        LGBMClassifier,
        "LightGbmLGBMClassifier",
        calculate_linear_classifier_output_shapes,
        convert_lightgbm,
        options={"nocl": [True, False], "zipmap": [True, False, "columns"]},
    )
    update_registered_converter(
        LGBMRegressor,
        "LightGbmLGBMRegressor",
        calculate_linear_regressor_output_shapes,
        convert_lightgbm,
        options={"split": None},
    )
    with (
        plugins.temporary(plugins.MODELS, public_path(LGBMClassifier), CoversNothing),
        plugins.temporary(plugins.MODELS, public_path(LGBMRegressor), CoversNothing),
    ):
        yield


def refined(fitted, X, y, gradient):
    model = OrtGradientOptimizer(
        fitted, warm_start=True, learning_rate=1e-2, max_iter=5, gradient=gradient, random_state=0
    )
    return model.fit(X, y)


@pytest.mark.parametrize("gradient", BACKENDS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifier(wine, n_classes, gradient):
    X, y = (part[wine[1] < n_classes] for part in wine)
    fitted = LGBMClassifier(**SMALL).fit(X, y)
    model = refined(fitted, X, y, gradient)
    assert list(model.weights_to_train_) == ["leaf_values"]
    assert model.train_losses_[-1] < model.train_losses_[0]
    assert log_loss(y, model.predict_proba(X)) < log_loss(y, fitted.predict_proba(X))


@pytest.mark.parametrize("gradient", BACKENDS)
def test_regressor(diabetes_units, gradient):
    X, y = diabetes_units
    fitted = LGBMRegressor(**SMALL).fit(X, y)
    model = refined(fitted, X, y, gradient)
    assert list(model.weights_to_train_) == ["leaf_values"]
    assert model.score(X, y) > fitted.score(X, y)
    assert np.abs(model.predict(X) - fitted.predict(X)).max() < 1.0
