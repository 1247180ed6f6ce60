"""Fusions of products, sums, means, squares, signs and identities."""

import numpy as np
import pytest

from ortlearn.training.fusions.arithmetic import (
    drop_identities,
    factor_out_scalars,
    merge_reductions,
    replace_sign_of_relu,
    simplify_products,
    sum_of_squares,
)


@pytest.mark.parametrize("order", ["x, one", "one, x"])
@pytest.mark.parametrize("shape", ["", "[1]", "[1,1]", "[1,3]"])
def test_product_with_one(fuse, order, shape):
    ones = "{1, 1, 1}" if shape == "[1,3]" else "{1}"
    text = f"""g (float[5,3] x) => (float[5,3] y) <float{shape} one = {ones}>
        {{ z = Mul ({order}) y = Neg (z) }}"""
    # several ones are not a scalar
    assert fuse(text, simplify_products) == ({"Mul": 1, "Neg": 1} if shape == "[1,3]" else {"Neg": 1})


PRODUCTS = {
    "one that adds a dimension": """(float[3] x) => (float[1,3] y)
        <float[1,1] one = {1}> { z = Mul (x, one) y = Neg (z) }""",
    "two": "(float[3] x) => (float[3] y) <float two = {2}> { z = Mul (x, two) y = Neg (z) }",
    "nearly one": "(float[3] x) => (float[3] y) <float n = {1.0000001}> { z = Mul (x, n) y = Neg (z) }",
    "a result": "(float[3] x) => (float[3] y) <float one = {1}> { y = Mul (x, one) }",
    "rows unknown": "(float[N,3] x) => (float[N,3] y) <float one = {1}> { z = Mul (x, one) y = Neg (z) }",
}


@pytest.mark.parametrize("case", list(PRODUCTS))
def test_product_that_is_kept(fuse, case):
    assert fuse(f"g {PRODUCTS[case]}", simplify_products)["Mul"] == 1


def test_a_product_with_one_in_a_chain(fuse):
    text = """g (float[3] x) => (float[3] y, float[3] u) <float one = {1}>
        { a = Mul (x, one) b = Mul (a, one) c = Mul (one, b) y = Neg (c) u = Abs (b) }"""
    assert fuse(text, simplify_products) == {"Neg": 1, "Abs": 1}


def test_constant_with_other_readers_is_kept(fuse):
    text = """g (float[3] x) => (float[3] y) <float one = {1}>
        { a = Mul (x, one) y = Add (a, one) }"""
    assert fuse(text, simplify_products) == {"Add": 1}


def test_a_product_with_one_that_a_subgraph_reads(fuse):
    text = """g (float[3] x, bool c) => (float[3] y) <float one = {1}>
        { z = Mul (x, one)
          y = If (c) <then_branch = t () => (float[3] p) { p = Neg (z) },
                      else_branch = e () => (float[3] q) { q = Abs (z) }> }"""
    assert fuse(text, simplify_products, feeds={"c": np.array(True)}) == {"Mul": 1, "If": 1}


@pytest.mark.parametrize("order", ["x, s", "s, x"])
def test_the_double_of_a_product(fuse, order):
    constant = f"g (float[5,3] x) => (float[5,3] y) <float s = {{3}}> {{ z = Mul ({order}) y = Add (z, z) }}"
    assert fuse(constant, simplify_products) == {"Mul": 1}
    computed = f"g (float[5,3] x, float s) => (float[5,3] y) {{ z = Mul ({order}) y = Add (z, z) }}"
    assert fuse(computed, simplify_products) == {"Mul": 2}  # the second one is a product of scalars


DOUBLES = {
    "no product": "(float[3] x) => (float[3] y) { z = Neg (x) y = Add (z, z) }",
    "of two tensors": "(float[3] x, float[3] s) => (float[3] y) { z = Mul (x, s) y = Add (z, z) }",
    "scalar of rank one": "(float[3] x, float[1] s) => (float[3] y) { z = Mul (x, s) y = Add (z, z) }",
    "of an input": "(float[3] x) => (float[3] y) { y = Add (x, x) }",
    "of different products": """(float[3] x, float s, float t) => (float[3] y)
        { z = Mul (x, s) u = Mul (x, t) y = Add (z, u) }""",
}


