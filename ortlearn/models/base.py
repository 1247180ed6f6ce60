"""Base class of model definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..losses import BaseLoss
from ..penalties import BasePenalty, NoPenalty
from .scores import Scores

if TYPE_CHECKING:
    from .writer import ModelWriter


@dataclass(frozen=True)
class Objective:
    """Loss and penalty of a fit: it minimises ``sum(w * l) / sum(w) + penalty``, w the sample weights.

    Attributes
    ----------
    loss : BaseLoss
        Loss l of a sample, on the score of the model's definition.
    penalty : BasePenalty
        Penalty of the parameters; none by default.
    approximate : str
        Why the penalty differs from that of the fit; empty if it does not.

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


@dataclass(frozen=True)
class Route:
    """A part of an estimator and the columns that it is given."""

    part: Any  # None if columns are passed through
    columns: Sequence[int]  # positions in X
    imputed: bool = False  # whether missing values are filled on the way
    is_member: bool = False  # whether it is one of several members that are given the same columns


class ModelDefinition:
    """Base class of definitions: the graph of a class of estimators, and which attributes are trained.

    A definition is a plugin of the group ``ortlearn.models``, under the public path of the class it is for,
    ``"sklearn.linear_model.Ridge"``. It has no state: one object serves every estimator of its classes.

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

    #: Whether its output is continuous in X. For bins, categories and text it is not, and the output of the
    #: graph is compared with that of scikit-learn on some samples.
    continuous = True
    #: Why the estimators have no trained parameters; empty if they have some.
    untrained = ""
    #: Whether ``write`` also accepts columns of several types, not only a numeric matrix.
    takes_columns = False
    #: Whether it selects columns for its parts.
    selects_columns = False
    #: Whether it passes missing values through.
    keeps_missing = False
    #: Whether it accepts labels of several columns although its tags do not say so.
    several_outputs = False
    #: Whether it may overfit few samples despite the penalty of its fit, so that early stopping is needed.
    #: None: as flexible as its children.
    flexible: bool | None = True
    #: Class of the loss whose sum over samples a fit minimises, without parameters and without a penalty.
    loss: type[BaseLoss] | None = None
    #: Parameters of the fit that its declared objective ignores.
    not_in_objective: tuple[str, ...] = ()
    #: Parameters for a quick fit on a few samples that gives the shapes of the weights, which are then drawn;
    #: None if the shapes depend on all samples.
    shape_parameters: Mapping[str, Any] | None = None
    #: Label that marks unlabelled samples, which are not trained on.
    unlabelled: Any = None
    #: Attributes that may hold the fitted inner estimator; the first existing one is used.
    inner: Sequence[str] = ()

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        """Append the graph of a fitted estimator.

        Parameters
        ----------
        op : ModelWriter
            Receives nodes and parameters.
        model : estimator
            Fitted.
        x : str or Columns
            Samples: a matrix of shape (n, n_features) and the type ``op.float_dtype``; columns of several
            kinds where ``takes_columns`` is True and X has text or categories.

        Returns
        -------
        Scores
            Names of what it computes.

        Raises
        ------
        ConversionError
            If the estimator, as it was fitted, has no form in ONNX.
        """
        raise NotImplementedError

    def fills_gaps_only(self, model: Any) -> bool:
        """Return whether a fitted transformer imputes missing values and keeps the order of columns."""
        return False

    def covers(self, model: Any) -> bool:
        """Return whether the definition supports a fitted estimator; others are converted by skl2onnx."""
        return True

    def write_inverse(self, op: ModelWriter, model: Any, y: str) -> str:
        """Append the inverse of a fitted transformer of labels, (n, k); raises an error by default."""
        raise op.fail(model, "its inverse is not known: transform labels by a scaler or a function of numpy.")

    def routes(self, model: Any, columns: Sequence[int]) -> Iterator[Route]:
        """Yield the parts and the columns of X that they receive; empty if the estimator reads X itself."""
        yield from ()

    def children(self, model: Any) -> Iterator[Any]:
        """Yield the fitted estimators in the graph of one, by default the parts of its routes."""
        yield from (route.part for route in self.routes(model, ()) if route.part is not None)

    def fitted_part(self, model: Any) -> Any:
        """Return the part of a fitted estimator whose fit training repeats: the last step of a pipeline."""
        return model

    def shape_predictions(self, model: Any, n_dimensions: int) -> Any:
        """Make a regressor of one output predict (n,) or (n, 1); return the inner regressor to adapt too."""
        return None

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        """Return loss and penalty according to the hyper-parameters of a fitted estimator.

        Parameters
        ----------
        model : estimator
            Fitted.
        total_weight : float
            Sum of the weights of the samples, those of their classes included.

        Returns
        -------
        Objective or None
            :attr:`loss` by default; None where the class minimises no sum over samples, or one that no loss
            expresses.
        """
        return None if self.loss is None else Objective(self.loss())

    def parameters_for_shapes(self, estimator: Any) -> Mapping[str, Any] | None:
        """Return :attr:`shape_parameters`, or None for an estimator whose objective depends on its fit."""
        return self.shape_parameters

    #: Standard errors by which the loss of held-out samples must decrease for a warm start to change an
    #: ensemble that grows.
    evidence = 1.0
    #: Whether samples of weight zero change nothing in a fit but its classes.
    ignores_weightless = False

    def grows(self, model: Any) -> bool:
        """Return whether a fitted ensemble can be joined with another one: its scores are sums over trees."""
        return False

    def scores_of(self, model: Any, X: Any) -> np.ndarray:
        """Return the scores of a growing ensemble, as in its graph, of shape (n, k)."""
        raise NotImplementedError

    def mixed_scores(self, scores: np.ndarray, others: np.ndarray, share: float) -> np.ndarray:
        """Return the scores that :meth:`joined` ensembles give, from the scores of each."""
        return scores + share * (others - scores)

    def joined(self, model: Any, other: Any, share: float) -> Any:
        """Return an ensemble whose scores are the weighted mean of two; ``share`` weighs the other one."""
        raise NotImplementedError

    def finish(self, model: Any) -> None:
        """Update the attributes that depend on written parameters, on a copy of the estimator."""
