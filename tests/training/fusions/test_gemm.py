"""Products with additions and subtractions are fused into Gemm."""

import numpy as np
import pytest

from ortlearn.training.fusions.gemm import fuse_matmul_add, fuse_matmul_sub, fuse_updates


@pytest.mark.parametrize("bias", ["[3]", "[1,3]", "[5,1]", "[5,3]", "[1]", ""])
@pytest.mark.parametrize("order", ["z, b", "b, z"])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_bias_is_fused_with_its_product(fuse, bias, order, dtype):
    text = f"""g ({dtype}[5,2] x, {dtype}[2,3] w, {dtype}{bias} b) => ({dtype}[5,3] y)
        {{ z = MatMul (x, w) y = Add ({order}) }}"""
    assert fuse(text, fuse_matmul_add) == {"Gemm": 1}


def test_two_layers_with_bias(fuse):
    text = """g (float[5,2] x, float[2,3] w, float[3] b, float[3,1] v, float[1] c) => (float[5,1] y)
        { z = MatMul (x, w) s = Add (z, b) r = Relu (s) t = MatMul (r, v) y = Add (t, c) }"""
    assert fuse(text, fuse_matmul_add) == {"Gemm": 2, "Relu": 1}


def test_one_of_two_products(fuse):
    text = """g (float[5,2] x, float[2,3] w, float[2,3] v) => (float[5,3] y)
        { z = MatMul (x, w) s = MatMul (x, v) y = Add (z, s) }"""
    assert fuse(text, fuse_matmul_add) == {"Gemm": 1, "MatMul": 1}


NO_BIAS = {
    "no product": "(float[5,3] x, float[3] b) => (float[5,3] y) { z = Relu (x) y = Add (z, b) }",
    "product read twice": """(float[5,2] x, float[2,3] w, float[3] b) => (float[5,3] y, float[5,3] u)
        { z = MatMul (x, w) u = Relu (z) y = Add (z, b) }""",
    "product is a result": """(float[5,2] x, float[2,3] w, float[3] b) => (float[5,3] y, float[5,3] z)
        { z = MatMul (x, w) y = Add (z, b) }""",
    "product added to itself": """(float[5,2] x, float[2,3] w) => (float[5,3] y)
        { z = MatMul (x, w) y = Add (z, z) }""",
    "sum larger than the product": """(float[1,2] x, float[2,3] w, float[5,3] b) => (float[5,3] y)
        { z = MatMul (x, w) y = Add (z, b) }""",
    "three dimensions": """(float[2,5,2] x, float[2,3] w, float[3] b) => (float[2,5,3] y)
        { z = MatMul (x, w) y = Add (z, b) }""",
    "sum of three dimensions": """(float[5,2] x, float[2,3] w, float[2,5,3] b) => (float[2,5,3] y)
        { z = MatMul (x, w) y = Add (z, b) }""",
    "vector": """(float[5,2] x, float[2] w, float[5] b) => (float[5] y)
        { z = MatMul (x, w) y = Add (z, b) }""",
    "rows unknown": """(float[N,2] x, float[2,3] w, float[3] b) => (float[N,3] y)
        { z = MatMul (x, w) y = Add (z, b) }""",
    "integers": """(int64[5,2] x, int64[2,3] w, int64[3] b) => (int64[5,3] y)
        { z = MatMul (x, w) y = Add (z, b) }""",
}


@pytest.mark.parametrize("case", list(NO_BIAS))
def test_other_additions_are_kept(fuse, case):
    assert fuse(f"g {NO_BIAS[case]}", fuse_matmul_add)["Gemm"] == 0


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_gradient_and_update(fuse, dtype):
    text = f"""g ({dtype}[5,2] h, {dtype}[5,3] g, {dtype}[2,3] w) => ({dtype}[2,3] new)
        {{ d = Gemm <transA = 1> (h, g) new = Sub (w, d) }}"""
    assert fuse(text, fuse_updates) == {"Gemm": 1}


@pytest.mark.parametrize("order", ["w, d", "d, w"])
def test_added_gradient(fuse, order):
    text = f"""g (float[5,2] h, float[5,3] g, float[2,3] w) => (float[2,3] new)
        {{ d = Gemm <transA = 1> (h, g) new = Add ({order}) }}"""
    assert fuse(text, fuse_updates) == {"Gemm": 1}


COLUMN = """g (float[{0},50] h, float[{0},1] g, float[50,1] w) => (float[50,1] new) <float m = {{0.9}}>
    {{ d = Gemm <transA = 1> (h, g) {1} }}"""


