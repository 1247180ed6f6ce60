"""Tensors filled with one number."""

import numpy as np
import pytest

from ortlearn.training.fusions.scalar_propagation import propagate_scalars


@pytest.mark.parametrize("op_type", ["Mul", "Div", "Add", "Sub"])
@pytest.mark.parametrize("order", ["e, x", "x, e"])
@pytest.mark.parametrize("scalar", ["", "[1]"])
def test_expanded_scalar(fuse, op_type, order, scalar):
    text = f"""g (float{scalar} s, float[5,3] x) => (float[5,3] y) <int64[2] shape = {{5, 3}}>
        {{ e = Expand (s, shape) y = {op_type} ({order}) }}"""
    assert fuse(text, propagate_scalars) == {op_type: 1}


def test_operators_that_change_shapes(fuse):
    text = """g (float s, float[3,5,1] x) => (float[3,5,1] y)
        <int64[1] n = {15}, int64[2] shape = {5, 3}, int64[1] last = {2}, int64[1] one = {1}>
        { a = Reshape (s, one) b = Expand (a, n) c = Reshape (b, shape) d = Transpose <perm = [1, 0]> (c)
          e = Unsqueeze (d, last) f = Squeeze (e, last) g = Unsqueeze (f, last) h = Identity (g)
          y = Mul (h, x) }"""
    ops = fuse(text, propagate_scalars)
    assert ops == {"Reshape": 1, "Mul": 1} or ops == {"Mul": 1}


def test_scalars_are_combined(fuse):
    text = """g (float s, float t, float[5,3] x) => (float[5,3] y) <int64[2] shape = {5, 3}>
        { a = Expand (s, shape) b = Expand (t, shape) c = Sub (a, b) d = Div (c, t) y = Mul (d, x) }"""
    assert fuse(text, propagate_scalars) == {"Sub": 1, "Div": 1, "Mul": 1}


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_constants_are_folded(fuse, dtype):
    text = f"""g ({dtype}[5,3] x) => ({dtype}[5,3] y)
        <int64[2] shape = {{5, 3}}, {dtype} s = {{0.1}}, {dtype} t = {{3}}>
        {{ a = Expand (s, shape) b = Expand (t, shape) c = Div (a, b) d = Sub (c, t) y = Mul (x, d) }}"""
    assert fuse(text, propagate_scalars) == {"Mul": 1}


def test_division_by_zero_of_constants(fuse):
    text = """g (float[2] x) => (float[2] y) <int64[1] shape = {2}, float s = {1}, float t = {0}>
        { a = Expand (s, shape) b = Div (a, t) y = Add (x, b) }"""
    assert fuse(text, propagate_scalars) == {"Add": 1}


BROADCAST = {
    "decides the rows": """(float s, float[3] x) => (float[5,3] y) <int64[2] shape = {5, 3}>
        { e = Expand (s, shape) y = Mul (e, x) }""",
    "decides a dimension of one": """(float s, float[5,1] x) => (float[5,3] y) <int64[2] shape = {5, 3}>
        { e = Expand (s, shape) y = Mul (x, e) }""",
    "is a result": """(float s, float[5,3] x) => (float[5,3] y, float[5,3] e) <int64[2] shape = {5, 3}>
        { e = Expand (s, shape) y = Mul (e, x) }""",
    "is read by another operator": """(float s, float[3,5] x) => (float[5,5] y) <int64[2] shape = {5, 3}>
        { e = Expand (s, shape) y = MatMul (e, x) }""",
    "is no single number": """(float[3] s, float[5,3] x) => (float[5,3] y) <int64[2] shape = {5, 3}>
        { e = Expand (s, shape) y = Mul (e, x) }""",
    "has unknown rows": """(float s, int64[2] shape, float[N,3] x) => (float[N,3] y)
        { e = Expand (s, shape) y = Mul (e, x) }""",
}


@pytest.mark.parametrize("case", list(BROADCAST))
def test_uniform_tensor_that_is_kept(fuse, case):
    feeds = {"shape": np.array([3, 3])} if "unknown" in case else {}
    assert fuse(f"g {BROADCAST[case]}", propagate_scalars, feeds=feeds)["Expand"] == 1


def test_both_operands_uniform_and_the_result_an_output(fuse):
    text = """g (float s, float t) => (float[5,3] y) <int64[2] shape = {5, 3}>
        { a = Expand (s, shape) b = Expand (t, shape) y = Mul (a, b) }"""
    assert fuse(text, propagate_scalars)["Expand"] == 2


def test_two_readers_of_one_uniform_tensor(fuse):
    text = """g (float s, float[5,3] x, float[3] b) => (float[5,3] y, float[5,3] u)
        <int64[2] shape = {5, 3}> { e = Expand (s, shape) y = Mul (e, x) u = Add (e, b) }"""
    assert fuse(text, propagate_scalars) == {"Expand": 1, "Mul": 1, "Add": 1}


def test_tensor_of_one_element_keeps_its_rank(fuse):
    text = """g (float s, float[1,1] x) => (float[1,1] y) <int64[2] shape = {1, 1}>
        { e = Expand (s, shape) y = Mul (e, x) }"""
    assert fuse(text, propagate_scalars) == {"Expand": 1, "Mul": 1}


def test_a_subgraph_reads_a_uniform_tensor(fuse):
    text = """g (float s, float[3] x, bool c) => (float[3] y, float[3] u) <int64[1] shape = {3}>
        { e = Expand (s, shape) y = Mul (e, x)
          u = If (c) <then_branch = t () => (float[3] p) { p = Neg (e) },
                      else_branch = f () => (float[3] q) { q = Abs (e) }> }"""
    assert fuse(text, propagate_scalars, feeds={"c": np.array(True)}) == {"Expand": 1, "Mul": 1, "If": 1}
