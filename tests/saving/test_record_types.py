"""Every class of which a fitted model may consist is a listed type or a plugin."""

import importlib
import pkgutil
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingRegressor, IsolationForest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity, KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, SplineTransformer, StandardScaler

import ortlearn
from ortlearn import plugins
from ortlearn.fitting.saved_types import TYPES
from ortlearn.learning_rates import BaseLearningRate
from ortlearn.losses import BaseLoss
from ortlearn.models import Access, Parameter
from ortlearn.models.constraints.base import Constraint
from ortlearn.models.forms import Form
from ortlearn.models.parameters import Attribute
from ortlearn.penalties import BasePenalty
from ortlearn.saving.decoder import Decoder
from ortlearn.saving.encoder import Encoder
from ortlearn.trainable.conversion import to_trainable

#: Classes that exist during a training only, or hold a Python function.
LEFT_OUT = {"FunctionLoss", "MarginLoss", "SmoothedLoss", "AnchoredPenalty", "SmoothedPenalty"}
LEFT_OUT |= {
    "_ScaledPenalty",
    "_ShiftedPenalty",
    "_FromStart",
    "ScheduledLearningRate",
    "BaseSolver",
    "WrappedRate",
    "Rescaled",
}
LEFT_OUT |= {"Averaged"}


def subclasses(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from subclasses(sub)


@pytest.mark.parametrize("base", [Access, Constraint, Form, BaseLoss, BasePenalty, BaseLearningRate])
def test_every_class_is_listed_or_a_plugin(base):
    for package in (
        "losses",
        "penalties",
        "learning_rates",
        "training",
        "models.constraints",
        "models.others",
    ):
        module = importlib.import_module(f"ortlearn.{package}")
        for info in pkgutil.iter_modules(module.__path__, f"{module.__name__}."):
            importlib.import_module(info.name)
    stored = {kind.cls.__name__ for kind in TYPES.values()}
    known = {info.value.rpartition(":")[2] for info in plugins.list_plugins()} | stored | LEFT_OUT
    defined = {cls.__name__ for cls in subclasses(base) if cls.__module__.startswith(f"{ortlearn.__name__}.")}
    assert defined and not defined - known


rng = np.random.default_rng(0)
X = rng.normal(size=(30, 2)).astype(np.float32)
CLASSES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.3)
NAMES = FeatureUnion([("it's", StandardScaler()), ("a'][0].b", MaxAbsScaler()), ("[3]", StandardScaler())])
#: Models with every kind of access, form and path.
MODELS = {
    "names": Pipeline([("x.y", NAMES), ("last", GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, cv=2))]),
    "items": MLPRegressor(hidden_layer_sizes=(2,), max_iter=1),
    "leaves": GradientBoostingClassifier(n_estimators=2),
    "predictors": HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=5),
    "depths": IsolationForest(n_estimators=2, random_state=0),
    "knots": make_pipeline(SplineTransformer(n_knots=3), LogisticRegression()),
    "samples": KernelDensity(),
    "duplicates": KNeighborsRegressor(2),
    "residuals": GaussianProcessClassifier(optimizer=None),
    "logarithms": GaussianNB(),
    "covariances": GaussianMixture(2, random_state=0),
    "monotonic": IsotonicRegression(increasing=False),
}


def stored(value):
    encoder = Encoder(TYPES)
    record = encoder.encode(value)
    assert not encoder.omitted
    return Decoder(TYPES, encoder.all_files(), ()).decode(record)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_stored_parameters_find_their_values(name):
    given = X[:, :1] if name == "monotonic" else X
    model = MODELS[name].fit(given, CLASSES)
    trainable = to_trainable(model, "*", X=given, dtype=np.float64)
    again, values = stored(trainable.parameters), trainable.coefficients(trainable.initial_weights())
    assert again == trainable.parameters and values
    for name in trainable.trained:
        array = values[trainable.original_names[name]]
        np.testing.assert_allclose(again[name].value(model), array, rtol=1e-6, atol=1e-9)


@dataclass(frozen=True)
class Halved(Form):
    """A form of another package."""

    text = "{} / 2"


def test_a_form_of_another_package_is_left_to_its_definition():
    own = Parameter("a", "weight", True, attribute="a_", form=Halved(), path=(), access=Attribute("a_"))
    found = stored(own)
    assert found.expression == own.expression == "a_ / 2" and found.path is None and found.access is None