def test_alpha_and_beta_are_one_for_long_columns(fuse):
    assert fuse(COLUMN.format(100, "new = Add (w, d)"), fuse_updates) == {"Gemm": 1}
    assert fuse(COLUMN.format(100, "new = Sub (w, d)"), fuse_updates) == {"Gemm": 1, "Sub": 1}
    momentum = "k = Mul (w, m) new = Add (k, d)"
    assert fuse(COLUMN.format(100, momentum), fuse_updates) == {"Gemm": 1, "Mul": 1}
    assert fuse(COLUMN.format(10, momentum), fuse_updates) == {"Gemm": 1}


@pytest.mark.parametrize("alpha", [1.0, 0.5, -2.0])
def test_alpha_of_the_gradient_is_kept(fuse, alpha):
    text = f"""g (float[5,2] h, float[3,5] g, float[2,3] w) => (float[2,3] new)
        {{ d = Gemm <transA = 1, transB = 1, alpha = {alpha}> (h, g) new = Sub (w, d) }}"""
    assert fuse(text, fuse_updates) == {"Gemm": 1}


MOMENTUM = """g ({0}[5,2] h, {0}[5,3] g, {0}[2,3] v, {0}[2,3] w) => ({0}[2,3] move, {0}[2,3] new)
    <{0} m = {{{1}}}>
    {{ d = Gemm <transA = 1> (h, g) k = Mul (v, m) move = Sub (k, d) new = Add (w, move) }}"""


def test_momentum_becomes_beta(fuse):
    assert fuse(MOMENTUM.format("float", 0.9), fuse_updates) == {"Gemm": 1, "Add": 1}
    assert fuse(MOMENTUM.format("double", 0.5), fuse_updates) == {"Gemm": 1, "Add": 1}


def test_momentum_that_is_not_a_float32_is_kept(fuse):
    # attributes are float32 for tensors of any type
    assert fuse(MOMENTUM.format("double", 0.9), fuse_updates) == {"Gemm": 1, "Mul": 1, "Add": 1}


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_sum_over_a_batch_becomes_a_product_with_ones(fuse, dtype):
    text = f"""g ({dtype}[5,3] g, {dtype}[1,3] b) => ({dtype}[1,3] new)
        <int64[1] axes = {{0}}> {{ d = ReduceSum (g, axes) new = Sub (b, d) }}"""
    assert fuse(text, fuse_updates) == {"Gemm": 1}


NO_UPDATE = {
    "gradient read twice (Nesterov)": """(float[5,2] h, float[5,3] g, float[2,3] v, float[2,3] w)
        => (float[2,3] move, float[2,3] ahead)
        { d = Gemm <transA = 1> (h, g) move = Sub (v, d) ahead = Sub (w, d) }""",
    "gradient is a result": """(float[5,2] h, float[5,3] g, float[2,3] w) => (float[2,3] new, float[2,3] d)
        { d = Gemm <transA = 1> (h, g) new = Sub (w, d) }""",
    "gradient on the left": """(float[5,2] h, float[5,3] g, float[2,3] w) => (float[2,3] new)
        { d = Gemm <transA = 1> (h, g) new = Sub (d, w) }""",
    "intercept of rank one": """(float[5,3] g, float[3] b) => (float[3] new)
        <int64[1] axes = {0}> { d = ReduceSum <keepdims = 0> (g, axes) new = Sub (b, d) }""",
    "sum over outputs": """(float[5,3] g, float[5,1] b) => (float[5,1] new)
        <int64[1] axes = {1}> { d = ReduceSum (g, axes) new = Sub (b, d) }""",
    "sum over everything": """(float[5,3] g, float[1,1] b) => (float[1,1] new)
        { d = ReduceSum (g) new = Sub (b, d) }""",
    "weight smaller than its gradient": """(float[5,2] h, float[5,3] g, float[1,3] w) => (float[2,3] new)
        { d = Gemm <transA = 1> (h, g) new = Sub (w, d) }""",
    "gradient that is smaller": """(float[5,1] h, float[5,3] g, float[2,3] w) => (float[2,3] new)
        { d = Gemm <transA = 1> (h, g) new = Sub (w, d) }""",
    "penalty in the product": """(float[5,2] h, float[5,3] g, float[2,3] p, float[2,3] w) => (float[2,3] new)
        { d = Gemm <transA = 1> (h, g, p) new = Sub (w, d) }""",
    "integers": """(int64[5,3] g, int64[1,3] b) => (int64[1,3] new)
        <int64[1] axes = {0}> { d = ReduceSum (g, axes) new = Sub (b, d) }""",
    "no product": "(float[2,3] g, float[2,3] w) => (float[2,3] new) { d = Neg (g) new = Sub (w, d) }",
}


