"""Converters of our own, where those of skl2onnx give something else than scikit-learn, or too much.

One file per kind of estimator; each has ``convert(scope, operator, container)``, as skl2onnx calls it.
"""

from __future__ import annotations

from collections.abc import Callable

from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.linear_model import RidgeClassifier, RidgeClassifierCV
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, RegressorChain
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import PowerTransformer, QuantileTransformer
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from . import (
    boosting,
    chains,
    defined,
    elementwise,
    gaussian_process,
    isolation_forest,
    multioutput,
    networks,
    ridge_labels,
    svm,
    trees,
)

__all__ = ["CONVERTERS", "SHAPES"]

#: Converters by type of the estimator.
CONVERTERS: dict[type, Callable] = {
    ClassifierChain: chains.convert_classifier,
    DecisionTreeClassifier: trees.convert,
    DecisionTreeRegressor: trees.convert,
    ExtraTreeClassifier: trees.convert,
    ExtraTreeRegressor: trees.convert,
    elementwise.Elementwise: elementwise.convert,
    ExtraTreesClassifier: trees.convert,
    ExtraTreesRegressor: trees.convert,
    GaussianProcessClassifier: gaussian_process.convert_classifier,
    GaussianProcessRegressor: gaussian_process.convert_regressor,
    HistGradientBoostingClassifier: boosting.convert,
    HistGradientBoostingRegressor: boosting.convert,
    IsolationForest: isolation_forest.convert,
    MLPClassifier: networks.convert_classifier,
    MLPRegressor: networks.convert_regressor,
    MultiOutputClassifier: multioutput.convert_classifier,
    NuSVC: svm.convert_classifier,
    NuSVR: svm.convert_regressor,
    OneClassSVM: svm.convert_regressor,
    PowerTransformer: defined.convert,
    QuantileTransformer: defined.convert,
    RandomForestClassifier: trees.convert,
    RandomForestRegressor: trees.convert,
    RegressorChain: chains.convert_regressor,
    RidgeClassifier: ridge_labels.convert,
    RidgeClassifierCV: ridge_labels.convert,
    SVC: svm.convert_classifier,
    SVR: svm.convert_regressor,
}

#: What tells skl2onnx the shapes of types that it does not know, or not right.
SHAPES: dict[type, Callable] = {
    ClassifierChain: chains.shape_classifier,
    MLPRegressor: networks.shape_regressor,
    RegressorChain: chains.shape_regressor,
    elementwise.Elementwise: elementwise.output_shape,
}
