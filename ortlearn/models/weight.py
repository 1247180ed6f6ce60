"""Description of a weight of a graph."""

import re
from dataclasses import dataclass

#: Reasons why constants, statistics, and weights with a low-rank adapter are not trained.
CONSTANT = "constant of a formula"
STATISTIC = "running statistic of a batch normalization, which is no weight"
ADAPTED = "stays as it is: its adapter is trained"
#: A name in brackets, after the attribute that contains it, empty for a pipeline or a union.
STEP = re.compile(r"(\w*)\['([^']*)'\]")


@dataclass(frozen=True)
class Weight:
    """A floating-point initializer, its use in the graph and its origin.

    Attributes
    ----------
    name : str
        Name of the initializer.
    role : {"weight", "intercept", "scale", "table", "other"}
        Role in the graph: factor of a product, intercept, factor or divisor of columns, table of rows to
        look up, or another one.
    learned : bool
        Whether it is trained by default.
    fans : tuple of int
        Numbers of inputs and outputs of a factor of a product, (1, 1) for other roles.
    attribute : str or None
        Expression of the fitted attribute in its step, such as ``coef_`` or ``estimators_[3].tree_.value``;
        None if unknown.
    step : str or None
        Step of the pipeline with the attribute; None without a pipeline, or if unknown.
    drawn : bool
        Whether it is initialized at random if training does not start from the fitted values.
    reason : str
        Reason why it is not trained by default; empty if it is, or if the reason follows from the graph.
    form : str
        Expression of the values, with ``{}`` for the attribute: ``"log({})"``, ``"1 / {}"``.
    operators, nodes : tuple of str
        Operators and names of the nodes that read it, in a graph from an ONNX file.
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
        """Names of its steps; those of nested steps are joined by ``__`` as in ``set_params``."""
        inner = STEP.findall(self.attribute or "")
        chain = [self.step] if self.step else []
        chain += [name for owner, name in inner if owner in ("", "named_transformers_")]
        return ["__".join(chain[i:j]) for i in range(len(chain)) for j in range(i + 1, len(chain) + 1)]

    def places(self, original: str) -> list[str]:
        """Return the operators, nodes and layers that read the weight of an ONNX file.

        Parameters
        ----------
        original : str
            Original name of the weight.

        Returns
        -------
        list of str
            Names.
        """
        # exporters name nodes /encoder/layer.0/query/MatMul, and weights encoder.layer.0.query.weight
        if not self.operators:
            return []
        paths = [("/", node.strip("/").split("/")) for node in self.nodes] + [(".", original.split("."))]
        layers = [sign.join(parts[:i]) for sign, parts in paths for i in range(1, len(parts))]
        return list(dict.fromkeys([*self.operators, *self.nodes, *layers]))

    def names(self, original: str) -> list[str]:
        """Return the names of the weight in ``weights_to_train``.

        Parameters
        ----------
        original : str
            Original name of the weight.

        Returns
        -------
        list of str
            Names.
        """
        named = [self.name, original, self.attribute, self.expression]
        if self.step is not None and self.attribute is not None:
            named += [f"{self.step}.{self.attribute}", f"{self.step}.{self.expression}", self.origin]
        return [name for name in named if name]
