"""Parts of the benchmark: figures, targets, failing contenders, requirements."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import contenders
from benchmarks.bench_fits import Fit
from benchmarks.cases import TINY, Case, mean_loss, write_data
from benchmarks.figures import ratio, slope
from benchmarks.install_peers import peers
from benchmarks.measures.batches import REPEATS, round_of
from benchmarks.measures.fits import sheet_of
from benchmarks.measures.to_loss import epochs_to
from benchmarks.performance_page import page
from benchmarks.plots import plot_ratios
from benchmarks.processes import Failed, Process
from benchmarks.report import write_report
from benchmarks.tables import Table, per_batch_table, read_tables, write_tables
from benchmarks.targets import evaluate
from benchmarks.team import Team

ROOT = Path(__file__).parent.parent.parent
#: Programs that others start, and one without arguments.
STARTED = ("worker.py", "attempt.py", "drift/picture.py")


def test_programs_read_their_command_line():
    """``--help`` must not start a measurement."""
    parsed = ("ArgumentParser(", "print_sheets(__doc__", "run_table(", "read_options(__doc__")
    for path in (ROOT / "benchmarks").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if '__name__ == "__main__"' in text and not path.as_posix().endswith(STARTED):
            assert any(call in text for call in parsed), path


def test_slopes_and_ratios():
    assert slope([1, 10, 100], [[2.0], [20.0], [200.0]]) == pytest.approx(1)
    assert slope([1, 4], [[3.0, 3.0, 900.0], [6.0]]) == pytest.approx(0.5)
    assert np.isnan(slope([1, 2], [[-1.0], [1.0]]))
    assert np.isnan(slope([1, 2], [[1.0], [float("nan")]]))
    assert ratio([1.0, 30.0, 2.0], [2.0, 60.0, 1.0]) == 0.5


@pytest.mark.slow
def test_times_within_noise_are_not_resolved(tmp_path):
    times = {
        "ortlearn": [2.0, 2.0],
        "torch": [9.0, -1.0],
        "jax": [1.0, float("nan")],
        "sklearn-mlp": [4.0, 4.0],
    }
    case = {"title": "4-3-2 classification, 9 samples, batches of 3", "times": times}
    found = per_batch_table(case, "1")
    assert found.rows[1][1:] == found.rows[2][1:] == ["not resolved", "-", "-"]
    assert found.rows[3][1:] == ["4", "4 to 4", "0.50"]
    results = {"per_batch": {"1": {"large": case}}}
    values = {target.text: value for target, value in evaluate(results)}
    assert values["784-512-256-10: time per batch / JAX's"] is None
    lines = page([Table("Machine", "", ["machine"], [["one"]]), found]).splitlines()
    assert "| 4-3-2 classification, batches of 3 | MLPClassifier 0.5 |  |  |" in lines
    assert "| 4-3-2 classification, batches of 3 | 2 | 0.50 |" in lines
    plot_ratios(results["per_batch"]["1"], tmp_path / "bars.png")
    assert (tmp_path / "bars.png").stat().st_size > 1000


def test_round_is_repeated_until_the_long_fit_takes_longer():
    spent = iter([1.0, 0.5, 1.0, 3.0])
    assert round_of(SimpleNamespace(seconds=lambda epochs: next(spent)), 2, 100) == pytest.approx(1e4)
    spent = iter([1.0, 0.5] * REPEATS)
    assert np.isnan(round_of(SimpleNamespace(seconds=lambda epochs: next(spent)), 2, 100))


def test_targets():
    times = {"ortlearn": [2.0], "sklearn-mlp": [10.0], "forward-backward": [5.0]}
    found = {t.text: (t, value) for t, value in evaluate({"per_batch": {"1": {"mlp-15": {"times": times}}}})}
    target, value = found["100-50-10-1, batches of 15: time per batch / MLPRegressor's"]
    assert value == pytest.approx(0.2) and not target.reached(value) and target.reached(0.13)
    assert found["100-50-10-1, batches of 15: time per batch / JAX's"][1] is None
    slope = found["cost of an epoch against samples, log-log slope"][0]
    assert [slope.reached(v) for v in (0.9, 1.0, 1.1)] == [False, True, False]


def test_faster_version_of_jax_is_the_peer():
    both = {"ortlearn": [6.0], "jax": [3.0], "jax-0.4.31": [2.0]}
    newest = {**both, "jax-0.4.31": [4.0]}
    title = "10-1 regression, 9 samples, batches of 3"
    cases = {"linear": {"title": title, "times": both}, "logistic": {"title": title, "times": newest}}
    found = {target.text: value for target, value in evaluate({"per_batch": {"1": cases}})}
    assert found["linear, batches of 10: time per batch / JAX's"] == pytest.approx(3)
    assert found["logistic, batches of 256: time per batch / JAX's"] == pytest.approx(2)
    machine = Table("Machine", "", ["machine"], [["one"]])
    text = page([machine, *(per_batch_table(case, "1") for case in cases.values())])
    assert "| 10-1 regression, batches of 3 | 6 | 3.00 (0.4.31) |" in text
    assert "| 10-1 regression, batches of 3 | 6 | 2.00 |" in text
    assert "JAX 0.4.31 3 |" in text and "| JAX 2 |" in text


def test_mean_loss():
    X = np.array([[1.0], [-2.0]])
    hidden = [(np.array([[1.0]]), np.array([0.0])), (np.array([[3.0]]), np.array([1.0]))]
    regression = Case("r", (1, 1, 1), "regression", 2, 1, 0.1)
    assert mean_loss(regression, hidden, X, np.array([4.0, 3.0])) == pytest.approx((0 + 2**2 / 2) / 2)
    binary = Case("b", (1, 1), "classification", 2, 1, 0.1)
    expected = np.mean([np.log1p(np.exp(-1)), np.log1p(np.exp(-2))])
    assert mean_loss(binary, hidden[:1], X, np.array([1, 0])) == pytest.approx(expected)
    classes = Case("c", (1, 2), "classification", 2, 1, 0.1)
    weights = [(np.array([[0.0, 1.0]]), np.zeros(2))]
    assert mean_loss(classes, weights, X, np.array([1, 0])) == pytest.approx(expected)


def test_data_are_written_once(tmp_path):
    first, again = write_data(TINY[0], tmp_path / "."), write_data(TINY[0], tmp_path)
    assert first == again
    X, y = np.load(first / "X.npy"), np.load(first / "y.npy")
    assert X.dtype == np.float32 and X.shape == (52, 10) and y.shape == (52,)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-6)


@pytest.mark.slow
def test_failing_contender_does_not_stop_the_others(tmp_path, monkeypatch):
    monkeypatch.setitem(
        contenders.CONTENDERS,
        "nobody",
        contenders.Entry("Nobody", "of_nobody", "Nobody", ("no_such_package",)),
    )
    team = Team.of(["sklearn-sgd", "nobody"], tmp_path)
    assert team.names == ["sklearn-sgd"] and "no_such_package" in team.left_out["nobody"]
    with pytest.raises(Failed, match="nobody"):  # not registered in the other process
        Process("nobody", 1, tmp_path)
    with team.processes(1) as processes:
        assert team.attempt("sklearn-sgd", "here", lambda: processes["sklearn-sgd"].ask("sing")) is None
        assert "here" in team.left_out["sklearn-sgd"]
        assert team.prepare(processes, TINY[1]) == {}  # no contender supports networks without hidden layers
        assert list(team.prepare(processes, TINY[0])) == ["sklearn-sgd"]
        assert processes["sklearn-sgd"].seconds(1) > 0


def test_peers_are_pinned():
    found = peers(ROOT / "setup.cfg")
    assert all("==" in peer for peer in found)
    assert {"torch", "skorch", "scikit-learn"} <= {peer.partition("==")[0] for peer in found}


def test_epochs_to_a_loss():
    class Fake:
        def ask(self, _, epochs, loss):
            return {"loss": 1 / epochs}

    assert [epochs_to(Fake(), 1 / n) for n in (1, 2, 3, 7, 100)] == [1, 2, 3, 7, 100]
    assert epochs_to(Fake(), 1e-9) is None


def test_report_of_loaded_results(tmp_path):
    results = {
        "machine": "one, 2 cores",
        "versions": {"Python": "3"},
        "rounds": 5,
        "left_out": {"jax": "broken"},
    }
    page = write_report(json.loads(json.dumps(results)), tmp_path).read_text()
    assert "Left out: JAX, jit and lax.scan: broken." in page and "not measured" in page
    assert str(tmp_path) not in page and sys.executable not in page
    assert read_tables(tmp_path / "performance.csv")[0].rows[1] == [
        "Left out: JAX, jit and lax.scan: broken."
    ]


def test_times_on_another_processor_are_kept(tmp_path):
    def write(machine, ratio):
        header = ["contender", "microseconds per batch", "smallest to largest", "ratio"]
        times = [["OrtGradientOptimizer", "2", "-", "1.00"], ["torch, eager", "4", "-", ratio]]
        title = "10-1 regression, 9 samples, batches of 3; one thread"
        path = tmp_path / "performance.md"
        write_tables(
            path,
            [Table("Machine", "", ["machine"], [[machine]]), Table("Time per batch", title, header, times)],
        )
        results = {"machine": "A B, 2 cores", "versions": {"Python": "3"}, "rounds": 5}
        return write_report(results, tmp_path)

    text = write("A C, 2 cores", "0.51").read_text()
    section = text.partition("## Time per batch on another processor")[2]
    assert "another machine, A C, 2 cores" in section and "| 0.51 |" in section
    again = write_report({"machine": "A B, 4 cores", "versions": {}, "rounds": 1}, tmp_path).read_text()
    assert "| 0.51 |" in again
    assert "0.51" not in write("A B, 1 core", "0.51").read_text()


def test_long_tables_of_the_page_show_their_ratios():
    rows = [[f"model {n}", str(n), f"{n / 10}{' (over 1.2)' if n > 12 else ''}"] for n in range(1, 14)]
    machine, sheet = Table("Machine", "", ["machine"], [["one"]]), ["model", "samples", "a / b"]
    text = page([machine, Table("Sheets", "Long.", sheet, rows), Table("Sheets", "Short.", sheet, rows[:2])])
    assert "| a / b | 0.1 | 0.7 | 1.3 |" in text and "| model 2 | 2 | 0.2 |" in text and "model 3" not in text


def test_tables_are_read_as_they_were_written(tmp_path):
    found = [
        Table("A", "first, of two", ["name", "s"], [["one", "1,000"], ["two", ""]]),
        Table("A", "second", ["name"], [["x"]]),
    ]
    assert read_tables(write_tables(tmp_path / "page.md", found)) == found


def test_fits_of_the_page():
    fits = [Fit("A", 200, own=1.0, fresh=0.5, warm=5.0), Fit("B", 200, own=0.1, fresh=0.3, warm=0.9)]
    sheet = sheet_of(fits)
    machine = Table("Machine", "", ["machine"], [["one"]])
    text = page([machine, Table("Whole fits", sheet.text, sheet.header, sheet.rows)])
    assert "| 200 | 2 | 0.55 | 0.4 | 1.75 | 2.95 | 7 | 1 | 1 |" in text and "B on 200 (3)" in text
