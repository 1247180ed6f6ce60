"""Explain which weights of a model are trained, and why others are not."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto
from sklearn.base import is_classifier

from ..exceptions import ConversionError, FallbackWarning, NoTrainableWeightError, WriteBackError
from ..losses import default_loss
from ..models import fitted_part, objective_of
from ..models.capabilities import Bags, ShiftedScores, capability_of, cross_fitting_of
from ..models.parameters import CONSTANT
from ..onnx_files.loading import is_onnx_source, read_onnx
from ..onnx_files.low_rank.adapters import LoRA
from ..onnx_files.weight_locations import weight_locations
from ..preprocessing.columns import count_samples
from ..preprocessing.estimator_checks import check_is_a_model, check_trains_one_model, is_trainer
from ..preprocessing.initial_fit import fit_clone, is_fitted
from ..quiet import quiet
from ..runtime.errors import runtime_errors
from .conversion import TrainableModel, to_trainable
from .facts import COLUMNS, OF_FILES, Row, explained_rows, rows_table, untrainable_steps

__all__ = ["Explanation", "explain"]

#: What follows from an objective that is not that of the fit.
DOUBTFUL = (
    ". By default, training starts from the model's own fit, and is kept only if samples that it was not "
    "fitted on are predicted with a lower loss and without more errors"
)


@dataclass(frozen=True)
class Explanation:
    """Table of the weights of a model, and whether each is trained.

    Attributes
    ----------
    rows : list of Row
        Rows of the table: weights of one kind, or a step of a pipeline without weights.
    problem : str
        Reason why nothing can be trained; empty if something can.
    objective : str
        Default loss and penalty, and for trees which samples train the leaves; empty if nothing can be
        trained.
    execution : str
        Number of nodes per execution provider, for a trainer fitted on a ``device`` other than the CPU.
    quantised : str
        Weights that an ONNX file stores as integers, by their types; empty if there are none.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from ortlearn.conversion import explain
    >>> X = [[0.1], [1.3]]
    >>> print(explain(Ridge().fit(X, [0.7, 3.1]), X))
    operator  weights    attribute   trainable
    MatMul    coef       coef_       yes
    Add       intercept  intercept_  yes
    minimised by default: SquaredErrorLoss() and L2Penalty(l2=0.25), as Ridge does
    """

    rows: list[Row]
    problem: str = ""
    objective: str = ""
    execution: str = ""
    quantised: str = ""

    def __str__(self) -> str:
        table = rows_table(self.rows) if self.rows else ""
        parts = [self.problem, table, self.summary, self.objective, self.execution, self.quantised]
        return "\n".join(part for part in parts if part)

    @property
    def summary(self) -> str:
        """Sizes of the trained weights and of all weights of an ONNX file; empty for an estimator."""
        rows = [row for row in self.rows if row.numbers and row.reason != CONSTANT]
        if not rows:
            return ""
        trained = [row for row in rows if row.trainable]
        numbers = " of ".join(f"{sum(row.numbers for row in part):,}" for part in (trained, rows))
        weights = " of ".join(str(sum(len(row.weights) for row in part)) for part in (trained, rows))
        return f"trained: {numbers} numbers, in {weights} weights"

    @property
    def trainable(self) -> bool:
        """Whether any weight is trained."""
        return any(row.trainable for row in self.rows)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of the table, as ``pandas.DataFrame`` takes them.

        Returns
        -------
        dict of str to list
            Values of each column, one per row of the table.
        """
        columns = [name for name in COLUMNS if name not in OF_FILES or any(row.numbers for row in self.rows)]
        return {column: [getattr(row, column) for row in self.rows] for column in columns}

    def to_frame(self) -> Any:
        """Return the table as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row per item of ``rows``.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        from sklearn.utils._optional_dependencies import check_pandas_support

        return check_pandas_support("Explanation.to_frame").DataFrame(self.to_dict())


@runtime_errors()
def explain(
    estimator_or_onnx: Any,
    X: Any = None,
    y: Any = None,
    *,
    dtype: Any = np.float32,
    weights_to_train: Any = None,
    lora: LoRA | None = None,
    straight_through: bool = False,
) -> Explanation:
    """Return which weights of a model are trained, and why others are not.

    The graph is not run. Steps that ``fit`` runs in scikit-learn, because the output of their graph differs
    on some samples, are therefore shown as parts of the graph.

    Parameters
    ----------
    estimator_or_onnx : estimator, onnx.ModelProto, bytes, str or os.PathLike
        Model to train with :class:`~ortlearn.OrtGradientOptimizer`, or a fitted trainer, whose trained model
        is explained. An unfitted estimator is cloned and fitted.
    X : array-like or frame of shape (n_samples, n_features), default=None
        Samples; required if the estimator is not fitted, or if it reads columns of several types, or text.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Labels to fit the estimator.
    dtype : dtype, default=numpy.float32
        Type of the converted model.
    weights_to_train : str or sequence of str, default=None
        Names or patterns of the weights to train, as in the estimators.
    lora : LoRA, default=None
        Low-rank adapters of an ONNX file.
    straight_through : bool, default=False
        Whether weights that an ONNX file stores as integers are trained, as in the estimators.

    Returns
    -------
    Explanation
        Table of steps, operators, weights and reasons; for an ONNX file, of nodes, with shapes and sizes.

    Raises
    ------
    ConversionError
        If X is required and missing, or if the pipeline ends without a model.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from ortlearn.conversion import explain
    >>> X, y = [[0.1, 1.7], [0.3, 1.1], [1.9, 0.3], [2.3, 0.7]], [0, 0, 1, 1]
    >>> table = explain(make_pipeline(PCA(1), LogisticRegression()), X, y)
    >>> [(row.step, row.attribute, row.trainable) for row in table.rows][:3]
    [('pca', 'mean_', False), ('pca', 'components_', False), ('logisticregression', 'coef_', True)]
    >>> print(table.rows[0].reason, "->", table.rows[0].advice)
    prepares the features of the trained step -> weights_to_train='pca.mean_' trains it

    For an ONNX file, with a pattern of weights to train:

    >>> from onnx import parser
    >>> file = parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["": 18]>
    ...     g (float[N,2] x) => (float[N,1] y) <float[2,2] v = {1, 0, 0, 1}, float[2,1] w = {1, 2}>
    ...     { [first] h = MatMul (x, v) a = Relu (h) [last] y = MatMul (a, w) }''')
    >>> explanation = explain(file, weights_to_train="last")
    >>> [(row.step, row.shapes, row.numbers, row.trainable, row.reason) for row in explanation.rows][0]
    ('first', ((2, 2),), 4, False, 'not selected by weights_to_train')
    >>> explanation.summary
    'trained: 2 of 6 numbers, in 1 of 2 weights'
    """
    source = _model_of(estimator_or_onnx)
    if not is_onnx_source(source) and not is_fitted(source):
        if X is None:
            raise ConversionError(f"{type(source).__name__} is not fitted: fit it first, or pass X (and y).")
        source = fit_clone(source, X, y)
    elif not is_onnx_source(source) and X is None and not hasattr(source, "n_features_in_"):
        raise _without_samples(source)
    try:
        with quiet(FallbackWarning):  # the table contains the reason
            trainable = to_trainable(
                source, weights_to_train, X=X, dtype=dtype, lora=lora, straight_through=straight_through
            )
    except NoTrainableWeightError as error:
        return Explanation(list(error.facts), str(error).partition("\n")[0], quantised=_quantised(source))
    except ConversionError as error:
        return Explanation(untrainable_steps(source), str(error))
    except ValueError as error:
        if X is None:  # the model reads text
            raise _without_samples(source) from error
        raise
    fitted = None if is_onnx_source(source) else source
    execution = _execution(estimator_or_onnx)
    lines = filter(None, (_objective(trainable, fitted, X), _samples(trainable, fitted)))
    return Explanation(explained_rows(trainable, fitted), "", "\n".join(lines), execution, _quantised(source))


def _without_samples(source: Any) -> ConversionError:
    """Return the error for a model whose conversion needs samples."""
    return ConversionError(
        f"X is required, as {type(source).__name__} does not store the types of the columns: call "
        "explain(model, X), or 'ortlearn explain MODEL DATA'."
    )


def _quantised(source: Any) -> str:
    """Return the weights that a file stores as integers, by their types."""
    if not is_onnx_source(source):
        return ""
    names: dict[str, list[str]] = {}
    for name, location in weight_locations(read_onnx(source)[0]).items():
        if location.quantisation is not None:
            names.setdefault(TensorProto.DataType.Name(location.tensor.data_type).lower(), []).append(name)
    return "\n".join(f"quantised to {kind}: {', '.join(found)}" for kind, found in names.items())


def _execution(source: Any) -> str:
    """Return the number of nodes per execution provider for each graph of a fitted trainer."""
    if is_onnx_source(source) or not is_trainer(source) or not is_fitted(source) or source.device == "cpu":
        return ""
    lines = []
    for graph, providers in source.get_node_providers().items():
        counts = {provider: sum(operators.values()) for provider, operators in providers.items()}
        parts = ", ".join(f"{count} nodes on {provider}" for provider, count in counts.items())
        lines.append(f"graph {graph!r} on device={source.device!r}: {parts}")
    return "\n".join(lines)


def _objective(trainable: TrainableModel, fitted: Any, X: Any) -> str:
    """Return the default loss and penalty, of one sample without X."""
    if trainable.scores is None:
        return f"minimised: the loss of the graph, {trainable.objective_tensor!r}"
    objective = None if fitted is None else objective_of(fitted, 1.0 if X is None else count_samples(X))
    name = "an ONNX file" if fitted is None else type(fitted_part(fitted)).__name__
    if objective is None:
        text = f"{default_loss(trainable.scores.task)}, no penalty, as the objective of {name} is unknown"
    else:
        reason = objective.approximate
        how = f"nearly as {name} does: {reason}" if reason else f"as {name} does"
        text = f"{objective.loss} and {objective.penalty}, {how}"
        if X is None and objective.penalty.get_params():
            text += ", its strength for one sample"
    differs = "" if objective is None or fitted is None else objective.differs or cross_fitting_of(fitted)
    text += f". Its minimum is another model than that of the fit, as {differs}" if differs else ""
    is_doubtful = fitted is not None and (objective is None or differs)
    return f"minimised by default: {text}{DOUBTFUL if is_doubtful else ''}"


def _samples(trainable: TrainableModel, fitted: Any) -> str:
    """Return which samples train the leaves of trees; empty for other models."""
    part = None if fitted is None else fitted_part(fitted)
    bags = None if part is None else capability_of(part, Bags)
    if bags is None and part is not None and capability_of(part, ShiftedScores) is not None:
        return "scores: a fit with another loss shifts them by a constant, judged by fits on other samples"
    if bags is None or not trainable.members:
        file = any(node.op_type.startswith("TreeEnsemble") for node in trainable.model.graph.node)
        return "leaves: new samples train them; trees of a file do not grow" if file else ""
    mixed = "; with another loss, class shares are mixed with constant ones" if is_classifier(part) else ""
    if not bags.sees_all(part):
        rule = "a sample trains those of the trees that have not drawn it, a new one those of all trees"
        return f"leaves: {rule}{mixed}"
    grown = "; from fresh weights, a fit with another loss grows trees that leave samples out"
    other = f"{mixed}, judged by fits on other samples" if mixed else grown
    return f"leaves: each tree has seen all samples of its fit, and new ones train them{other}"


def _model_of(source: Any) -> Any:
    """Return the trained model of a trainer, its estimator if not fitted, and other sources unchanged."""
    if is_onnx_source(source):
        return source
    if is_trainer(source):
        check_trains_one_model(source)
        with suppress(WriteBackError):  # an ONNX model, or one that cannot store the trained weights
            return source.to_sklearn() if is_fitted(source) else _model_of(source.estimator)
        return source.onnx_
    if isinstance(source, type) or not hasattr(source, "fit"):
        raise TypeError(
            "explain takes an estimator, such as LogisticRegression(), an ONNX model or the path of one, not "
            f"{source!r}."
        )
    check_is_a_model(source)
    return source