@pytest.mark.parametrize("case", list(DOUBLES))
def test_other_sums_are_kept(fuse, case):
    assert fuse(f"g {DOUBLES[case]}", simplify_products)["Add"] == 1


def test_the_double_and_the_product_itself(fuse):
    text = """g (float[3] x) => (float[3] y, float[3] z) <float s = {3}>
        { z = Mul (x, s) y = Add (z, z) }"""
    assert fuse(text, simplify_products) == {"Mul": 2}


MEAN = """g ({0}[5,3] x) => ({0} y) <int64[1] axes = {{1}}, {0} c = {{0.5}}>
    {{ s = ReduceSum <keepdims = 0> (x, axes) {1} y = ReduceMean <keepdims = 0> ({2}) }}"""


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_the_mean_of_sums(fuse, dtype):
    half = fuse(MEAN.format(dtype, "m = Mul (s, c)", "m"), merge_reductions)
    whole = fuse(MEAN.format(dtype, "", "s"), merge_reductions)
    assert half == whole == {"ReduceSum": 1, "Mul": 1}


@pytest.mark.parametrize(
    "sums",
    [
        "(float[5,3] x) => (float y) <int64[1] axes = {0}>",  # over samples, followed by a mean over columns
        "(float[4,5,3] x) => (float y) <int64[2] axes = {1, 2}>",
    ],
)
def test_the_mean_of_other_sums(fuse, sums):
    text = f"g {sums} {{ s = ReduceSum <keepdims = 0> (x, axes) y = ReduceMean <keepdims = 0> (s) }}"
    assert fuse(text, merge_reductions) == {"ReduceSum": 1, "Mul": 1}


MEANS = {
    "with axes": """(float[5,3] x) => (float y) <int64[1] axes = {1}, int64[1] rows = {0}>
        { s = ReduceSum <keepdims = 0> (x, axes) y = ReduceMean <keepdims = 0> (s, rows) }""",
    "that keeps a dimension": """(float[5,3] x) => (float[1] y) <int64[1] axes = {1}>
        { s = ReduceSum <keepdims = 0> (x, axes) y = ReduceMean (s) }""",
    "of a matrix": """(float[5,3] x) => (float y) <int64[1] axes = {1}>
        { s = ReduceSum <keepdims = 1> (x, axes) y = ReduceMean <keepdims = 0> (s) }""",
    "of sums that are a result": """(float[5,3] x) => (float y, float[5] s) <int64[1] axes = {1}>
        { s = ReduceSum <keepdims = 0> (x, axes) y = ReduceMean <keepdims = 0> (s) }""",
    "of what is no sum": "(float[5] x) => (float y) { s = Neg (x) y = ReduceMean <keepdims = 0> (s) }",
    "of weighted sums": """(float[5,3] x, float[5] w) => (float y) <int64[1] axes = {1}>
        { s = ReduceSum <keepdims = 0> (x, axes) p = Mul (s, w) y = ReduceMean <keepdims = 0> (p) }""",
    "of unknown rows": """(float[N,3] x) => (float y) <int64[1] axes = {1}>
        { s = ReduceSum <keepdims = 0> (x, axes) y = ReduceMean <keepdims = 0> (s) }""",
}


@pytest.mark.parametrize("case", list(MEANS))
def test_mean_that_is_kept(fuse, case):
    assert fuse(f"g {MEANS[case]}", merge_reductions)["ReduceMean"] == 1


def test_mean_with_axes_as_attribute(fuse):
    text = """g (float[5,3] x) => (float y) <int64[1] axes = {1}>
        { s = ReduceSum <keepdims = 0> (x, axes) y = ReduceMean <keepdims = 0, axes = [0]> (s) }"""
    assert fuse(text, merge_reductions, opset=17)["ReduceMean"] == 1


