"""Manifolds: new samples placed by their neighbours among the samples of a fit."""

from typing import Any

import numpy as np

from .base import ModelDefinition
from .linear_systems import LARGEST, solve_positive
from .neighbors import NearestNeighborsDefinition, nearest
from .projections import projected_kernel
from .scores import Scores, transformation
from .writer import FITTED, ModelWriter


class IsomapDefinition(ModelDefinition):
    """Isomap: kernel PCA of minus half the squares of geodesic distances.

    Those of a new sample lead through its nearest neighbours (Tenenbaum, de Silva and Langford, "A global
    geometric framework for nonlinear dimensionality reduction", Science 290, 2000).
    """

    def covers(self, model: Any) -> bool:
        return model.n_neighbors is not None and NearestNeighborsDefinition().covers(model.nbrs_)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        with op.inside("nbrs_"):
            distances, numbers = nearest(op, model.nbrs_, x, model.n_neighbors, FITTED)
        geodesics = op.parameter(model, "dist_matrix_", role="table", reason=FITTED)
        paths = op.Add(op.Gather(geodesics, numbers, axis=0), op.Unsqueeze(distances, [2]))
        shortest = op.ReduceMin(paths, [1], keepdims=0)
        kernel = op.Mul(op.Mul(shortest, shortest), -0.5)
        result = projected_kernel(op, model, kernel, "kernel_pca_.")
        return transformation(op, result, model.embedding_.shape[1])

    def finish(self, model: Any) -> None:
        model.embedding_ = model.kernel_pca_.transform(-0.5 * model.dist_matrix_**2)


class LocallyLinearDefinition(ModelDefinition):
    """LocallyLinearEmbedding: the weighted sum of the embeddings of the nearest neighbours.

    The weights sum to one and are those of the neighbours that sum to the sample nearly: with C the
    differences from it, they solve ``(C C' + reg trace(C C') I) w = 1`` (Saul and Roweis, "Think globally,
    fit locally", JMLR 4, 2003, section 2).
    """

    def covers(self, model: Any) -> bool:
        return model.n_neighbors <= LARGEST and NearestNeighborsDefinition().covers(model.nbrs_)

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        size = int(model.n_neighbors)
        with op.inside("nbrs_"):
            _, numbers = nearest(op, model.nbrs_, x, size, FITTED)
            rows = op.parameter(model.nbrs_, "_fit_X", role="intercept", reason=FITTED)
        differences = op.Sub(op.Gather(rows, numbers, axis=0), op.Unsqueeze(x, [1]))
        pairs = op.Mul(op.Unsqueeze(differences, [2]), op.Unsqueeze(differences, [1]))
        matrix = op.ReduceSum(pairs, [3], keepdims=0)
        trace = op.ReduceSum(op.Mul(differences, differences), [1, 2], keepdims=1)
        ridge = op.Mul(op.Where(op.Greater(trace, 0.0), trace, 1.0), float(model.reg))
        matrix = op.Add(matrix, op.Mul(ridge, np.eye(size, dtype=op.float_dtype)))
        ones = op.Add(op.Mul(op.ReduceSum(matrix, [2], keepdims=1), 0.0), 1.0)
        weights, _ = solve_positive(op, matrix, ones, size, 1)
        weights = op.Div(weights, op.ReduceSum(weights, [1], keepdims=1))
        places = op.Gather(op.parameter(model, "embedding_", role="table"), numbers, axis=0)
        result = op.ReduceSum(op.Mul(places, weights), [1], keepdims=0)
        return transformation(op, result, model.embedding_.shape[1])
