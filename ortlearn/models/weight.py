"""A floating-point initializer of a graph, as every later stage sees it."""

import re
from dataclasses import dataclass

CONSTANT = "constant of a formula"  # why a number of a formula is not trained
#: Why the mean and the variance of a batch normalization are not trained.
STATISTIC = "running statistic of a batch normalization, which is no weight"
#: Why a weight with a low-rank adapter is not trained.
ADAPTED = "stays as it is: its adapter is trained"
#: A name in brackets, and the attribute it is looked up in: none for a pipeline or a union.
STEP = re.compile(r"(\w*)\['([^']*)'\]")


@dataclass(frozen=True)
class Weight:
    """A floating-point initializer and what the graph does with it.

    Attributes
    ----------
    name : str
        Name of the initializer.
    role : {"weight", "intercept", "scale", "table", "other"}
        A factor of a product, what is added to one, a factor or divisor, a table whose rows are
        looked up, or something else.
    learned : bool
        Whether it is trained by default.
    fans : tuple of int
        Numbers of inputs and outputs of a product's weight, (1, 1) for others.
    attribute : str or None
        Expression of the fitted attribute it holds, ``coef_`` or ``estimators_[3].tree_.value``, from
        the step on; None where it is not known.
    step : str or None
        Step of the pipeline it belongs to; None where there is none, or where it is not known.
    drawn : bool
        Whether a training from fresh weights draws it anew, rather than start from its value.
    reason : str
        Why it is not trained by default; empty where it is, or where the graph alone tells.
    form : str
        What the converter made of the attribute, ``{}`` in its place: ``"log({})"``, ``"1 / {}"``.
    operators, nodes : tuple of str
        Operators and names of the nodes that compute with it, in a graph from an ONNX file.
    """

    name: str
    role: str
    learned: bool
    fans: tuple[int, int] = (1, 1)
    attribute: str | None = None
    step: str | None = None
    drawn: bool = True
    reason: str = ""
    form: str = "{}"
    operators: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()

    @property
    def expression(self) -> str | None:
        """Expression of its values: ``coef_``, ``log(weights_)``; None if unknown."""
        return None if self.attribute is None else self.form.format(self.attribute)

    @property
    def origin(self) -> str:
        """Origin of the weight, ``"ridge: coef_"``; empty if unknown."""
        return ": ".join(part for part in (self.step, self.expression) if part)

    @property
    def steps(self) -> list[str]:
        """Names of the steps it is part of, one in another joined by ``__`` as in ``set_params``."""
        inner = STEP.findall(self.attribute or "")
        chain = [self.step] if self.step else []
        chain += [name for owner, name in inner if owner in ("", "named_transformers_")]
        return ["__".join(chain[i:j]) for i in range(len(chain)) for j in range(i + 1, len(chain) + 1)]

    def places(self, original: str) -> list[str]:
        """Return the operators, nodes and layers that read the weight of a file.

        Parameters
        ----------
        original : str
            Name of the weight in the model it came from.

        Returns
        -------
        list of str
            Names.
        """
        # layers are prefixes of node names, /encoder/layer.0/query/MatMul, and of the name of the weight,
        # encoder.layer.0.query.weight, as exporters write them
        if not self.operators:
            return []
        chains = [("/", node.strip("/").split("/")) for node in self.nodes] + [(".", original.split("."))]
        layers = [sign.join(parts[:i]) for sign, parts in chains for i in range(1, len(parts))]
        return list(dict.fromkeys([*self.operators, *self.nodes, *layers]))

    def names(self, original: str) -> list[str]:
        """Return the names of the weight in ``weights_to_train``.

        Parameters
        ----------
        original : str
            Name of the weight in the model it came from.

        Returns
        -------
        list of str
            Names.
        """
        named = [self.name, original, self.attribute, self.expression]
        if self.step is not None and self.attribute is not None:
            named += [f"{self.step}.{self.attribute}", f"{self.step}.{self.expression}", self.origin]
        return [name for name in named if name]
