"""The benchmark runs, and its contenders train the same model, as a comparison of times requires."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def run(folder, *options):
    """Run the benchmark; return its results and output."""
    command = [sys.executable, "-m", "benchmarks.run", "--quick", "--output", str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "results.json").read_text()), done.stdout


@pytest.fixture(scope="module")
def same_losses(tmp_path_factory):
    return run(tmp_path_factory.mktemp("agreement"), "--sections", "agreement")


@pytest.mark.slow
@pytest.mark.parametrize("case", ["linear", "mlp", "binary", "classes", "logistic"])
def test_contenders_end_with_the_same_loss(same_losses, case):
    losses = same_losses[0]["agreement"][case]["losses"]
    assert {"ortlearn", "forward-backward"} <= set(losses)
    assert ("sklearn-mlp" in losses) == (case in ("mlp", "binary", "classes"))
    assert list(losses.values()) == pytest.approx([losses["ortlearn"]] * len(losses), rel=1e-4)


@pytest.mark.slow
def test_every_contender_is_measured_or_listed_as_left_out(same_losses):
    results, printed = same_losses
    names = {"ortlearn", "forward-backward", "sklearn-mlp", "torch", "skorch", "jax", "jax-0.4.31"}
    measured_names = set(results["agreement"]["mlp"]["losses"])
    assert measured_names | set(results["left_out"]) == names
    assert printed.count("left out: ") == len(results["left_out"])


@pytest.mark.slow
def test_page_and_pictures_are_written(tmp_path):
    contenders = ["--contenders", "ortlearn", "sklearn-mlp"]
    results, printed = run(tmp_path, "--sections", "per_batch", "memory", *contenders, "--rounds", "2")
    assert {len(v) for case in results["per_batch"]["1"].values() for v in case["times"].values()} == {2}
    assert results["memory"]["mlp"]["peaks"].keys() == {"ortlearn", "sklearn-mlp"}
    page = (tmp_path / "performance.md").read_text()
    measured = page.partition("## Time per batch")[2].partition("\n## ")[0]
    assert "OrtGradientOptimizer" in measured
    assert "JAX" not in measured
    assert (tmp_path / "images" / "per_batch.png").stat().st_size > 1000
    assert "performance.md" in printed


@pytest.mark.slow
def test_page_has_tables_of_other_benchmarks(tmp_path):
    results, _ = run(tmp_path, "--sections", "models", "predictions", "searches", "--contenders", "ortlearn")
    page = (tmp_path / "performance.md").read_text()
    (models,) = results["models"]
    assert len(models["rows"]) == 5 and all(f"| {' | '.join(row)} |" in page for row in models["rows"])
    assert page.index("## Models compared with their") < page.index("## Searches") < page.index("## Targets")
