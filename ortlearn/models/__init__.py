"""Model definitions: what each class of estimators computes, and which of its numbers are parameters.

A definition writes the graph of an estimator and declares its parameters; every later stage reads what it
declared. Definitions are plugins of the group ``ortlearn.models``.
"""

from .base import ModelDefinition
from .document import WrittenModel, write_model
from .objectives import Objective, objective_of
from .parameters import Parameter
from .registry import all_covered, definition_of, find_definition, is_continuous, unwrapped
from .scores import Scores
from .write_back import write_parameters
from .writer import ModelWriter

__all__ = [
    "ModelDefinition",
    "ModelWriter",
    "Objective",
    "Parameter",
    "Scores",
    "WrittenModel",
    "all_covered",
    "definition_of",
    "find_definition",
    "is_continuous",
    "objective_of",
    "unwrapped",
    "write_model",
    "write_parameters",
]
