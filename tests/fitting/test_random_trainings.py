"""Trainings with random settings equal stochastic gradient descent in numpy."""

import itertools
import time
from functools import partial

import numpy as np
import pytest
from onnx import helper, numpy_helper

from ortlearn.data.orders import epoch_order
from ortlearn.fitting.trainer import draw_seed
from ortlearn.learning_rates import LearningRateSGD, LearningRateSGDNesterov
from ortlearn.onnx_files.versions import MIN_OPSET
from ortlearn.penalties import ElasticPenalty
from ortlearn.runtime.readable_versions import newest_opset

N_SEEDS = 240
PARTS = 6
EPOCHS = 2


def draw(seed):
    """Return random settings, samples and weights."""
    rng = np.random.RandomState(seed)
    n_samples, n_features, width = rng.randint(1, 150), rng.randint(1, 5), rng.randint(1, 4)
    drawn = {
        "X": rng.normal(size=(n_samples, n_features)),
        "y": rng.normal(size=n_samples),
        "batch_size": int(rng.choice([1, 2, 3, 7, 16, 50, 200])),
        "shuffle": bool(rng.randint(2)),
        "sample_weight": rng.uniform(0.1, 3, n_samples) if rng.randint(2) else None,
        "l1": float(rng.choice([0, 0.03])),
        "l2": float(rng.choice([0, 0.05])),
        "proximal": bool(rng.randint(2)),
        "momentum": float(rng.choice([0, 0.5, 0.9])),
        "nesterov": bool(rng.randint(2)),
        "clip_norm": rng.choice([None, None, 0.3]),
        "opset": rng.randint(MIN_OPSET, newest_opset() + 1),
        "gradient": str(rng.choice(["auto", "rules"])),
        "seconds": float(rng.choice([0, 0, 0.1, 0.6])),
    }
    shapes = {"w": (n_features, width), "b": (width,), "v": (width, 1), "e": (1,)}
    return drawn, {name: rng.normal(0, 0.7, shape) for name, shape in shapes.items()}


def network(weights, opset):
    """Return ``tanh(x w + b) v + e`` in float64."""
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "w", "b"], ["sum"]),
            helper.make_node("Tanh", ["sum"], ["hidden"]),
            helper.make_node("Gemm", ["hidden", "v", "e"], ["score"]),
        ],
        "network",
        [helper.make_tensor_value_info("x", 11, ["n", len(weights["w"])])],
        [helper.make_tensor_value_info("score", 11, ["n", 1])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def sgd(drawn, weights, order, rate):
    """Return the weights after epochs in given orders."""
    values = {name: array.copy() for name, array in weights.items()}
    velocity = dict.fromkeys(weights, 0.0)
    row_weights = np.ones(len(drawn["y"])) if drawn["sample_weight"] is None else drawn["sample_weight"]
    momentum = drawn["momentum"]
    for rows_of_epoch in order:
        for start in range(0, len(rows_of_epoch), drawn["batch_size"]):
            samples = rows_of_epoch[start : start + drawn["batch_size"]]
            gradients = slopes(values, drawn["X"][samples], drawn["y"][samples], row_weights[samples])
            for name in ("w", "v"):
                gradients[name] = gradients[name] + 2 * drawn["l2"] * values[name]
                if not drawn["proximal"]:
                    gradients[name] = gradients[name] + drawn["l1"] * np.sign(values[name])
            norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))
            scale = 1.0 if drawn["clip_norm"] is None else min(1.0, drawn["clip_norm"] / norm)
            for name, gradient in gradients.items():
                step = rate * scale * gradient
                velocity[name] = momentum * velocity[name] - step
                nesterov = momentum and drawn["nesterov"]
                values[name] = values[name] + (
                    momentum * velocity[name] - step if nesterov else velocity[name]
                )
                if drawn["proximal"] and name in ("w", "v"):
                    length = drawn["l1"] * rate / (1 - momentum)
                    values[name] = np.sign(values[name]) * np.maximum(np.abs(values[name]) - length, 0)
    return values


def slopes(values, x, y, row_weights):
    """Return the gradient of the mean half squared error."""
    hidden = np.tanh(x @ values["w"] + values["b"])
    slope = (hidden @ values["v"] + values["e"] - y[:, None]) * (row_weights / row_weights.sum())[:, None]
    inner = slope @ values["v"].T * (1 - hidden**2)
    return {"w": x.T @ inner, "b": inner.sum(axis=0), "v": hidden.T @ slope, "e": slope.sum(axis=0)}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_random_settings(part, optimizer, monkeypatch):
    for seed in range(part, N_SEEDS, PARTS):
        drawn, weights = draw(seed)
        ticks = itertools.count(step=drawn["seconds"])
        monkeypatch.setattr(time, "perf_counter", partial(next, ticks))  # splits epochs
        rate = 0.05
        if drawn["momentum"]:
            momentum, nesterov = drawn["momentum"], drawn["nesterov"]
            update = LearningRateSGDNesterov(
                rate, momentum=momentum, nesterov=nesterov, learning_rate="constant"
            )
        else:
            update = LearningRateSGD(rate, learning_rate="constant")
        trained = optimizer(
            network(weights, drawn["opset"]),
            learning_rate=update,
            learning_penalty=ElasticPenalty(drawn["l1"], drawn["l2"], proximal=drawn["proximal"]),
            weights_to_train=list(weights),
            max_iter=EPOCHS,
            random_state=seed,
            warm_start=True,
            **{name: drawn[name] for name in ("batch_size", "shuffle", "gradient", "clip_norm")},
        ).fit(drawn["X"], drawn["y"], sample_weight=drawn["sample_weight"])
        key = draw_seed(np.random.RandomState(seed)) if drawn["shuffle"] else None
        orders = [epoch_order(len(drawn["y"]), key, epoch) for epoch in range(EPOCHS)]
        for name, expected in sgd(drawn, weights, orders, rate).items():
            got = trained.trained_coef_[name]
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9, err_msg=f"seed {seed} {name}")
