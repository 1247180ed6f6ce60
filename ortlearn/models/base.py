"""Base class of model definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..losses import BaseLoss
from ..penalties import BasePenalty, NoPenalty
from .scores import Scores


@dataclass(frozen=True)
class Objective:
    """Objective ``sum(w * l) / sum(w) + penalty`` that a fit minimises, with sample weights w.

    Attributes
    ----------
    loss : BaseLoss
        Loss l of a sample, computed from the score that the definition writes.
    penalty : BasePenalty
        Penalty on the parameters; no penalty by default.
    approximate : str
        Reason why the penalty differs from that of the fit; empty if it is the same.
    differs : str
        Reason why the minimum is another model than that of the fit; empty if it is the same. Such an
        objective alone neither starts nor judges a training by default.

    Examples
    --------
    >>> from ortlearn.losses import HuberLoss
    >>> from ortlearn.models import Objective
    >>> from ortlearn.penalties import L2Penalty
    >>> Objective(HuberLoss(), L2Penalty(0.1))
    Objective(loss=HuberLoss(), penalty=L2Penalty(l2=0.1))
    """

    loss: BaseLoss
    penalty: BasePenalty = field(default_factory=NoPenalty)
    approximate: str = field(default="", repr=False)
    differs: str = field(default="", repr=False)


@dataclass(frozen=True)
class Route:
    """A part of an estimator and the columns it receives."""

    part: Any  # None if the columns are passed through
    columns: Sequence[int]  # positions in X
    imputed: bool = False  # whether missing values are imputed before
    is_member: bool = False  # whether the part is a member of an ensemble on the same columns


class ModelDefinition:
    """Base class of model definitions: the graph of a class of estimators and its trained attributes.

    A definition is a plugin of the group ``ortlearn.models``, registered under the public path of the
    estimator class, such as ``"sklearn.linear_model.Ridge"``. It is stateless: one instance is shared.

    Examples
    --------
    >>> from ortlearn.models import ModelDefinition
    >>> from ortlearn.models.forms import Transposed
    >>> from ortlearn.models.scores import regression
    >>> class RidgeDefinition(ModelDefinition):
    ...     def write(self, op, model, x):
    ...         coef = op.parameter(model, "coef_", form=Transposed(), role="weight")
    ...         return regression(op, op.Add(op.MatMul(x, coef), op.parameter(model, "intercept_")))
    """

    #: Whether the output is continuous in the input. The output of other graphs (bins, categories, text) is
    #: compared with that of scikit-learn on some samples.
    continuous = True
    #: Reason why the estimators have no trainable parameters; empty if they have some.
    untrained = ""
    #: Whether ``write`` accepts columns of several types besides numeric matrices.
    takes_columns = False
    #: Whether the estimator selects the columns of its parts.
    selects_columns = False
    #: Whether the graph computes the same floating-point numbers as scikit-learn, if its children do.
    exact = False
    #: Whether its parts receive the samples, each in the type that it needs: it casts none itself.
    passes_samples = False
    #: Whether missing values are passed through.
    keeps_missing = False
    #: Whether multi-output labels are supported, even if the estimator tags do not say so.
    several_outputs = False
    #: Whether the estimator can overfit few samples despite the penalty of its fit. None: if a child can.
    flexible: bool | None = True
    #: Class of the loss that a fit minimises, if it has no parameters and the fit has no penalty.
    loss: type[BaseLoss] | None = None
    #: Parameters of the estimator that :meth:`objective` does not represent.
    not_in_objective: tuple[str, ...] = ()
    #: Parameters for a quick fit on few samples that determines the shapes of the weights, which are then
    #: initialized at random. None if the shapes depend on all samples.
    shape_parameters: Mapping[str, Any] | None = None
    #: Label that marks unlabelled samples, which are ignored in training.
    unlabelled: Any = None
    #: Names of attributes; the first one present holds the estimator that a wrapper delegates to.
    inner: Sequence[str] = ()
    #: Whether a fit of that estimator replaces one of the wrapper, as for a search or a frozen estimator.
    wraps = False
    #: Objects of :mod:`ortlearn.models.capabilities`, at most one of each type.
    capabilities: Sequence[Any] = ()

    def write(self, op: Any, model: Any, x: Any) -> Scores:
        """Append the graph of a fitted estimator.

        Parameters
        ----------
        op : ModelWriter
            Receives nodes and parameters.
        model : estimator
            Fitted.
        x : str or Columns
            Samples: a matrix of shape (n, n_features) and type ``op.sample_dtype``, or columns of several
            types if ``takes_columns`` is True and X has text or categories.

        Returns
        -------
        Scores
            Names of the computed tensors.

        Raises
        ------
        ConversionError
            If the fitted estimator cannot be written as ONNX.
        """
        raise NotImplementedError

    def fills_gaps_only(self, model: Any) -> bool:
        """Return whether a fitted transformer only imputes missing values and keeps all columns in order."""
        return False

    def covers(self, model: Any) -> bool:
        """Return whether the definition supports a fitted estimator; others are converted by skl2onnx."""
        return True

    def write_inverse(self, op: Any, model: Any, y: str) -> str:
        """Append the inverse of a fitted label transformer, of shape (n, k); raise an error by default."""
        raise op.fail(model, "its inverse is not supported: use a scaler or a NumPy function for labels.")

    def routes(self, model: Any, columns: Sequence[int]) -> Iterator[Route]:
        """Yield the parts and the positions in X of their columns; nothing if the estimator has no parts."""
        yield from ()

    def children(self, model: Any) -> Iterator[Any]:
        """Yield the fitted estimators that a graph contains, by default the parts of :meth:`routes`."""
        yield from (route.part for route in self.routes(model, ()) if route.part is not None)

    def fitted_part(self, model: Any) -> Any:
        """Return the part of a fitted estimator that is trained, such as the last step of a pipeline."""
        return model

    def inner_labels(self, model: Any, y: Any) -> Any:
        """Return the labels to which a fitted wrapper fits the estimator inside."""
        return y

    def shape_predictions(self, model: Any, n_dimensions: int) -> Any:
        """Make a regressor predict shape (n,) or (n, 1); return the inner regressor to set too, or None."""
        return None

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        """Return the loss and the penalty that a fitted estimator minimises.

        Parameters
        ----------
        model : estimator
            Fitted.
        total_weight : float
            Sum of the sample weights, multiplied by the class weights.

        Returns
        -------
        Objective or None
            :attr:`loss` by default; None if the estimator minimises no sum of a supported loss over samples.
        """
        return None if self.loss is None else Objective(self.loss())

    def needs_float64(self, model: Any, computed: bool) -> bool | None:
        """Return whether a fitted estimator compares float64 samples with thresholds; None: if a child does.

        ``computed`` is whether steps before it compute the samples. Only the samples of this part keep their
        type: a form that is ``wide`` needs float64 in the whole graph.
        """
        return None

    def parameters_for_shapes(self, estimator: Any) -> Mapping[str, Any] | None:
        """Return :attr:`shape_parameters`, or None if the objective of the estimator depends on its fit."""
        return self.shape_parameters

    def has_own_score(self, model: Any) -> bool:
        """Return whether the score of a fitted estimator is not computed from the outputs of its graph.

        The score of a wrapper is then that of ``to_sklearn()``. By default it is the accuracy or R2 of the
        predictions, or for unsupervised models the negative loss, as in most estimators.
        """
        return False

    def finish(self, model: Any) -> None:
        """Update attributes that depend on the trained parameters, in place on a copy of the estimator."""
