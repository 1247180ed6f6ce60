"""Record types of a saved estimator: all classes besides plugins that its file may contain."""

from __future__ import annotations

from collections.abc import Mapping

from ..conversion.trainable_model import Entry, OwnLoss, TrainableModel
from ..graphs import TensorType
from ..losses import PerOutputLoss, PerPositionLoss, RowObjective, SignedLabelLoss
from ..models import Positions, Scores
from ..models.constraints import sets, signs
from ..models.constraints.reparametrisation import Reparametrisation
from ..models.fusion import FusedClasses, FusedLinear
from ..models.trees.nodes import FusedTrees, Nodes
from ..models.weight import Weight
from ..onnx_files.adapters import Adapter, LoRA
from ..penalties import PerWeightPenalty
from ..preprocessing.schema import Input, InputSchema
from ..saving.record_types import RecordType, parameters_type
from ..training.coordinates import Coordinates, Scale
from ..training.first_layers import FirstLayer
from ..training.positions import Evaluations, Position
from .adaptation import Candidate
from .configuration import Updates
from .input_validation import InputFeatures
from .problem import Problem, Targets
from .resumption import Resumption
from .source_counts import Counts, Whole
from .training_state import TrainingState, Window

__all__ = ["TYPES"]

RECORDS = (
    *(Problem, Targets, Updates, InputFeatures, TrainingState, Window, Resumption, Candidate, Counts, Whole),
    *(TrainableModel, Adapter, OwnLoss, Weight, Reparametrisation, Input, InputSchema, TensorType),
    *(sets.Simplex, sets.Shares, sets.LogProbability, sets.Increasing, sets.Rising, sets.Triangular),
    *(signs.Positive, signs.NotNegative, Positions, FusedTrees, Nodes, FusedLinear, FusedClasses),
    *(Position, Evaluations, Scale, FirstLayer),
)
PARAMETERS = (PerOutputLoss, PerPositionLoss, RowObjective, SignedLabelLoss, PerWeightPenalty, LoRA)
TYPES: Mapping[str, RecordType] = {
    **{cls.__name__: RecordType(cls, {"TrainableModel": TrainableModel}) for cls in RECORDS},
    **{cls.__name__: parameters_type(cls) for cls in PARAMETERS},
    "Entry": RecordType(Entry, needed=("front",)),
    "Scores": RecordType(Scores, needed=("target_transformers",)),
    "Coordinates": RecordType(Coordinates, names=("scales", "names", "dtype"), build=Coordinates.of_parts),
}
