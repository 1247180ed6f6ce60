"""scikit-learn estimators and ONNX models -> graphs that can be trained, their weights named.

Names are looked up when they are first asked for: the parts of scikit-learn that conversion knows
take longer to import than all of ortlearn. ``OPSET`` and ``IR_VERSION`` are those of converted graphs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..models import Scores as Head  # noqa: F401
    from ..preprocessing.column_reading import check_categories, read_columns
    from ..preprocessing.feature_names import check_feature_names
    from ..preprocessing.fitting import fit_clone, is_fitted
    from ..preprocessing.missing import accepts_missing, missing_columns
    from ..preprocessing.overwriting import untouched
    from ..preprocessing.refusal import check_is_a_model
    from ..preprocessing.schema import InputSchema
    from ..preprocessing.target_tags import target_tags
    from .declared import sklearn_to_onnx, write_weights
    from .decompositions import decompose_operators
    from .explanation import Explanation, explain
    from .heads import attach_head
    from .loading import is_onnx_source, load_onnx
    from .trainable import TrainableModel, source_task, to_trainable
    from .versions import IR_VERSION, OPSET, pin_versions
    from .weights.initial_weights import draw_weights
    from .weights.weight_choice import select_weights
    from .weights.weight_names import get_train_initializer, onnx_rename_weights
    from .weights.weight_selection import Weight, find_weights

__all__ = [
    "IR_VERSION",
    "OPSET",
    "Explanation",
    "InputSchema",
    "TrainableModel",
    "Weight",
    "accepts_missing",
    "attach_head",
    "check_categories",
    "check_feature_names",
    "check_is_a_model",
    "decompose_operators",
    "draw_weights",
    "explain",
    "find_weights",
    "fit_clone",
    "get_train_initializer",
    "is_fitted",
    "is_onnx_source",
    "load_onnx",
    "missing_columns",
    "onnx_rename_weights",
    "pin_versions",
    "read_columns",
    "select_weights",
    "sklearn_to_onnx",
    "source_task",
    "target_tags",
    "to_trainable",
    "untouched",
    "write_weights",
]

#: Module of each name.
_MODULES = {
    "IR_VERSION": ".versions",
    "OPSET": ".versions",
    "Explanation": ".explanation",
    "InputSchema": "..preprocessing.schema",
    "TrainableModel": ".trainable",
    "Weight": ".weights.weight_selection",
    "accepts_missing": "..preprocessing.missing",
    "attach_head": ".heads",
    "check_categories": "..preprocessing.column_reading",
    "check_feature_names": "..preprocessing.feature_names",
    "check_is_a_model": "..preprocessing.refusal",
    "decompose_operators": ".decompositions",
    "draw_weights": ".weights.initial_weights",
    "explain": ".explanation",
    "find_weights": ".weights.weight_selection",
    "fit_clone": "..preprocessing.fitting",
    "get_train_initializer": ".weights.weight_names",
    "is_fitted": "..preprocessing.fitting",
    "is_onnx_source": ".loading",
    "load_onnx": ".loading",
    "missing_columns": "..preprocessing.missing",
    "onnx_rename_weights": ".weights.weight_names",
    "pin_versions": ".versions",
    "read_columns": "..preprocessing.column_reading",
    "select_weights": ".weights.weight_choice",
    "sklearn_to_onnx": ".declared",
    "source_task": ".trainable",
    "target_tags": "..preprocessing.target_tags",
    "to_trainable": ".trainable",
    "untouched": "..preprocessing.overwriting",
    "write_weights": ".declared",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
