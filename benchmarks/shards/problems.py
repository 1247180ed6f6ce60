"""Problems to train over shards: linear, a network, leaves of boosting, sparse text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor

from ortlearn.learning_rates import BaseLearningRate, LearningRateAdam, LearningRateSGD

__all__ = ["BATCH", "N_TEST", "N_TRAIN", "PROBLEMS", "Data", "Problem", "documents"]

#: Samples to train on: 64 shards of 4 batches each. Samples of a batch, samples to test on.
N_TRAIN, BATCH, N_TEST = 8192, 32, 4096
#: Words of the word model, topics, and words of a document.
N_WORDS, N_TOPICS, LENGTH = 2048, 8, 40


@dataclass(frozen=True)
class Data:
    """Samples to train and to test on, and the model to train.

    Attributes
    ----------
    X, y, X_test, y_test : array or CSR matrix
        Samples.
    estimator : estimator
        Model; a fitted one is trained from its own weights.
    """

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    estimator: Any


@dataclass(frozen=True)
class Problem:
    """A problem.

    Attributes
    ----------
    name : str
        What the tables call it.
    data : callable
        Returns the data of a seed.
    rate : callable
        Returns the update with a constant rate.
    eta0 : float
        Rate on one machine: of 1, 2 and 5 times powers of ten the one with the lowest loss after 20 passes,
        or Adam's default.
    warm_start : bool
        Whether the model is fitted, and trained from its own weights.
    n_passes : int
        Passes that are trained.
    """

    name: str
    data: Callable[[int], Data]
    rate: Callable[[float], BaseLearningRate]
    eta0: float
    warm_start: bool = False
    n_passes: int = 20


def _sgd(eta0: float) -> BaseLearningRate:
    return LearningRateSGD(eta0, learning_rate="constant")


def _adam(eta0: float) -> BaseLearningRate:
    return LearningRateAdam(eta0, learning_rate="constant")


def _split(X: Any, y: np.ndarray, estimator: Any) -> Data:
    return Data(X[:-N_TEST], y[:-N_TEST], X[-N_TEST:], y[-N_TEST:], estimator)


def _linear(seed: int) -> Data:
    X, y = make_classification(
        N_TRAIN + N_TEST,
        50,
        n_informative=20,
        n_redundant=10,
        n_clusters_per_class=1,
        flip_y=0.05,
        random_state=seed,
    )
    return _split(X, y, LogisticRegression())


def _network(seed: int, n_samples: int = N_TRAIN) -> Data:
    X, y = make_friedman1(n_samples + N_TEST, noise=1.0, random_state=seed)
    return _split(X, y, MLPRegressor(hidden_layer_sizes=(50, 20)))


def _large_network(seed: int) -> Data:
    return _network(seed, 16 * N_TRAIN)


def _leaves(seed: int) -> Data:
    """Return boosting that was fitted on an eighth as many samples of another function, to be adapted."""
    X, y = make_friedman1(N_TRAIN + N_TEST, noise=1.0, random_state=seed)
    X_old, y_old = make_friedman1(N_TRAIN // 8, noise=1.0, random_state=seed + 1000)
    old = GradientBoostingRegressor(random_state=seed).fit(X_old, y_old)
    return _split(X, y + 10 * np.abs(X[:, 0] - X[:, 1]) - 5 * X[:, 3], old)


def documents(n_documents: int, seed: int) -> tuple[csr_matrix, np.ndarray]:
    """Return documents of a word model, and their topics.

    Words are as frequent as in a text (Zipf's law). Each topic makes one word in twenty 20 times as
    frequent as it is in others. A document has 40 words, a third of them of a second topic that may be any.

    Parameters
    ----------
    n_documents : int
        Number of documents.
    seed : int
        Seed of model and documents.

    Returns
    -------
    X : csr_matrix of shape (n_documents, 2048), float32
        Square roots of counts of words, samples of length one.
    y : ndarray of shape (n_documents,)
        Topics, from 0 to 7.
    """
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, N_WORDS + 1)
    topics = frequency * np.where(rng.random((N_TOPICS, N_WORDS)) < 0.05, 20.0, 1.0)
    topics /= topics.sum(axis=1, keepdims=True)
    own, other = rng.integers(N_TOPICS, size=(2, n_documents))
    topic_of_word = np.where(
        rng.random((n_documents, LENGTH)) < 2 / 3, own[:, np.newaxis], other[:, np.newaxis]
    )
    words = np.empty((n_documents, LENGTH), np.int64)
    for number, chances in enumerate(topics):
        places = topic_of_word == number
        words[places] = rng.choice(N_WORDS, size=places.sum(), p=chances)
    documents = np.repeat(np.arange(n_documents), LENGTH)
    shares = np.full(words.size, 1 / LENGTH, np.float32)
    return csr_matrix((shares, (documents, words.ravel())), (n_documents, N_WORDS)).sqrt(), own


@lru_cache(maxsize=1)
def _text(seed: int) -> Data:
    return _split(*documents(N_TRAIN + N_TEST, seed), LogisticRegression())


PROBLEMS = (
    Problem("linear, SGD", _linear, _sgd, 0.01),
    Problem("network, Adam", _network, _adam, 0.01),
    Problem("network, Adam's default rate", _network, _adam, 0.001),
    Problem("boosting's leaves, Adam", _leaves, _adam, 0.002, warm_start=True),
    Problem("sparse text, Adam", _text, _adam, 0.02),
    Problem("network, Adam, 16 times the samples", _large_network, _adam, 0.002, n_passes=8),
)
