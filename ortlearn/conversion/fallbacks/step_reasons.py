"""Why some estimators have nothing to train, and what to do instead."""

from __future__ import annotations

from typing import Any

__all__ = ["is_hopeless", "reason_of"]

_IN_FRONT = "put it in a pipeline in front of a model: it is computed once, and the model is trained"
_SMOOTH = "train a model whose output changes smoothly, such as LogisticRegression, SVC or an MLP"
_VOTES = "it counts votes of the nearest training rows, which change in steps: no gradient passes"
_NEAREST = "it gives the nearest training rows, which change in steps: no gradient passes"
_BINS = "it gives the number of a bin, which changes in steps: no gradient passes"
_CATEGORIES = "it learns categories or words, no numbers"
_COLUMNS = "it picks columns: which ones is no number to train"
_NOTHING = "it has no parameters"

#: Reason and advice by name of the class.
REASONS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("KNeighborsClassifier", "RadiusNeighborsClassifier"), (_VOTES, _SMOOTH)),
    **dict.fromkeys(("KNNImputer", "NearestNeighbors"), (_NEAREST, _IN_FRONT)),
    **dict.fromkeys(("Binarizer", "KBinsDiscretizer"), (_BINS, _IN_FRONT)),
    "RandomTreesEmbedding": (
        "it gives the number of a leaf for each tree, which changes in steps: no gradient passes",
        _IN_FRONT,
    ),
    **dict.fromkeys(
        (
            "CountVectorizer",
            "DictVectorizer",
            "FeatureHasher",
            "HashingVectorizer",
            "LabelBinarizer",
            "LabelEncoder",
            "MultiLabelBinarizer",
            "OneHotEncoder",
            "OrdinalEncoder",
        ),
        (_CATEGORIES, _IN_FRONT),
    ),
    **dict.fromkeys(
        (
            "GenericUnivariateSelect",
            "RFE",
            "RFECV",
            "SelectFdr",
            "SelectFpr",
            "SelectFromModel",
            "SelectFwe",
            "SelectKBest",
            "SelectPercentile",
            "SequentialFeatureSelector",
            "VarianceThreshold",
        ),
        (_COLUMNS, _IN_FRONT),
    ),
    **dict.fromkeys(
        ("FunctionTransformer", "MissingIndicator", "Normalizer", "PolynomialFeatures"),
        (_NOTHING, _IN_FRONT),
    ),
}


def reason_of(estimator: Any) -> tuple[str, str]:
    """Return why an estimator has nothing to train, and what to do.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator.

    Returns
    -------
    reason, advice : str
        Texts; a general one for an estimator that the table does not have.
    """
    if is_hopeless(estimator):
        return next(REASONS[kind.__name__] for kind in type(estimator).__mro__ if kind.__name__ in REASONS)
    return "none of its fitted attributes is a floating-point number of the graph", ""


def is_hopeless(estimator: Any) -> bool:
    """Tell whether an estimator is of a kind that has nothing to train."""
    return any(kind.__name__ in REASONS for kind in type(estimator).__mro__)
