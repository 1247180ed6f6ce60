"""Model definitions: the graph that each class of estimators computes, and its parameters.

A definition writes the graph of an estimator and declares its parameters; later stages read this
declaration. Definitions are plugins of the group ``ortlearn.models``.
"""

from .base import ModelDefinition, Objective
from .categories import category_numbers
from .label_positions import Positions
from .objectives import is_flexible, objective_of
from .parameters import Access, Parameter, write_parameters
from .registry import (
    all_covered,
    definition_of,
    find_definition,
    fitted_part,
    has_own_score,
    public_path,
    unwrapped,
)
from .scores import Scores
from .writer import ModelWriter
from .written_model import WrittenModel, write_model

__all__ = [
    "Access",
    "ModelDefinition",
    "ModelWriter",
    "Objective",
    "Parameter",
    "Positions",
    "Scores",
    "WrittenModel",
    "all_covered",
    "category_numbers",
    "definition_of",
    "find_definition",
    "fitted_part",
    "has_own_score",
    "is_flexible",
    "objective_of",
    "public_path",
    "unwrapped",
    "write_model",
    "write_parameters",
]