@pytest.mark.parametrize("case", list(NO_UPDATE))
def test_other_subtractions_are_kept(fuse, case):
    assert fuse(f"g {NO_UPDATE[case]}", fuse_updates)["Sub"] > 0


BETA_STAYS = {
    "read twice": """(float[5,2] h, float[5,3] g, float[2,3] v) => (float[2,3] new, float[2,3] k)
        <float m = {0.9}> { d = Gemm <transA = 1> (h, g) k = Mul (v, m) new = Sub (k, d) }""",
    "not constant": """(float[5,2] h, float[5,3] g, float[2,3] v, float m) => (float[2,3] new)
        { d = Gemm <transA = 1> (h, g) k = Mul (v, m) new = Sub (k, d) }""",
    "one for each element": """(float[5,2] h, float[5,3] g, float[2,3] v) => (float[2,3] new)
        <float[3] m = {0.9, 0.8, 0.7}> { d = Gemm <transA = 1> (h, g) k = Mul (v, m) new = Sub (k, d) }""",
}


@pytest.mark.parametrize("case", list(BETA_STAYS))
def test_other_factors_are_kept(fuse, case):
    assert fuse(f"g {BETA_STAYS[case]}", fuse_updates) == {"Gemm": 1, "Mul": 1}


def test_weights_in_both_operands(fuse):
    text = """g (float[3,3] w) => (float[3,3] new)
        { d = Gemm <transA = 1> (w, w) new = Sub (w, d) }"""
    assert fuse(text, fuse_updates) == {"Gemm": 1}


def test_a_scalar_weight_times_a_constant(fuse):
    text = """g (float[5,1] h, float[5,1] g, float[1,1] v) => (float[1,1] new)
        <float[1,1] m = {0.9}> { d = Gemm <transA = 1> (h, g) k = Mul (v, m) new = Sub (k, d) }"""
    assert fuse(text, fuse_updates) == {"Gemm": 1}


def test_a_subgraph_reads_the_product(fuse):
    text = """g (float[5,2] x, float[2,3] w, float[3] b, bool c) => (float[5,3] y, float[5,3] u)
        { z = MatMul (x, w) y = Add (z, b)
          u = If (c) <then_branch = t () => (float[5,3] p) { p = Neg (z) },
                      else_branch = e () => (float[5,3] q) { q = Abs (z) }> }"""
    feeds = {"c": np.array(True)}
    assert fuse(text, fuse_matmul_add, feeds=feeds) == {"MatMul": 1, "Add": 1, "If": 1}


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_subtracted_labels_are_fused(fuse, dtype):
    text = f"""g ({dtype}[5,2] x, {dtype}[2,3] w, {dtype}[5,3] y) => ({dtype}[5,3] e)
        {{ z = MatMul (x, w) e = Sub (z, y) }}"""
    assert fuse(text, fuse_matmul_sub) == {"Neg": 1, "Gemm": 1}


NO_LABELS = {
    "product read twice": """(float[5,2] x, float[2,3] w, float[5,3] y) => (float[5,3] e, float[5,3] u)
        { z = MatMul (x, w) u = Relu (z) e = Sub (z, y) }""",
    "product is a result": """(float[5,2] x, float[2,3] w, float[5,3] y) => (float[5,3] e, float[5,3] z)
        { z = MatMul (x, w) e = Sub (z, y) }""",
    "product taken away": """(float[5,2] x, float[2,3] w, float[5,3] y) => (float[5,3] e)
        { z = MatMul (x, w) e = Sub (y, z) }""",
    "of another shape": """(float[5,2] x, float[2,3] w, float[5,1] y) => (float[5,3] e)
        { z = MatMul (x, w) e = Sub (z, y) }""",
    "not an input": """(float[5,2] x, float[2,3] w, float[5,3] y) => (float[5,3] e)
        { z = MatMul (x, w) r = Relu (y) e = Sub (z, r) }""",
}


@pytest.mark.parametrize("case", NO_LABELS)
def test_other_differences_are_kept(fuse, case):
    assert "Gemm" not in fuse(f"g {NO_LABELS[case]}", fuse_matmul_sub)
