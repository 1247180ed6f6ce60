"""scikit-learn estimators and ONNX models -> graphs that can be trained, their weights named.

Names are looked up when they are first asked for: the parts of scikit-learn that conversion knows
take longer to import than all of ortlearn. ``OPSET`` and ``IR_VERSION`` are those of converted graphs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .decompositions import decompose_operators
    from .explanation import Explanation, explain
    from .fallbacks.fallback import convert_with_fallback
    from .heads import Head, attach_head
    from .inputs.column_reading import check_categories, read_columns
    from .inputs.feature_names import check_feature_names
    from .inputs.inputs import InputSchema
    from .inputs.missing import accepts_missing, missing_columns
    from .loading import is_onnx_source, load_onnx
    from .preparation.fitting import fit_clone, is_fitted
    from .preparation.overwriting import untouched
    from .preparation.refusal import check_is_a_model
    from .preparation.target_tags import target_tags
    from .sklearn_converter import sklearn_to_onnx
    from .trainable import TrainableModel, source_task, to_trainable
    from .versions import IR_VERSION, OPSET, pin_versions
    from .weights.initial_weights import draw_weights
    from .weights.learned_parameters import Match, learned_parameters
    from .weights.weight_choice import select_weights
    from .weights.weight_names import get_train_initializer, onnx_rename_weights
    from .weights.weight_selection import Weight, find_weights
    from .write_back.writing import write_weights

__all__ = [
    "IR_VERSION",
    "OPSET",
    "Explanation",
    "Head",
    "InputSchema",
    "Match",
    "TrainableModel",
    "Weight",
    "accepts_missing",
    "attach_head",
    "check_categories",
    "check_feature_names",
    "check_is_a_model",
    "convert_with_fallback",
    "decompose_operators",
    "draw_weights",
    "explain",
    "find_weights",
    "fit_clone",
    "get_train_initializer",
    "is_fitted",
    "is_onnx_source",
    "learned_parameters",
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
    "Head": ".heads",
    "InputSchema": ".inputs.inputs",
    "Match": ".weights.learned_parameters",
    "TrainableModel": ".trainable",
    "Weight": ".weights.weight_selection",
    "accepts_missing": ".inputs.missing",
    "attach_head": ".heads",
    "check_categories": ".inputs.column_reading",
    "check_feature_names": ".inputs.feature_names",
    "check_is_a_model": ".preparation.refusal",
    "convert_with_fallback": ".fallbacks.fallback",
    "decompose_operators": ".decompositions",
    "draw_weights": ".weights.initial_weights",
    "explain": ".explanation",
    "find_weights": ".weights.weight_selection",
    "fit_clone": ".preparation.fitting",
    "get_train_initializer": ".weights.weight_names",
    "is_fitted": ".preparation.fitting",
    "is_onnx_source": ".loading",
    "learned_parameters": ".weights.learned_parameters",
    "load_onnx": ".loading",
    "missing_columns": ".inputs.missing",
    "onnx_rename_weights": ".weights.weight_names",
    "pin_versions": ".versions",
    "read_columns": ".inputs.column_reading",
    "select_weights": ".weights.weight_choice",
    "sklearn_to_onnx": ".sklearn_converter",
    "source_task": ".trainable",
    "target_tags": ".preparation.target_tags",
    "to_trainable": ".trainable",
    "untouched": ".preparation.overwriting",
    "write_weights": ".write_back.writing",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
