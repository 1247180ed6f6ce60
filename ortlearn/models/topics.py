"""Topics of documents: latent Dirichlet allocation."""

from functools import partial
from typing import Any

import numpy as np
from onnx import TensorProto
from scipy.special import psi

from ..graphs import GraphBuilder
from .base import ModelDefinition
from .constraints.signs import Positive
from .kernels import products
from .loops import elem_type, in_double, iterate
from .scores import Scores, transformation
from .special_functions import digamma
from .writer import ModelWriter

#: Name of the graph of an iteration.
STEP = "topics_step"


class TopicsDefinition(ModelDefinition):
    """LatentDirichletAllocation: the shares of topics in a document, by coordinate ascent.

    With counts x and ``B = exp(digamma(components_) - digamma(sum of a topic))``, a document's parameters g
    become ``doc_topic_prior_ + t * (x / (t B)) B'`` with ``t = exp(digamma(g) - digamma(sum g))`` until they
    change little (Hoffman, Blei and Bach, "Online learning for latent Dirichlet allocation", NIPS 2010,
    algorithm 2). The bound on the likelihood that a fit increases has divergences from priors besides the
    sum over documents: it is no objective here.
    """

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        size = len(model.components_)
        counts = op.parameter(model, "components_", role="weight", constraint=Positive())
        # in float64: the first steps of topics that are nearly alike enlarge what float32 rounds
        with in_double(op, x, counts) as (x, counts):
            words = _expectation(op, counts)
            # one for each topic
            sums = op.ReduceSum(x, [1], keepdims=1)
            first = op.Add(op.Mul(sums, 0.0), np.ones((1, size)))
            going = op.GreaterOrEqual(sums, 0.0)
            start = [(first, (TensorProto.DOUBLE, [None, size])), (going, (TensorProto.BOOL, [None, 1]))]
            step = partial(_step, model, x, words)
            found = iterate(op, STEP, int(model.max_doc_update_iter), start, step)[0]
            topics = op.Reshape(found, [-1, size])
            shares = op.Div(topics, op.ReduceSum(topics, [1], keepdims=1))
        return transformation(op, op.Cast(shares, to=op.elem_type), size)

    def finish(self, model: Any) -> None:
        counts = model.components_
        model.exp_dirichlet_component_ = np.exp(psi(counts) - psi(counts.sum(axis=1, keepdims=True)))


def _expectation(op: GraphBuilder, parameters: str) -> str:
    """Append ``exp(E[log p])`` for each row of parameters of Dirichlet distributions."""
    total = digamma(op, op.ReduceSum(parameters, [1], keepdims=1))
    return op.Exp(op.Sub(digamma(op, parameters), total))


def _step(
    model: Any, x: str, words: str, op: GraphBuilder, number: str, topics: str, going: str
) -> tuple[str, str, str]:
    """Append an iteration for the documents that have not stopped."""
    shares = _expectation(op, topics)
    expected = op.Add(op.MatMul(shares, words), float(np.finfo(op.float_dtype).eps))
    found = op.Mul(shares, products(op, op.Div(x, expected), words))
    found = op.Add(found, float(model.doc_topic_prior_))
    change = op.ReduceMean(op.Abs(op.Sub(found, topics)), [1], keepdims=1)
    still = op.And(going, op.GreaterOrEqual(change, float(model.mean_change_tol)))
    some = op.ReduceMax(op.Cast(still, to=elem_type(op)), keepdims=0)
    return op.Greater(some, 0.5), op.Where(going, found, topics), still
