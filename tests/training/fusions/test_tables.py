"""Sparse gradients are added to tables directly."""

import numpy as np
import pytest

from ortlearn.training.fusions.tables import gather_scalars, scatter_into_weights, scatter_rows

ZEROS = "zeros = ConstantOfShape <value = float[1] {0}> (size)"
ADD = 'd = ScatterElements <axis = 0, reduction = "add"> (zeros, i, g)'
#: Indices with duplicates.
PLACES = {"i": np.array([1, 5, 1, 0, -1])}


def table(body, more="", inputs=""):
    return f"""g (float[7] w, float[5] g, int64[5] i{inputs}) => (float[7] new{more})
        <int64[1] size = {{7}}> {{ {body} }}"""


def test_gradient_is_added_to_its_table(fuse):
    text = table(f"{ZEROS} {ADD} new = Sub (w, d)")
    assert fuse(text, scatter_into_weights, feeds=PLACES) == {"Neg": 1, "ScatterElements": 1}


def test_gradient_is_added_to_a_momentum(fuse):
    text = table(f"{ZEROS} {ADD} v = Mul (w, w) new = Sub (v, d)")
    assert fuse(text, scatter_into_weights, feeds=PLACES) == {"Mul": 1, "Neg": 1, "ScatterElements": 1}


def test_rows_of_a_matrix(fuse):
    text = """g (double[7,2] w, double[3,2] g, int64[3,2] i) => (double[7,2] new)
        <int64[2] size = {7, 2}> {
            zeros = ConstantOfShape <value = double[1] {0}> (size)
            d = ScatterElements <axis = 0, reduction = "add"> (zeros, i, g)
            new = Sub (w, d)
        }"""
    feeds = {"i": np.array([[1, 1], [4, 1], [1, 0]])}
    assert fuse(text, scatter_into_weights, feeds=feeds) == {"Neg": 1, "ScatterElements": 1}


def test_a_column_that_is_read_as_a_vector(fuse):
    text = f"""g (float[7,1] w, float[5] g, int64[5] i) => (float[7,1] new)
        <int64[1] size = {{7}}, int64[2] column = {{7, 1}}>
        {{ {ZEROS} {ADD} c = Reshape (d, column) new = Sub (w, c) }}"""
    assert fuse(text, scatter_into_weights, feeds=PLACES) == {"Neg": 1, "Reshape": 2, "ScatterElements": 1}


OTHERS = {
    "gradient is a result": table(f"{ZEROS} {ADD} new = Sub (w, d)", ", float[7] d"),
    "gradient read twice": table(f"{ZEROS} {ADD} e = Sub (w, d) new = Add (e, d)"),
    "reshaped and read twice": table(f"{ZEROS} {ADD} r = Reshape (d, size) e = Sub (w, r) new = Add (e, r)"),
    "not from zero": table(f"ones = ConstantOfShape <value = float[1] {{1}}> (size) "
                           f"{ADD.replace('zeros', 'ones')} new = Sub (w, d)"),
    "written, not added": table(f"{ZEROS} d = ScatterElements <axis = 0> (zeros, j, g) new = Sub (w, d)",
                                inputs=", int64[5] j"),
    "other way round": table(f"{ZEROS} {ADD} new = Sub (d, w)"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(OTHERS))
def test_gradient_that_is_kept(fuse, case):
    feeds = {**PLACES, "j": np.array([1, 5, 2, 0, -1])}
    assert fuse(OTHERS[case], scatter_into_weights, feeds=feeds)["Neg"] == 0


ROWS = """g (float[7,2] w, float[3,2] g, int32[3] i) => (float[7,2] new)
    <int64[2] column = {-1, 1}, int64[2] both = {3, 2}, int64[2] size = {7, 2}>
    { c = Reshape (i, column) e = Expand (c, both) new = ScatterElements <axis = 0, %s> (w, e, g) }"""


def test_rows_are_added_at_once(fuse):
    feeds = {"i": np.array([1, 4, 1], dtype=np.int32)}
    found = fuse(ROWS % 'reduction = "add"', scatter_rows, feeds=feeds)
    assert found == {"Cast": 1, "Reshape": 1, "ScatterND": 1}
    feeds = {"i": np.array([1, 4, 2], dtype=np.int32)}
    assert fuse(ROWS % 'reduction = "none"', scatter_rows, feeds=feeds)["ScatterElements"] == 1


def test_elements_are_not_rows(fuse):
    text = """g (float[7,2] w, float[3,2] g, int64[3,2] i) => (float[7,2] new)
        { new = ScatterElements <axis = 0, reduction = "add"> (w, i, g) }"""
    feeds = {"i": np.array([[1, 1], [4, 1], [1, 0]])}
    assert fuse(text, scatter_rows, feeds=feeds) == {"ScatterElements": 1}


GATHER = "g (float[w] table, int64[{sizes}] i) => (float[{sizes}] y) {{ y = Gather <axis = 0> (table, i) }}"


@pytest.mark.parametrize("sizes", ["n, 60", "120", "n, 5, 20"])
def test_scalars_are_gathered_as_elements(fuse, sizes):
    text, shape = GATHER.format(sizes=sizes), [int(size) if size != "n" else 2 for size in sizes.split(", ")]
    feeds = {
        "table": np.arange(7, dtype=np.float32),
        "i": np.random.default_rng(0).integers(-7, 7, size=shape),
    }
    assert fuse(text, gather_scalars, feeds=feeds) == {"GatherElements": 1, "Reshape": 2}


@pytest.mark.parametrize(
    "text",
    [
        GATHER.format(sizes="5, 2"),
        GATHER.format(sizes="n, m"),
        GATHER.format(sizes="200")
        .replace("float[w]", "float[w, 2]")
        .replace("(float[200]", "(float[200, 2]"),
    ],
    ids=["few", "unknown", "rows"],
)
def test_other_look_ups_are_kept(fuse, text):
    rank = text.count("w, 2") + 1
    table = np.arange(14, dtype=np.float32).reshape([7, 2] if rank == 2 else [-1])
    shape = [200] if rank == 2 else [5, 2]
    assert fuse(text, gather_scalars, feeds={"table": table, "i": np.ones(shape, dtype=np.int64)}) == {
        "Gather": 1
    }
