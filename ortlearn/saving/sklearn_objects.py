"""Write and read scikit-learn objects as skops files, without running code of the file."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from ..exceptions import SavedFileError

__all__ = ["NotTrusted", "dump", "load"]

#: Types in fitted scikit-learn models that skops does not trust by default: classes of numbers and
#: parameters, and numerical functions. The function of a partial is checked separately.
TRUSTED = (
    "functools.partial",
    "numpy.dtype",
    "numpy.mean",
    "scipy.interpolate._bsplines.BSpline",
    "scipy.interpolate._bsplines._BSpline",
    "scipy._lib.array_api_compat.numpy._aliases.asarray",  # in splines of scipy before 1.18
    "scipy.sparse._csr.csr_matrix",
    *(f"sklearn.calibration.{name}" for name in ("_CalibratedClassifier", "_SigmoidCalibration")),
    "sklearn.calibration._TemperatureScaling",
    "sklearn.cluster._bisect_k_means._BisectingTree",
    *(f"sklearn.cluster._kmeans._kmeans_single_{name}" for name in ("elkan", "lloyd")),
    "sklearn.compose._column_transformer._RemainderColsList",  # scikit-learn 1.6: names of columns
    "sklearn.feature_selection._univariate_selection.f_classif",
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    *(
        f"sklearn.gaussian_process.kernels.{name}"
        for name in ("ConstantKernel", "DotProduct", "ExpSineSquared", "Matern", "Product", "RBF")
    ),
    *(f"sklearn.gaussian_process.kernels.{name}" for name in ("RationalQuadratic", "Sum", "WhiteKernel")),
    *(f"sklearn.impute._iterative.{name}" for name in ("IterativeImputer", "_ImputerTriplet")),
    *(f"sklearn._loss.loss.{name}" for name in ("HalfTweedieLoss", "HalfTweedieLossIdentity")),
    *(f"sklearn.metrics._dist_metrics.{name}Distance64" for name in ("Chebyshev", "Euclidean", "Manhattan")),
    *(f"sklearn.metrics._scorer.{name}" for name in ("_CurveScorer", "_PassthroughScorer", "_Scorer")),
    "sklearn.metrics._classification.balanced_accuracy_score",
    *(f"sklearn.model_selection._split.{name}" for name in ("KFold", "StratifiedKFold")),
    "sklearn.multiclass._ConstantPredictor",
    *(f"sklearn.neural_network._stochastic_optimizers.{name}" for name in ("AdamOptimizer", "SGDOptimizer")),
    "sklearn.utils._bunch.Bunch",
    "sklearn.utils.validation.check_array",
    *(f"sklearn.utils._metadata_requests.{name}" for name in ("MetadataRequest", "MethodMetadataRequest")),
)

#: Classes that access memory by indices, which ``sklearn_memory`` checks after loading.
CHECKED = frozenset(
    {
        "sklearn.tree._tree.Tree",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    }
)


class NotTrusted(Exception):
    """A model has ``types`` that neither skops nor the caller trusts, or skops is not installed."""

    def __init__(self, message: str, types: Sequence[str] = ()):
        super().__init__(message)
        self.types = types


def _skops() -> ModuleType | None:
    try:
        return import_module("skops.io")
    except ImportError:
        return None


def dump(estimator: Any) -> tuple[bytes | None, str]:
    """Return the bytes that skops writes for an object, or None and the reason for a failure."""
    skops = _skops()
    if skops is None:
        return None, "skops is not installed (pip install skops)"
    try:
        return skops.dumps(estimator), ""
    except Exception as error:  # methods of the object may raise any error
        return None, f"skops cannot write it ({type(error).__name__}: {error})"


def load(content: bytes, trusted: Sequence[str] = ()) -> Any:
    """Return the object of a skops file."""
    skops = _skops()
    if skops is None:
        raise NotTrusted("skops is required to read it (pip install skops)")
    try:
        found = skops.get_untrusted_types(data=content)
        unknown = sorted({*found} - {*trusted, *TRUSTED, *CHECKED})
        if unknown:
            raise NotTrusted(
                "it has types that are loaded only if you declare them safe: "
                f"load(path, trusted={unknown!r})",
                unknown,
            )
        loaded = skops.loads(content, trusted=found)
        # Called for every file, since some versions of skops trust trees by default.
        from .sklearn_memory import check_memory

        check_memory(loaded, content, CHECKED)
        return loaded
    except NotTrusted:
        raise
    except Exception as error:  # a damaged archive may raise any error
        raise SavedFileError(f"A scikit-learn model in the file cannot be read: {error}") from error
