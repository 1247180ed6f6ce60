"""Averaging over shards: rounds, tables, and the model of costs."""

import doctest
import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from benchmarks.shards import __main__ as main
from benchmarks.shards import cost_model, problems, report, rounds, strategies
from tests.calls import calls_of


def test_outer_momentum_is_nesterov():
    """Sutskever et al., 2013, in the form of torch.optim.SGD: v = m v + g, w -= r (g + m v)."""
    outer, key, count = rounds.Outer(0.5, 0.9), ("w", None), ("w", "count")
    old, mean = np.array([1.0, 2.0]), np.array([0.0, 2.5])
    state = np.array([3.0])
    new, velocity = outer.step({key: old, count: state}, {key: mean, count: state + 1}, {})
    g = old - mean
    np.testing.assert_allclose(new[key], old - 0.5 * (g + 0.9 * g))
    assert new[count] == 4.0 and velocity.keys() == {key}
    again, _ = outer.step(new, {key: mean}, velocity)
    g2 = new[key] - mean
    np.testing.assert_allclose(again[key], new[key] - 0.5 * (g2 + 0.9 * (0.9 * g + g2)))
    plain, none = rounds.Outer().step({key: old}, {key: mean}, {})
    assert plain[key] is mean and not none


@pytest.mark.slow
def test_one_shard_is_independent_of_the_number_of_averages():
    for problem in problems.PROBLEMS[1:5:2]:
        shards = rounds.Shards(problem, 1, 0)
        losses = [
            shards.train(s, 1.0, 2)[0] for s in strategies.STRATEGIES if s.outer.rate == 1 and s.keeps_states
        ]
        plain, *others = (one for one in losses if np.isfinite(one).all())
        assert len(losses) == 7 and sum(np.array_equal(plain, one) for one in others) == 5


def test_average_after_each_batch_equals_a_batch_of_all_shards():
    problem = problems.PROBLEMS[0]
    given, shards = problem.data(0), rounds.Shards(problem, 2, 0)
    losses, score = shards.train(rounds.Strategy("", often_until=1), 1.0, 1)
    coef, intercept = (array.astype(np.float64).ravel() for array in shards.weights.values())
    half, size = problems.N_TRAIN // 2, problems.BATCH
    orders = [rounds.epoch_order(half, 0, 0, shard) + half * shard for shard in range(2)]
    for start in range(0, half, size):
        chosen = np.concatenate([order[start : start + size] for order in orders])
        X, y = given.X[chosen], given.y[chosen]
        error = 1 / (1 + np.exp(-(X @ coef + intercept))) - y
        coef = coef - problem.eta0 * (X.T @ error / len(chosen) + coef / problems.N_TRAIN)  # C = 1
        intercept = intercept - problem.eta0 * error.mean()
    scores = given.X_test @ coef + intercept
    expected = np.mean(np.logaddexp(0, scores) - given.y_test * scores)
    assert losses[0] == pytest.approx(expected, rel=1e-4)
    assert score == pytest.approx(np.mean((scores > 0) == given.y_test), abs=1e-3)


def test_diverging_training_has_infinite_losses():
    losses, score = rounds.Shards(problems.PROBLEMS[1], 4, 0).train(rounds.Strategy(""), 1e12, 2)
    assert np.isinf(losses[-1]) and np.isnan(score)


def test_smaller_batches_make_as_many_updates_as_one_machine():
    strategy, shards = rounds.Strategy("", divides_batch=True), rounds.Shards(problems.PROBLEMS[0], 4, 0)
    updates = []
    shards.step.run_epoch = lambda order, size, buffers: updates.append(len(order) / size) or np.zeros(1)
    shards.train(strategy, 1.0, 1)
    assert updates == [problems.N_TRAIN / problems.BATCH] * 4
    assert rounds.Strategy("").batch_size(4) == 32 and strategy.batch_size(64) == 1
    shards.train(rounds.Strategy("", alone=True), 1.0, 2)
    assert updates[4:] == [problems.N_TRAIN / problems.BATCH / 4] * 2


def test_shards_of_samples_sorted_by_label():
    shards = rounds.Shards(problems.PROBLEMS[0], 4, 0, by_label=True)
    assert [len(np.unique(data.y)) for data in shards.data[::3]] == [1, 1]
    mixed = rounds.Shards(problems.PROBLEMS[0], 4, 0)
    assert [len(np.unique(data.y)) for data in mixed.data] == [2] * 4


def test_topics_of_documents_are_learned():
    X, y = problems.documents(1500, 0)
    np.testing.assert_allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1.0, rtol=1e-5)
    assert X.shape == (1500, problems.N_WORDS) and X.nnz < 0.03 * X.shape[0] * X.shape[1]
    model = LogisticRegression().fit(X[:1000], y[:1000])
    assert 0.5 < model.score(X[1000:], y[1000:]) < 1.0
    assert (problems.documents(1500, 0)[0] != X).nnz == 0
    assert (problems.documents(1500, 1)[0] != X).nnz > 0


@pytest.fixture
def runs():
    one = [report.Run("p", "once", scale, 1, 0, [4.0, 3.9, 2.5, 2.0], 0.9) for scale in ("1", "√k", "k")]
    ends = {
        ("once", "1"): 3.0,
        ("once", "√k"): 2.2,
        ("once", "k"): 4.1,
        ("often", "1"): 2.0,
        ("often", "√k"): 8.0,
        ("often", "k"): np.inf,
    }
    return one + [report.Run("p", s, c, 4, 0, [v] * 4, 0.8) for (s, c), v in ends.items()]


