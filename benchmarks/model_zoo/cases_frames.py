"""Models in models, around pipelines on the columns of a frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from benchmarks.model_zoo.case import Case

__all__ = ["cases_of_frames"]


def _columns(*others: tuple) -> Any:
    return ColumnTransformer([("numbers", StandardScaler(), ["age", "size"]), *others])


def _encoder() -> Any:
    return OneHotEncoder(handle_unknown="ignore")


def _pipeline(by_class: bool, vectorizer: Any = None) -> Any:
    """Return a pipeline on columns of numbers and texts."""
    words = ("words", vectorizer, "text") if vectorizer else ("kinds", _encoder(), ["kind"])
    return make_pipeline(_columns(words), LogisticRegression() if by_class else Ridge())


#: Models by data set, then by name.
_MODELS: dict[str, dict[str, Callable[[], Any]]] = {
    "frame": {
        "fixed_threshold_of_frames": lambda: FixedThresholdClassifier(_pipeline(True), threshold=0.4),
        "tuned_threshold_of_frames": lambda: TunedThresholdClassifierCV(_pipeline(True), cv=3),
    },
    "frame_classes": {
        "voting_of_frames": lambda: VotingClassifier(
            [("linear", _pipeline(True)), ("words", _pipeline(True, TfidfVectorizer()))], voting="soft"
        ),
        "stacking_of_frames": lambda: StackingClassifier([("linear", _pipeline(True))], cv=3),
        "calibrated_frames": lambda: CalibratedClassifierCV(_pipeline(True), cv=2),
        "bagging_of_frames": lambda: BaggingClassifier(
            make_pipeline(
                ColumnTransformer([("numbers", StandardScaler(), [0, 1]), ("kinds", _encoder(), [2])]),
                LogisticRegression(),
            ),
            n_estimators=3,
            random_state=0,
        ),
        "one_vs_rest_of_frames": lambda: OneVsRestClassifier(_pipeline(True)),
        "code_of_frames": lambda: OutputCodeClassifier(_pipeline(True), random_state=0),
        "search_of_frames": lambda: GridSearchCV(
            _pipeline(True), {"logisticregression__C": [0.1, 1.0]}, cv=2
        ),
    },
    "frame_outputs": {
        "one_regressor_per_output_of_frames": lambda: MultiOutputRegressor(_pipeline(False)),
    },
    "frame_target": {
        "voting_of_frames": lambda: VotingRegressor(
            [
                ("linear", _pipeline(False)),
                (
                    "tree",
                    make_pipeline(
                        _columns(("kinds", OrdinalEncoder(), ["kind"])),
                        RandomForestRegressor(4, max_depth=4, random_state=0),
                    ),
                ),
            ]
        ),
        "transformed_target_of_frames": lambda: TransformedTargetRegressor(
            _pipeline(False), transformer=StandardScaler()
        ),
    },
}


def cases_of_frames() -> Iterator[Case]:
    """Yield models in models that take frames."""
    for data, models in _MODELS.items():
        for name, make in models.items():
            yield Case(f"{name}:{data}", "pipeline", data, make)
