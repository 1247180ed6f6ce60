"""Cases of every estimator of scikit-learn, made from its tags."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial

from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.utils import get_tags
from sklearn.utils.discovery import all_estimators

from benchmarks.model_zoo.case import Case
from benchmarks.model_zoo.construct import construct, required, with_defaults
from benchmarks.model_zoo.data import load

__all__ = ["NO_CASE", "cases_of_all", "estimator_classes"]

_COVARIANCE = "estimates a covariance matrix: it neither predicts nor transforms"
#: Estimators without a case, and why.
NO_CASE = {
    **dict.fromkeys(
        ("AgglomerativeClustering", "DBSCAN", "HDBSCAN", "OPTICS", "SpectralClustering"),
        "has no predict: it only clusters the samples of fit",
    ),
    **dict.fromkeys(
        ("SpectralBiclustering", "SpectralCoclustering"),
        "has no predict: it only clusters rows and columns of the matrix of fit",
    ),
    "DictVectorizer": "its samples are dictionaries, which ONNX does not support as inputs",
    "EmpiricalCovariance": _COVARIANCE,
    "GraphicalLasso": _COVARIANCE,
    "GraphicalLassoCV": _COVARIANCE,
    "LabelBinarizer": "transforms labels, not samples",
    "LabelEncoder": "transforms labels, not samples",
    "LedoitWolf": _COVARIANCE,
    "MinCovDet": _COVARIANCE,
    "MultiLabelBinarizer": "transforms labels, not samples",
    "OAS": _COVARIANCE,
    "PatchExtractor": "has no parameters, and returns several samples per image; it is converted to ONNX",
    "ShrunkCovariance": _COVARIANCE,
}
_KINDS = {
    "classifier": "classifier",
    "regressor": "regressor",
    "clusterer": "clusterer",
    "density_estimator": "density",
    "outlier_detector": "outliers",
}
#: Wrappers that predict classes or numbers, as what they wrap does.
_EITHER = {"FrozenEstimator", "GridSearchCV", "Pipeline", "RandomizedSearchCV"}
_SELECTORS = {"RFE", "RFECV", "SelectFromModel", "SequentialFeatureSelector"}
_SENTENCES = {"CountVectorizer", "HashingVectorizer", "TfidfVectorizer"}
_WORDS = {"FeatureHasher"}
_GAPS = {"IterativeImputer", "KNNImputer", "MissingIndicator", "SimpleImputer"}
_ABOVE_A_BOUND = {"SkewedChi2Sampler"}
_COUNTS = {"LatentDirichletAllocation", "TfidfTransformer"}


def estimator_classes() -> dict[str, type]:
    """Return every estimator of the installed scikit-learn by name."""
    return dict(all_estimators())


def cases_of_all() -> Iterator[Case]:
    """Yield the cases of every estimator; the first one of each is its main case."""
    for name, cls in estimator_classes().items():
        if name in NO_CASE:
            continue
        for index, (variant, kind, data, by_class) in enumerate(_variants(name, cls)):
            make = partial(construct, cls, by_class=by_class)
            if cls is FrozenEstimator:
                make = partial(_frozen, data, by_class)
            plain = make if cls is FrozenEstimator else partial(with_defaults, cls, by_class)
            main = index == 0
            yield Case(f"{name}:{variant}", kind, data, make, main, plain if main else None)


def _variants(name: str, cls: type) -> Iterator[tuple[str, str, str, bool]]:
    """Yield variant, kind, data, and whether the wrapped estimator is a classifier."""
    if name in _EITHER:
        yield "classes", "classifier", "classes", True
        yield "binary", "classifier", "binary", True
        yield "regression", "regressor", "regression", False
        return
    if name in _SELECTORS:
        yield "binary", "transformer", "binary", True
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # estimators that scikit-learn is about to drop
        tags = get_tags(construct(cls, by_class=_wraps_classifier(name, cls)))
    other = "transformer" if hasattr(cls, "transform") else "other"
    other = "density" if name == "KernelDensity" else other  # its tags do not tell
    kind = _KINDS.get(str(tags.estimator_type), other)
    variants = {"classifier": _classifier, "regressor": _regressor}.get(kind, _unsupervised)
    for variant, data in variants(name, cls, tags):
        yield variant, kind, data, kind == "classifier"


def _frozen(data: str, by_class: bool) -> FrozenEstimator:
    """Return a frozen estimator, which is fitted before it is frozen."""
    return FrozenEstimator((LogisticRegression() if by_class else Ridge()).fit(*load(data)))


def _wraps_classifier(name: str, cls: type) -> bool:
    return bool(required(cls)) and "Class" in name


def _classifier(name: str, cls: type, tags) -> Iterator[tuple[str, str]]:
    suffix = "_positive" if tags.input_tags.positive_only else ""
    suffix = "_categories" if tags.input_tags.categorical else suffix
    if cls in (MultiOutputClassifier, ClassifierChain):
        yield "labels", "labels"
        return
    yield "binary", "binary" + suffix
    if name not in ("FixedThresholdClassifier", "TunedThresholdClassifierCV"):
        yield "classes", "classes" + suffix
    if tags.classifier_tags.multi_label or name == "OneVsRestClassifier":
        yield "labels", "labels"


def _regressor(name: str, cls: type, tags) -> Iterator[tuple[str, str]]:
    several = tags.target_tags.multi_output
    if tags.input_tags.one_d_array:
        yield "regression", "one_column"
        return
    if tags.target_tags.positive_only:
        yield "regression", "regression_above_zero"
        return
    if tags.target_tags.single_output and name != "RegressorChain":
        yield "regression", "regression"
    if several or name in ("MLPRegressor", "MultiOutputRegressor", "RegressorChain"):
        yield "outputs", "regression_outputs"


def _unsupervised(name: str, cls: type, tags) -> Iterator[tuple[str, str]]:
    if name in _SENTENCES:
        yield "sentences", "sentences"
    elif name in _WORDS:
        yield "words", "words"
    elif name in _GAPS:
        yield "gaps", "regression_gaps"
    elif name in _COUNTS:
        yield "counts", "counts"
    elif tags.input_tags.pairwise:
        yield "kernel", "regression_kernel"
    elif tags.input_tags.positive_only or name in _ABOVE_A_BOUND:
        yield "rows", "regression_positive"
    elif tags.input_tags.categorical:
        yield "categories", "binary_categories"
    elif tags.target_tags.required:
        yield "binary", "binary"
    else:
        yield "rows", "regression"
