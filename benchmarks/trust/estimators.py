"""Every classifier and regressor that is installed, with default parameters."""

from __future__ import annotations

from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any

from sklearn.base import is_classifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.discovery import all_estimators

from benchmarks.model_zoo.construct import with_defaults

__all__ = ["ESTIMATORS", "estimator", "is_tree", "takes_columns"]

#: Estimators of other packages, by the module that has them.
OTHERS = {
    "xgboost": ("XGBClassifier", "XGBRegressor"),
    "lightgbm": ("LGBMClassifier", "LGBMRegressor"),
    "catboost": ("CatBoostClassifier", "CatBoostRegressor"),
}
#: Parameters that silence other packages, or keep them from writing files.
QUIET: dict[str, dict[str, Any]] = {
    "LGBMClassifier": {"verbose": -1, "n_jobs": 1},
    "LGBMRegressor": {"verbose": -1, "n_jobs": 1},
    "XGBClassifier": {"n_jobs": 1},
    "XGBRegressor": {"n_jobs": 1},
    "CatBoostClassifier": {"verbose": 0, "allow_writing_files": False, "thread_count": 1},
    "CatBoostRegressor": {"verbose": 0, "allow_writing_files": False, "thread_count": 1},
}
#: Words in names of estimators whose fit does not depend on the scale of features.
TREES = ("Tree", "Forest", "Boost", "XGB", "LGBM", "Bagging", "Dummy")
#: Estimators of several outputs, and of one column.
SEVERAL = {"MultiOutputClassifier", "MultiOutputRegressor", "ClassifierChain", "RegressorChain"}
ONE_COLUMN = {"IsotonicRegression"}


def _found() -> dict[str, type]:
    kinds = dict(all_estimators("classifier")) | dict(all_estimators("regressor"))
    installed = {module: names for module, names in OTHERS.items() if find_spec(module)}
    return kinds | {own: resolve_name(f"{m}:{own}") for m, names in installed.items() for own in names}


ESTIMATORS = _found()


def estimator(name: str, by_class: bool, scaled: bool) -> Any:
    """Return an unfitted estimator with default parameters, with ``random_state=0`` if it has one."""
    cls = ESTIMATORS[name]
    if name in QUIET:
        model = cls(**QUIET[name])
    else:
        model = with_defaults(cls, by_class)
        if name in ("AdaBoostClassifier", "AdaBoostRegressor"):
            model.set_params(n_estimators=50)
    if "random_state" in model.get_params(deep=False):
        model.set_params(random_state=0)
    return make_pipeline(StandardScaler(), model) if scaled else model


def applies(name: str, by_class: bool) -> bool:
    """Return whether an estimator is for classes, or for numbers."""
    model = estimator(name, by_class, False)
    return is_classifier(model) == by_class


def is_tree(name: str) -> bool:
    """Return whether a scaler in front of the estimator changes nothing."""
    return any(word in name for word in TREES)


def takes_columns(name: str) -> bool:
    """Return whether y has several columns."""
    return name in SEVERAL or not get_tags(estimator(name, False, False)).target_tags.single_output
