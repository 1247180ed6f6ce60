"""scikit-learn estimators and ONNX models -> graphs that can be trained, their weights named."""

from .column_reading import check_categories, read_columns
from .decompositions import decompose_operators
from .explanation import Explanation, explain
from .fallback import convert_with_fallback
from .fitting import fit_clone, is_fitted
from .heads import Head, attach_head
from .initial_weights import draw_weights
from .inputs import InputSchema
from .learned_parameters import Match, learned_parameters
from .loading import is_onnx_source, load_onnx
from .missing import accepts_missing, missing_columns
from .sklearn_converter import sklearn_to_onnx
from .trainable import TrainableModel, source_task, to_trainable
from .versions import IR_VERSION, OPSET, pin_versions
from .weight_choice import select_weights
from .weight_names import get_train_initializer, onnx_rename_weights
from .weight_selection import Weight, find_weights

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
    "to_trainable",
]