def test_tables_of_losses(runs):
    losses = report.losses_table(runs, ["once", "often"]).splitlines()
    assert losses[0] == "| problem | averages | 4 shards: rate times 1, √k, k |"
    assert losses[2] == "| p | once | 1.50 / 1.10 / 2.05 |"
    assert losses[3] == "| p | often | 1.00 / 4.00 / diverges |"
    assert report.losses_table(runs, ["once"]).splitlines() == losses[:3]
    assert report.losses_rows(runs)[1:] == [
        ["p", "shuffled", "once", "4", "1.50", "1.10", "2.05"],
        ["p", "shuffled", "often", "4", "1.00", "4.00", "diverges"],
    ]
    assert {line.count("|") for line in report.one_machine_table(runs).splitlines()} == {7}
    assert report.one_machine_table(runs).splitlines()[-1] == "| p | 4 | 2.000 | 0.900 | 2.000 | 2.000 |"


def test_block_of_a_page_is_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n")
    report.write_block(page, "x", "new")
    assert page.read_text() == "a\n<!-- x: begin -->\nnew\n<!-- x: end -->\nb\n"
    with pytest.raises(ValueError, match="y: begin"):
        report.write_block(page, "y", "new")


@pytest.mark.slow
def test_quick_run_and_report_of_saved_results(tmp_path, capsys):
    arguments = ["--quick", "--json", str(tmp_path / "runs.json")]
    main.main(arguments, problems.PROBLEMS[:1])
    measured = capsys.readouterr().out
    records = json.loads((tmp_path / "runs.json").read_text())
    assert {record["n_shards"] for record in records} == {1, 4}
    with calls_of(rounds.Shards.train) as calls:
        main.main(arguments, problems.PROBLEMS[:1])
    assert not calls
    lines = capsys.readouterr().out.splitlines()
    assert measured.splitlines()[2:] == lines[2:] and len(lines) > 12


def test_fitted_costs():
    assert doctest.testmod(cost_model).failed == 0
    shards, size = (grid.ravel() for grid in np.meshgrid([2, 8, 32], [1e3, 1e6, 1e7]))
    found = cost_model.fit_rounds(shards, size, 0.004 + shards * (0.0005 + size * 2e-9))
    np.testing.assert_allclose(found.terms, (0.004, 0.0005, 2e-9), rtol=1e-6)
    assert found.largest == (32, 1e7) and found.error < 1e-6
    columns, weights = np.array([10, 1000, 100, 100]), np.array([11, 1001, 1e4, 1e5])
    found = cost_model.fit_samples(columns, weights, 1e-6 + 2e-9 * columns + 3e-11 * weights)
    np.testing.assert_allclose(found.terms, (1e-6, 2e-9, 3e-11), rtol=1e-6)
    uneven = cost_model.fit_samples(columns, weights, [1.0, 1.0, 1.0, 2.0])
    assert uneven.error > 0.01


@pytest.fixture
def costs():
    rounds = cost_model.Measured((0.005, 0.001, 1e-9), (64, 1e7), 0.1)
    return cost_model.Costs(rounds, cost_model.Measured((1e-6, 1e-9, 1e-10), (1000, 1e6), 0.1), 0.9)


def test_estimates(costs):
    estimate = cost_model.estimate
    found = estimate(
        costs, 1e6, 100, 1e4, 4, shards_per_worker=2, averages=3, batch_size=100, bytes_per_weight=4
    )
    assert found.compute == pytest.approx(1e6 * 2.1e-6 / 4 / 0.9)
    assert found.communication == pytest.approx(3 * (0.005 + 8 * (0.001 + 4e4 * 1e-9)))
    assert found.sent == 2 * 3 * 8 * 4e4 and found.updates == 1e6 / (8 * 100)
    assert found.speedup == pytest.approx(2.1 / (found.compute + found.communication))
    assert found.extrapolated == ("4 workers (measured up to 2)",)
    alone = estimate(costs, 1e6, 100, 1e4, 1)
    assert alone.compute == pytest.approx(2.1) and alone.extrapolated == ()  # not slowed by other workers
    twice = estimate(costs, 1e6, 100, 1e4, 4, extra_passes=2.0)
    assert twice.speedup == pytest.approx(estimate(costs, 1e6, 100, 1e4, 4).speedup / 2)


def test_estimates_for_trees_and_networks_are_extrapolated(costs):
    estimate = cost_model.estimate
    plain = estimate(costs, 1e9, 100, 1e6, 1024)
    tree = estimate(costs, 1e9, 100, 1e6, 1024, tree=True, bandwidth=1e9)
    assert tree.communication == pytest.approx(0.005 + 1024 * 0.001 + 10 * 12e6 * 2e-9)
    assert tree.communication < plain.communication
    assert plain.extrapolated == (
        "1,024 workers (measured up to 2)",
        "1,024 shards (measured up to 64)",
        "12,000,000 bytes of a model (measured up to 10,000,000)",
        "effect of a pass (measured up to 64 shards)",
    )
    statistics = "effect of a pass (measured up to 64 shards)"
    assert tree.extrapolated[3:] == ("a network", statistics, "averages in pairs")


@pytest.mark.parametrize(
    "wrong", [{"n_samples": 0}, {"n_workers": -1}, {"bandwidth": -1.0}, {"n_weights": np.nan}]
)
def test_estimate_rejects_values_that_are_not_positive(costs, wrong):
    given = {"n_samples": 1e6, "n_columns": 10, "n_weights": 10, "n_workers": 2} | wrong
    with pytest.raises(ValueError, match="above 0"):
        cost_model.estimate(costs, **given)