@pytest.mark.parametrize("sign", ["x, minus", "minus, x"])
def test_a_difference_with_a_negative(fuse, sign):
    text = f"""g (float[5,3] w, float[5,3] x) => (float[5,3] y) <float minus = {{-1.0}}>
        {{ z = Mul ({sign}) y = Sub (w, z) }}"""
    assert fuse(text, simplify_products) == {"Add": 1}


FACTORS = {
    "sum": ("p = Mul (a, s) q = Mul (s, b) y = Add (p, q)", {"Add": 1, "Mul": 1}),
    "difference": ("p = Mul (a, s) q = Mul (b, s) y = Sub (p, q)", {"Sub": 1, "Mul": 1}),
    "sum of two": ("p = Mul (a, s) q = Mul (b, s) y = Sum (p, q)", {"Add": 1, "Mul": 1}),
    "second negated": (
        "n = Neg (s) p = Mul (a, s) q = Mul (b, n) y = Add (p, q)",
        {"Sub": 1, "Mul": 1},
    ),
    "first negated": (
        "n = Neg (s) p = Mul (a, n) q = Mul (b, s) y = Add (p, q)",
        {"Sub": 1, "Mul": 1},
    ),
    "difference from a negated": (
        "n = Neg (s) p = Mul (a, n) q = Mul (b, s) y = Sub (p, q)",
        {"Add": 1, "Mul": 1, "Neg": 1},
    ),
    "both negated": (
        "n = Neg (s) p = Mul (a, n) q = Mul (b, n) y = Sub (p, q)",
        {"Sub": 1, "Mul": 1},
    ),
}


@pytest.mark.parametrize("case", list(FACTORS))
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_a_common_factor(fuse, case, dtype):
    nodes, left = FACTORS[case]
    text = f"g ({dtype}[5,3] a, {dtype}[5,3] b, {dtype} s) => ({dtype}[5,3] y) {{ {nodes} }}"
    assert fuse(text, factor_out_scalars) == left


NO_FACTORS = {
    "two scalars": "(float[5,3] a, float[5,3] b, float s, float t) => (float[5,3] y) "
    "{ p = Mul (a, s) q = Mul (b, t) y = Add (p, q) }",
    "read twice": "(float[5,3] a, float[5,3] b, float s) => (float[5,3] y, float[5,3] u) "
    "{ p = Mul (a, s) q = Mul (b, s) y = Add (p, q) u = Neg (p) }",
    "other shapes": "(float[5,3] a, float[3] b, float s) => (float[5,3] y) "
    "{ p = Mul (a, s) q = Mul (b, s) y = Add (p, q) }",
    "a vector": "(float[5,3] a, float[5,3] b, float[3] s) => (float[5,3] y) "
    "{ p = Mul (a, s) q = Mul (b, s) y = Add (p, q) }",
}


@pytest.mark.parametrize("case", list(NO_FACTORS))
def test_products_without_a_common_factor(fuse, case):
    assert fuse(f"g {NO_FACTORS[case]}", factor_out_scalars)["Mul"] == 2


@pytest.mark.parametrize("keepdims, shape", [(0, ""), (1, "[1,1]")])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_a_sum_of_squares(fuse, keepdims, shape, dtype):
    text = f"""g ({dtype}[5,3] x) => ({dtype}{shape} y)
        {{ z = Mul (x, x) y = ReduceSum <keepdims = {keepdims}> (z) }}"""
    assert fuse(text, sum_of_squares) == {"ReduceSumSquare": 1}


