"""scikit-learn estimators and ONNX models -> graphs that can be trained, their weights named."""

from .decompositions import decompose_operators
from .fitting import fit_clone, is_fitted
from .heads import Head, find_head
from .initial_weights import draw_weights
from .loading import is_onnx_source, load_onnx
from .sklearn_converter import sklearn_to_onnx
from .trainable import TrainableModel, source_task, to_trainable
from .versions import IR_VERSION, OPSET, pin_versions
from .weight_names import get_train_initializer, onnx_rename_weights
from .weight_selection import Weight, find_weights, select_weights

__all__ = [
    "IR_VERSION",
    "OPSET",
    "Head",
    "TrainableModel",
    "Weight",
    "decompose_operators",
    "draw_weights",
    "find_head",
    "find_weights",
    "fit_clone",
    "get_train_initializer",
    "is_fitted",
    "is_onnx_source",
    "load_onnx",
    "onnx_rename_weights",
    "pin_versions",
    "select_weights",
    "sklearn_to_onnx",
    "source_task",
    "to_trainable",
]
