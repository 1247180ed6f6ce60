"""Multi-layer perceptrons and Boltzmann machines."""

from collections.abc import Callable
from typing import Any

from ... import losses
from ..base import ModelDefinition, Objective
from ..forms import Reshaped, Transposed
from ..objectives import elastic
from ..scores import Scores, binary_classes, class_scores, indicator, regression, transformation
from ..writer import ModelWriter

ROW = Reshaped((1, -1))  # intercepts of a layer
#: One epoch at a tiny rate, which does not diverge on unscaled data.
ONE_EPOCH = {"max_iter": 1, "early_stopping": False, "solver": "sgd", "learning_rate_init": 1e-12}
ONE_EPOCH["verbose"] = False
ACTIVATIONS: dict[str, Callable[[ModelWriter, str], str]] = {
    "identity": lambda op, x: x,
    "logistic": lambda op, x: op.Sigmoid(x),
    "relu": lambda op, x: op.Relu(x),
    "tanh": lambda op, x: op.Tanh(x),
}


class PerceptronDefinition(ModelDefinition):
    """MLPRegressor and MLPClassifier."""

    # A step minimises sum(w * l) / W + alpha / (2 W) * |coefs|^2 over its batch, W the sum of its weights
    # (user guide of scikit-learn, "Neural network models").
    shape_parameters = ONE_EPOCH
    several_outputs = True

    def objective(self, model: Any, total_weight: float) -> Objective | None:
        if model.solver != "lbfgs":
            # the sum of the weights of a batch, with weights of mean one
            size = 200 if model.batch_size == "auto" else model.batch_size
            total_weight = min(float(size), total_weight)
        penalty = elastic(l2=model.alpha / (2 * total_weight))
        if hasattr(model, "classes_"):
            return Objective(losses.LogLoss(), penalty)
        poisson = model.loss == "poisson"
        return Objective(losses.PoissonLoss() if poisson else losses.SquaredErrorLoss(), penalty)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        for layer in range(len(model.coefs_)):
            if layer:
                x = ACTIVATIONS[model.activation](op, x)
            coefs = op.parameter(model, "coefs_", index=layer, role="weight", drawn=True)
            options: Any = {"index": layer, "form": ROW, "role": "intercept", "drawn": True}
            x = op.Add(op.MatMul(x, coefs), op.parameter(model, "intercepts_", **options))
        if not hasattr(model, "classes_"):
            link = "log" if model.out_activation_ == "exp" else "identity"
            return regression(op, x, model.n_outputs_, link)
        if model._label_binarizer.y_type_.startswith("multilabel"):
            return indicator(op, x, model.classes_, probabilities=op.Sigmoid(x))
        if model.out_activation_ == "logistic":
            return binary_classes(op, x, model.classes_)
        return class_scores(op, x, model.classes_)


class BoltzmannMachineDefinition(ModelDefinition):
    """BernoulliRBM: ``sigmoid(x @ components_.T + intercept_hidden_)``, without an objective."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        components = op.parameter(model, "components_", form=Transposed(), role="weight", drawn=True)
        intercept = op.parameter(model, "intercept_hidden_", role="intercept", drawn=True)
        hidden = op.Sigmoid(op.Add(op.MatMul(x, components), intercept))
        return transformation(op, hidden, len(model.components_))
