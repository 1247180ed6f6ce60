"""The README, the quick start and the front page have the same first example, with true outputs."""

import doctest
import re

import pytest
from sklearn.base import clone

from tests.docs.pages import DOCS, ROOT

FIRST = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
FLAGS = doctest.NORMALIZE_WHITESPACE


def first_example(path):
    return FIRST.search(path.read_text(encoding="utf-8"))[1]


README = first_example(ROOT / "README.md")


@pytest.mark.parametrize("name", ["getting_started.md", "index.md"])
def test_same_example(name):
    assert first_example(DOCS / name) == README


def test_ten_lines():
    statements = doctest.DocTestParser().get_examples(README)
    assert len(statements) == 10


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_outputs():
    test = doctest.DocTestParser().get_doctest(README, {}, "README", "README.md", 0)
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test, clear_globs=False)
    assert result == (0, 10)
    scope = test.globs
    losses = scope["trainer"].train_losses_
    assert losses[-1] < losses[0]
    refit = clone(scope["model"]).fit(scope["X_new"], scope["y_new"])
    assert f"{refit.score(scope['X_test'], scope['y_test']):.2f}" == "0.74"
    for _ in range(50):
        scope["model"].partial_fit(scope["X_new"], scope["y_new"])
    assert f"{scope['model'].score(scope['X_test'], scope['y_test']):.2f}" == "0.92"
    for path in (ROOT / "README.md", DOCS / "index.md"):
        assert "images alone reaches 0.74" in " ".join(path.read_text(encoding="utf-8").split())
