"""Rounds of candidates, each compared with the one that is kept."""

from dataclasses import dataclass

import numpy as np
import pytest

from ortlearn.comparison.candidates import Candidate, Grown, KeptStart, Setting
from ortlearn.comparison.evidence import choose
from ortlearn.comparison.measures import Measure, Part, folds
from ortlearn.data.samples import Data
from ortlearn.models.capabilities import GrowingEnsemble
from ortlearn.training.state import TrainingState

Y = np.random.default_rng(0).normal(3, 1, size=200)
START = TrainingState({"mean": np.zeros(1)})


@dataclass(frozen=True)
class Shrunk(Candidate):
    """The mean, shrunk towards zero: a smaller factor is a stronger pull."""

    factor: float = 1.0
    evidence = 1.0

    def train(self, setting, part, previous=None):
        steps = 1 if previous is None else int(previous.weights["steps"][0]) + 1
        weights = {"mean": part.data.y.mean(keepdims=True) * self.factor, "steps": np.array([steps])}
        return TrainingState(weights)


class Reluctant(Shrunk):
    evidence = 1e6
    later = 0.5


@dataclass(frozen=True)
class Moved(Candidate):
    """A fixed mean."""

    mean: float

    def train(self, setting, part, previous=None):
        return TrainingState({"mean": np.array([self.mean]), "steps": np.array([1])})


class SquaredErrors(Measure):
    def __init__(self, y=Y, n_parts=5):
        self.data, self.n_parts, self.trained = Data(np.zeros((len(y), 1)), y), n_parts, []

    def parts(self):
        for kept, left_out in list(folds(None, len(self.data), np.random.RandomState(0)))[: self.n_parts]:
            yield Part(self.data.take(kept), kept), Part(self.data.take(left_out), left_out)

    def scores(self, weights, part):
        self.trained.append(int(weights.get("steps", [0])[0]))
        return np.full(len(part.data), weights["mean"][0])

    def losses(self, scores, part):
        return (scores - part.data.y) ** 2 / 2


class Zeros:
    """An ensemble whose new parts have the score zero, or fail."""

    rule = GrowingEnsemble()

    def __init__(self, fails=False):
        self.fails, self.n_fits = fails, 0

    def new_scores(self, samples, others):
        self.n_fits += 1
        assert not {*samples.samples} & {*others.samples}
        return (None if self.fails else np.zeros(len(others.samples))), None

    def completed(self, model, share):
        return model, share


def of_factors(*factors, kind=Shrunk):
    return [kind(factor) for factor in factors]


def test_start_is_kept_without_evidence():
    measure = SquaredErrors(Y - Y.mean())
    assert choose(Setting(START), measure, [of_factors(1.0)]).candidate == KeptStart()
    assert choose(Setting(START), SquaredErrors(), [of_factors(1.0, kind=Reluctant)]).candidate == KeptStart()
    setting = Setting(START, evidence=1e6)  # what the model requires
    assert choose(setting, SquaredErrors(), [of_factors(1.0)]).candidate == KeptStart()
    assert choose(setting, SquaredErrors(), []).candidate == KeptStart()
    kept = KeptStart().train(Setting(START), Part(measure.data))
    assert kept.start_kept and kept.weights == START.weights


def test_strongest_of_nearly_equal_candidates_is_chosen():
    choice = choose(Setting(START), SquaredErrors(), [of_factors(0.1, 0.999, 1.0)])
    assert choice.candidate == Shrunk(0.999)
    np.testing.assert_allclose(choice.means[0], (Y**2).mean() / 2)
    assert choice.means.shape == (4,) and choice.means[2] < choice.means[0]
    assert choice.means[1] == np.inf  # far from the best one, and left out after the first part


def test_hopeless_candidates_are_left_out_after_the_first_part():
    measure = SquaredErrors()
    assert choose(Setting(START), measure, [of_factors(-1.0, 1.0, 1.0)]).candidate == Shrunk(1.0)
    assert measure.trained == [*[0] * 5, 1, 2, 3, *[1, 2] * 4]
    measure = SquaredErrors(Y - Y.mean())
    choice = choose(Setting(START), measure, [[Moved(5.0), Moved(9.0)], [Moved(3.0), Moved(4.0)]])
    assert choice.candidate == KeptStart()
    assert measure.trained == [*[0] * 5, *[1] * 4]  # each of the four on one part
    undecided = SquaredErrors(np.zeros(200))  # equal losses
    choose(Setting(START), undecided, [of_factors(1.0, 2.0)])
    assert undecided.trained == [*[0] * 5, *[1, 2] * 5]


def test_candidates_continue_those_before_of_their_kind():
    measure = SquaredErrors(n_parts=2)
    others = [*of_factors(1.0, 1.0), *of_factors(1.0, 1.0, kind=Reluctant), Shrunk(1.0)]
    choose(Setting(START), measure, [others])
    assert measure.trained == [0, 0, *[1, 2, 1, 2, 1] * 2]


def test_later_rounds_are_compared_with_the_best_candidate_so_far():
    for first, expected in ((1.0, 1.0), (0.2, 0.5)):
        rounds = [of_factors(first), [], of_factors(0.5)]
        assert choose(Setting(START), SquaredErrors(), rounds).candidate == Shrunk(expected)


def test_evidence_protects_the_start_only():
    reluctant = of_factors(1.0, kind=Reluctant)
    for first, expected in ((0.2, reluctant[0]), (0.999, Shrunk(0.999))):
        choice = choose(Setting(START), SquaredErrors(), [of_factors(first), reluctant])
        assert choice.candidate == expected


@pytest.mark.parametrize("fails", [False, True])
def test_growth_adds_to_the_scores_of_the_best_candidate(fails):
    ensemble, measure = Zeros(fails), SquaredErrors()
    setting = Setting(START, growth=ensemble)
    rounds = [of_factors(1.8), [Grown(share) for share in Zeros.rule.shares(None)]]
    choice = choose(setting, measure, rounds)
    grown = Grown(0.5, Shrunk(1.8))  # nine tenths of the mean
    assert choice.candidate == (Shrunk(1.8) if fails else grown)
    assert ensemble.n_fits == (1 if fails else 3)
    np.testing.assert_allclose(grown.train(setting, Part(measure.data)).weights["mean"], 1.8 * Y.mean())
    assert grown.completed(setting, "model") == ("model", 0.5)
