"""Metrics equal scikit-learn's under any weights; intervals of the bootstrap are percentiles."""

import numpy as np
import pytest
from sklearn import metrics as reference

from ortlearn.evaluation.bootstrap import Bootstrap
from ortlearn.evaluation.metrics import metrics_of
from ortlearn.evaluation.predictions import Predictions

N = 60


def classification(n_classes, seed=0):
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.ones(n_classes), N).round(1) + 0.01  # with ties
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    classes = np.array(list("abcd"))[:n_classes]
    labels = classes[rng.integers(n_classes, size=N)]
    return labels, classes, probabilities, rng.integers(0, 4, N).astype(float)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_classifiers(n_classes):
    labels, classes, p, weights = classification(n_classes)
    values = classes[p.argmax(axis=1)]
    found = metrics_of(labels, Predictions(values, p), classes)
    codes = np.searchsorted(classes, labels)
    one_hot = np.eye(n_classes)[codes]
    squares = ((p - one_hot) ** 2).sum(axis=1) / (2 if n_classes == 2 else 1)
    positive = {"y_score": p[:, 1]} if n_classes == 2 else {"y_score": p, "multi_class": "ovr"}
    expected = {
        "accuracy": reference.accuracy_score(labels, values, sample_weight=weights),
        "log_loss": reference.log_loss(labels, p, sample_weight=weights),
        "brier": np.average(squares, weights=weights),
        "roc_auc": reference.roc_auc_score(codes, sample_weight=weights, **positive),
    }
    assert {name: metric(weights) for name, metric in found.items()} == pytest.approx(expected, rel=1e-12)
    if n_classes == 2:
        brier = reference.brier_score_loss(codes, p[:, 1], sample_weight=weights)
        assert found["brier"](weights) == pytest.approx(brier)


def test_decision_values_give_no_losses():
    labels, classes, p, weights = classification(2)
    for scores in (p[:, 1], p[:, 1:], np.log(p)):
        found = metrics_of(labels, Predictions(labels, scores=scores), classes)
        assert list(found) == ["accuracy", "roc_auc"]
        expected = reference.roc_auc_score(labels == "b", scores.reshape(N, -1)[:, -1], sample_weight=weights)
        assert found["roc_auc"](weights) == pytest.approx(expected)


def test_regressors():
    rng = np.random.default_rng(0)
    y, weights = rng.normal(size=N), rng.uniform(size=N)
    f = y + rng.normal(size=N)
    found = {name: metric(weights) for name, metric in metrics_of(y, Predictions(f), y[:0]).items()}
    assert found == pytest.approx(
        {
            "r2": reference.r2_score(y, f, sample_weight=weights),
            "mae": reference.mean_absolute_error(y, f, sample_weight=weights),
            "rmse": reference.mean_squared_error(y, f, sample_weight=weights) ** 0.5,
        }
    )


def test_undefined_metrics_are_nan():
    labels, classes, p, _ = classification(2)
    one_class = (labels == "a").astype(float)
    assert np.isnan(metrics_of(labels, Predictions(labels, p), classes)["roc_auc"](one_class))
    assert np.isnan(metrics_of(np.ones(3), Predictions(np.ones(3)), np.ones(0))["r2"](np.ones(3)))


def test_intervals_of_the_normal_distribution():
    errors = np.random.default_rng(0).normal(10, 1, 2000)
    zero = np.zeros(2000)
    old = metrics_of(zero, Predictions(errors), zero[:0])
    new = metrics_of(zero, Predictions(errors / 2), zero[:0])
    found = Bootstrap(1000, 0.95, 3).compare({"mae": old["mae"]}, {"mae": new["mae"]}, zero + 1)["mae"]
    half = 1.96 * errors.std() / np.sqrt(2000)
    mean = np.abs(errors).mean()
    assert found["old"]["interval"] == pytest.approx([mean - half, mean + half], abs=0.15 * half)
    # The errors of the new model are those of the old one, halved: the difference varies as they do.
    assert found["difference"]["interval"] == pytest.approx(
        [-(mean + half) / 2, -(mean - half) / 2], abs=0.1 * half
    )


def test_both_models_are_measured_on_the_same_samples():
    labels, classes, p, weights = classification(3)
    metrics = metrics_of(labels, Predictions(classes[p.argmax(axis=1)], p), classes)
    found = Bootstrap(50).compare(metrics, metrics, weights)
    assert all(part["difference"] == {"value": 0, "interval": [0, 0]} for part in found.values())
    assert found["accuracy"]["old"]["interval"][0] < found["accuracy"]["old"]["interval"][1]
    assert found == Bootstrap(50).compare(metrics, metrics, weights)
    assert found != Bootstrap(50, seed=1).compare(metrics, metrics, weights)


def test_no_interval_if_most_samples_are_undefined():
    labels = np.array(["b"] + ["a"] * 2)
    p = np.full((3, 2), 0.5)
    metrics = metrics_of(labels, Predictions(labels, p), np.array(["a", "b"]))
    weights = np.array([1.0, 1.0, 0.0])  # both classes are drawn in less than half of the samples
    assert Bootstrap(200).compare(metrics, metrics, weights)["roc_auc"]["old"]["interval"] is None
