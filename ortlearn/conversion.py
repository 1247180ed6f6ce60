"""Convert scikit-learn estimators and ONNX models into trainable graphs, and write weights back.

The functions are defined in the packages of their subject. Names are imported on first access, because they
import parts of scikit-learn that take longer than the rest of ortlearn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .models.parameters import Weight
    from .models.weight_names import onnx_rename_weights
    from .onnx_files.loading import is_onnx_source as is_onnx_source
    from .onnx_files.versions import pin_versions
    from .onnx_files.weights import find_weights, get_train_initializer
    from .preprocessing.estimator_checks import target_tags as target_tags
    from .preprocessing.initial_fit import is_fitted as is_fitted
    from .preprocessing.missing import accepts_missing as accepts_missing
    from .trainable.conversion import TrainableModel, to_trainable
    from .trainable.conversion import source_task as source_task
    from .trainable.explanation import Explanation, explain
    from .trainable.from_estimator import sklearn_to_onnx, write_weights

__all__ = [
    "Explanation",
    "TrainableModel",
    "Weight",
    "explain",
    "find_weights",
    "get_train_initializer",
    "onnx_rename_weights",
    "pin_versions",
    "sklearn_to_onnx",
    "to_trainable",
    "write_weights",
]

#: Names by module; those not in ``__all__`` were public in version 0.2.0, or are read by the estimators.
_NAMES = {
    "models.parameters": ("Weight",),
    "models.weight_names": ("onnx_rename_weights",),
    "onnx_files.loading": ("is_onnx_source",),
    "onnx_files.versions": ("pin_versions",),
    "onnx_files.weights": ("find_weights", "get_train_initializer"),
    "preprocessing.column_reading": ("check_categories", "read_columns"),
    "preprocessing.estimator_checks": ("check_feature_names", "check_is_a_model", "target_tags"),
    "preprocessing.initial_fit": ("fit_clone", "is_fitted", "untouched"),
    "preprocessing.missing": ("accepts_missing", "missing_columns"),
    "trainable.conversion": ("TrainableModel", "source_task", "to_trainable"),
    "trainable.explanation": ("Explanation", "explain"),
    "trainable.from_estimator": ("sklearn_to_onnx", "write_weights"),
    "trainable.initial_weights": ("draw_weights",),
    "trainable.selection": ("select_weights",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_MODULES[name]}", __package__), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