SUMS = {
    "over some axes": """(float[5,3] x) => (float[5] y) <int64[1] axes = {1}>
        { z = Mul (x, x) y = ReduceSum <keepdims = 0> (z, axes) }""",
    "of products": """(float[3] x, float[3] w) => (float y)
        { z = Mul (x, w) y = ReduceSum <keepdims = 0> (z) }""",
    "of squares read twice": """(float[3] x) => (float y, float[3] u)
        { z = Mul (x, x) y = ReduceSum <keepdims = 0> (z) u = Neg (z) }""",
    "of squares that are a result": """(float[3] x) => (float y, float[3] z)
        { z = Mul (x, x) y = ReduceSum <keepdims = 0> (z) }""",
    "of integers": "(int64[3] x) => (int64 y) { z = Mul (x, x) y = ReduceSum <keepdims = 0> (z) }",
}


@pytest.mark.parametrize("case", list(SUMS))
def test_sum_that_is_kept(fuse, case):
    assert fuse(f"g {SUMS[case]}", sum_of_squares)["ReduceSum"] == 1


def test_an_identity_before_a_result(fuse):
    text = "g (float[3] x) => (float[3] y) { z = Neg (x) y = Identity (z) }"
    assert fuse(text, drop_identities) == {"Neg": 1}


def test_readers_of_a_renamed_tensor(fuse):
    text = "g (float[3] x) => (float[3] y, float[3] u) { z = Neg (x) y = Identity (z) u = Abs (z) }"
    assert fuse(text, drop_identities) == {"Neg": 1, "Abs": 1}


IDENTITIES = {
    "of an input": "(float[3] x) => (float[3] y) { y = Identity (x) }",
    "of a constant": "(float[3] x) => (float[3] y, float[3] u) <float[3] c> { y = Identity (c) u = Neg (x) }",
    "of a result": "(float[3] x) => (float[3] z, float[3] y) { z = Neg (x) y = Identity (z) }",
    "twice": "(float[3] x) => (float[3] y, float[3] u) { z = Neg (x) y = Identity (z) u = Identity (z) }",
    "inside": "(float[3] x) => (float[3] y) { z = Neg (x) i = Identity (z) y = Abs (i) }",
}


@pytest.mark.parametrize("case", list(IDENTITIES))
def test_identity_that_is_kept(fuse, case):
    text = IDENTITIES[case].replace("c>", "c = {1, 2, 3}>")
    assert fuse(f"g {text}", drop_identities)["Identity"] == 1


def test_identity_of_a_tensor_that_a_subgraph_reads(fuse):
    text = """g (float[3] x, bool c) => (float[3] y, float[3] u)
        { z = Neg (x) y = Identity (z)
          u = If (c) <then_branch = t () => (float[3] p) { p = Neg (z) },
                      else_branch = e () => (float[3] q) { q = Abs (z) }> }"""
    assert fuse(text, drop_identities, feeds={"c": np.array(True)})["Identity"] == 1


SLOPES = {
    "float": ({"Relu": 1, "HardSigmoid": 1}, np.float32),
    "double": ({"Relu": 1, "Mul": 1, "Clip": 1}, np.float64),
}


@pytest.mark.parametrize("dtype", list(SLOPES))
def test_sign_of_relu(fuse, dtype):
    operators, numpy_type = SLOPES[dtype]
    tiny, huge = np.finfo(numpy_type).tiny, np.finfo(numpy_type).max
    x = np.array([-huge, -1, -tiny, -0.0, 0, tiny, 2 * tiny, 0.7, 1, 3, huge, np.inf], numpy_type)
    text = f"g ({dtype}[12] x) => ({dtype}[12] y) {{ z = Relu (x) y = Sign (z) }}"
    assert fuse(text, replace_sign_of_relu, feeds={"x": x}) == operators


SIGNS = {
    "of something else": "(float[3] x) => (float[3] y) { z = Neg (x) y = Sign (z) }",
    "of integers": "(int32[3] x) => (int32[3] y) { z = Relu (x) y = Sign (z) }",
}


@pytest.mark.parametrize("case", list(SIGNS))
def test_sign_that_is_kept(fuse, case):
    assert fuse(f"g {SIGNS[case]}", replace_sign_of_relu)["Sign"] == 1
