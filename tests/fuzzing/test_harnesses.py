"""The harnesses accept valid inputs, refuse damaged ones, and find planted errors; the corpus stays right."""

import random

import pytest

from ortlearn.differentiation.registry import gradient_rule, temporary_rules
from tests.fuzzing.__main__ import CORPUS, NAMES
from tests.fuzzing.edits import edited
from tests.fuzzing.harnesses import HARNESSES

ACCEPTED = {"opened", "loaded", "read", "right", "float32", "kink"}


def test_every_harness_has_a_corpus():
    assert tuple(HARNESSES) == NAMES
    assert {path.name for path in CORPUS.iterdir()} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_corpus(name):
    ends = {path.name: HARNESSES[name](path.read_bytes()) for path in (CORPUS / name).iterdir()}
    assert ACCEPTED & {*ends.values()}, ends


@pytest.mark.parametrize("name", [name for name in NAMES if name != "gradients"])
def test_random_edits_are_accepted_or_refused(name):
    draw = random.Random(0)
    ends = {HARNESSES[name](draw.randbytes(2 + 6 * draw.choice([1, 2, 5]))) for _ in range(12)}
    assert ends <= {*ACCEPTED, "refused", "not written"} and "refused" in ends


def test_edits_keep_and_change():
    content = bytes(range(50))
    assert edited(content, b"") == edited(content, b"short") == content
    draw = random.Random(0)
    lengths = {len(edited(content, draw.randbytes(6))) - 50 for _ in range(60)}
    assert min(lengths) < 0 < max(lengths) and 0 in lengths


def test_errors_of_other_kinds_and_wrong_gradients_are_findings():
    with temporary_rules(), pytest.raises(AssertionError, match="wrong"):

        @gradient_rule("Tanh", "Sigmoid", "Exp", "Mul", overwrite=True)
        def wrong(op, node, grad):
            return [op.Mul(grad, 1.5) for _ in range(node.n_inputs)]

        for seed in range(30):
            HARNESSES["gradients"](seed.to_bytes(6, "little"))
