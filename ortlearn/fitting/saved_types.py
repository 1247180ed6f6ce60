"""Record types of a saved estimator: all classes besides plugins that its file may contain."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass, replace
from typing import Any

from ..comparison import candidates
from ..exceptions import SavedFileError
from ..graphs import TensorType
from ..losses import PerOutputLoss, PerPositionLoss, RowObjective, SignedLabelLoss
from ..models import Positions, Scores, forms
from ..models.constraints import sets, signs
from ..models.constraints.reparametrisation import Reparametrisation
from ..models.fusion import FusedClasses, FusedLinear
from ..models.others import catboost, category_encoders, lightgbm, xgboost_json
from ..models.parameters import Attribute, Parameter
from ..models.predictors import calibration, gaussian_processes, kernel_density, neighbors
from ..models.transformations import splines
from ..models.trees import boosting, forests
from ..models.trees.nodes import FusedTrees, Nodes, TreeLeaves
from ..models.writer import Members, TextSteps
from ..onnx_files.low_rank.adapters import Adapter, LoRA
from ..penalties import PerWeightPenalty
from ..preprocessing.schema import Input, InputSchema
from ..problem.configuration import Updates
from ..problem.input_validation import InputFeatures
from ..problem.problem import Problem, Targets
from ..saving.record_types import RecordType, check_type, parameters_type
from ..trainable.trainable_model import Entry, OwnLoss, TrainableModel
from ..training.graphs.first_layers import FirstLayer
from ..training.solvers.coordinates import Coordinates, Scale
from ..training.state import Best, Evaluations, TrainingState
from .fingerprint import Fingerprint
from .former_records import Position, Resumption, Window, state_of_values
from .sources.counts import Counts, SourceTotals

__all__ = ["TYPES"]

RECORDS = (
    *(Targets, Updates, InputFeatures, TrainingState, Best, Fingerprint, Counts, SourceTotals),
    *(Adapter, OwnLoss, Reparametrisation, Input, InputSchema, TensorType),
    *(sets.Simplex, sets.ClosedSimplex, sets.LogProbability, sets.Increasing, sets.Rising, sets.Triangular),
    *(signs.Positive, signs.NotNegative, Positions, FusedTrees, Nodes, FusedLinear, FusedClasses),
    *(Evaluations, Scale, FirstLayer, Members, TextSteps),
    *(candidates.KeptStart, candidates.Pull, candidates.FreshPull, candidates.RestandardisedPull),
    *(candidates.ShiftedPull, candidates.LeafEstimate, candidates.LeafMeans, candidates.Grown),
    candidates.LeafMixture,
)
#: Names in files that differ from the name of the class.
NAMES: dict[type, str] = {sets.ClosedSimplex: "Shares"}
#: Kinds of candidates in files of version 0.2.0, by the name of their center.
KINDS: dict[str, Callable[[float], candidates.Candidate]] = {
    "start": candidates.Pull,
    "fresh": candidates.FreshPull,
    "restandardised": candidates.RestandardisedPull,
    "shifted": candidates.ShiftedPull,
    "shares": candidates.LeafMeans,
}
#: Forms and accesses of parameters.
FORMS = (
    *(forms.AsIs, forms.Dense, forms.Described, forms.FactorOfInverse, forms.Kept, forms.Logarithm),
    *(forms.Reshaped, forms.Scaled, forms.Transposed, calibration.Monotonic, gaussian_processes.Residuals),
    *(neighbors.ValuesOfSamples, Attribute, TreeLeaves, boosting.PredictorLeaves, boosting.FirstScores),
    *(forests.LeafDepths, splines.BaseKnots, kernel_density.TreeSamples, lightgbm.LightGBMLeaves),
    *(xgboost_json.XGBoostLeaves, xgboost_json.XGBoostWeights, xgboost_json.XGBoostBaseScore),
    *(catboost.CatBoostLeaves, catboost.CatBoostBias, category_encoders.EncodedCategories),
)
PARAMETERS = (PerOutputLoss, PerPositionLoss, RowObjective, SignedLabelLoss, PerWeightPenalty, LoRA)


def _stored(parameter: Parameter) -> Parameter:
    """Return a parameter to store, without a form or an access of a class of another package."""
    if {type(parameter.form), type(parameter.access), type(parameter.constraint)} <= KNOWN:
        return parameter
    form = forms.Described(parameter.form.text)
    return replace(parameter, form=form, path=None, access=None, constraint=None)


def _of_weight(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a parameter for those of version 0.2.0, whose form is an expression."""
    form = RecordType(forms.Described, needed=("text",)).make({"text": values.get("form", "{}")})
    return {**values, "form": form}


def _candidate(pull: Any, center: Any, share: Any) -> candidates.Candidate:
    """Return the candidate of a record of version 0.2.0, in which the start has an infinite pull."""
    kind = KINDS.get(center) if isinstance(center, str) else None
    if not check_type(pull, float) or not check_type(share, float) or kind is None:
        raise SavedFileError(f"A record Candidate has pull {pull!r}, center {center!r} and share {share!r}.")
    found = candidates.KeptStart() if math.isinf(pull) else kind(float(pull))
    return candidates.Grown(float(share), found) if share else found


def _of_trees(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of trees for those of version 0.2.0, with the name of one table or an empty one."""
    tables = values.get("tables", ())
    return {**values, "tables": tuple(filter(None, (tables,))) if isinstance(tables, str) else tables}


GRAPH = ("model", "entry", "parameters", "trained", "original_names", "reparametrisation")
KNOWN = {type(None), *RECORDS, *FORMS}
TYPES: Mapping[str, RecordType] = {
    **{NAMES.get(cls, cls.__name__): RecordType(cls, {"TrainableModel": TrainableModel}) for cls in RECORDS},
    **{cls.__name__: RecordType(cls, names=None if is_dataclass(cls) else ()) for cls in FORMS},
    **{cls.__name__: parameters_type(cls) for cls in PARAMETERS},
    "Problem": RecordType(Problem, {"TrainableModel": TrainableModel}, needed=("trainable", "targets")),
    "TrainableModel": RecordType(
        TrainableModel, needed=GRAPH, former={"weights": "parameters", "head": "scores"}
    ),
    "Candidate": RecordType(  # of version 0.2.0
        candidates.Candidate, names=("pull", "center", "share"), build=_candidate
    ),
    "TrainingState": RecordType(TrainingState, upgraded=state_of_values),
    **{cls.__name__: RecordType(cls) for cls in (Position, Resumption, Window)},  # of version 0.2.0
    "FusedTrees": RecordType(FusedTrees, former={"table": "tables"}, upgraded=_of_trees),
    "Weight": RecordType(Parameter, upgraded=_of_weight),  # of version 0.2.0
    "Parameter": RecordType(Parameter, needed=("form",), prepared=_stored),
    "Entry": RecordType(Entry, needed=("sklearn_steps",), former={"front": "sklearn_steps"}),
    "Scores": RecordType(Scores, needed=("target_transformers",)),
    "Coordinates": RecordType(Coordinates, names=("scales", "names", "dtype"), build=Coordinates.of_parts),
}
