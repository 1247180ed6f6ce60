"""Gradient rules against finite differences at one opset, and against each other at all opsets."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from onnx import checker, helper

from ortlearn.differentiation.gradient_model import gradient_model
from ortlearn.differentiation.registry import load_rules
from ortlearn.exceptions import GradientError
from ortlearn.graphs import copy_model
from ortlearn.testing import check_gradient_rule, make_node_model
from tests.differentiation.evaluation import run, run_onnxruntime, run_reference
from tests.differentiation.records import ELSEWHERE, RECORDS

CASES = [pytest.param(record, id=str(record)) for record in RECORDS]

#: For operators in float32 only, or with float32 results. Many directions are used, because the tolerance may
#: be more than 1 % along a direction in which most of the gradient cancels.
SINGLE = {"step": 3e-3, "rtol": 5e-3, "atol": 1e-4, "projections": 20}


def node_model(record, opset=None, dtype=np.float64, symbolic=False, n_samples=None):
    dtype = np.float32 if record.single else dtype
    arrays = [None if a is None else np.asarray(a) for a in record.arrays()]
    length = len(arrays[0]) if arrays[0].ndim else None
    for i, array in enumerate(arrays):
        if array is not None:
            if n_samples is not None and i not in record.constants and array.ndim and len(array) == length:
                array = array[:n_samples]
            arrays[i] = array.astype(dtype) if array.dtype.kind == "f" else array
    return make_node_model(
        record.op_type,
        *arrays,
        attributes=record.attributes,
        domain=record.domain,
        opset=opset or record.opsets[-1],
        n_outputs=record.n_outputs,
        constants=record.constants,
        symbolic=symbolic,
        run=run,
    )


def wanted(record, feeds, names):
    positions = range(len(names)) if record.wrt is None else record.wrt
    return [names[i] for i in positions if names[i] in feeds and feeds[names[i]].dtype.kind == "f"]


def gradient_of(record, model, feeds, names):
    onx = gradient_model(model, None, wanted(record, feeds, names))
    checker.check_model(onx, full_check=True)
    return onx


def seeds_of(onx, model, feeds, runner):
    outputs = dict(zip([o.name for o in model.graph.output], runner(model, feeds), strict=True))
    seeds = {}
    for value in onx.graph.input:
        if value.name not in feeds:
            shape = np.shape(outputs[value.name.removesuffix("_grad")])
            dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            seeds[value.name] = np.asarray(np.random.default_rng(1).normal(size=shape), dtype)
    return seeds


@cache
def in_float64(record):
    """Return the model of a record, its gradient with values to feed and results, and names of inputs."""
    model, feeds, names = node_model(record)
    onx = gradient_of(record, model, feeds, names)
    feeds |= seeds_of(onx, model, feeds, run)
    return model, onx, feeds, run(onx, feeds), names


@pytest.mark.sweep(330)
@pytest.mark.parametrize("record", CASES)
def test_finite_differences(record):
    check_gradient_rule(
        record.op_type,
        *record.arrays(),
        attributes=record.attributes,
        domain=record.domain,
        opset=record.opsets[-1],
        n_outputs=record.n_outputs,
        constants=record.constants,
        wrt=record.wrt,
        run=run,
        **(SINGLE if record.single else {}),
    )


def structure(onx):
    """Return the nodes of a gradient graph, which may be equal for different opsets."""
    parts = (*onx.graph.node, *onx.graph.initializer)
    return [part.SerializeToString(deterministic=True) for part in parts]


@pytest.mark.sweep(25, slow=135)
@pytest.mark.parametrize("record", CASES)
def test_float32_in_onnxruntime_at_all_opsets(record):
    """The first dimension is named or known."""
    _, _, given, expected, _ = in_float64(record)
    for symbolic in {record.symbolic, False}:
        seen = []
        for opset in reversed(record.opsets):
            single, feeds, names = node_model(record, opset, np.float32, symbolic)
            onx = gradient_of(record, single, feeds, names)
            if structure(onx) in seen:
                continue  # the same nodes, valid at this opset
            seen.append(structure(onx))
            types = {value.name: value.type.tensor_type.elem_type for value in onx.graph.input}
            seeds = {name: given[name] for name in types.keys() - feeds.keys()}
            seeds = {k: v.astype(helper.tensor_dtype_to_np_dtype(types[k])) for k, v in seeds.items()}
            runner = run_onnxruntime if record.kernel else run_reference
            got = runner(onx, {**feeds, **seeds})
            for name, left, right in zip(wanted(record, feeds, names), got, expected, strict=True):
                assert left.dtype == np.float32 and left.shape == feeds[name].shape
                np.testing.assert_allclose(left, right, rtol=2e-3, atol=2e-4, err_msg=f"opset {opset}")


@pytest.mark.sweep(44, slow=120)
@pytest.mark.parametrize("record", [record for record in CASES if record.values[0].second])
def test_second_derivative(record):
    _, onx, feeds, _, names = in_float64(record)
    inputs, fixed = [value.name for value in onx.graph.input], {*names} - {*wanted(record, feeds, names)}
    wrt = [i for i, name in enumerate(inputs) if name not in fixed]
    values = [feeds[name] for name in inputs]
    check_gradient_rule(onx, *values, wrt=wrt, run=run, **(SINGLE if record.single else {"rtol": 1e-5}))


def has_batch(record):
    return record.empty and record.symbolic and record.arrays()[0].ndim > 0


# numpy warns of means and logarithms of empty arrays
@pytest.mark.sweep(130)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("record", [record for record in CASES if has_batch(record.values[0])])
def test_empty_batch(record):
    whole, full, names = node_model(record, dtype=np.float32, symbolic=True)
    empty, feeds, _ = node_model(record, dtype=np.float32, n_samples=0)
    onx = gradient_of(record, whole, full, names)
    # Gemm and some reductions of onnxruntime 1.19 reject a matrix without samples.
    got = run_reference(onx, {**feeds, **seeds_of(onx, empty, feeds, run_reference)})
    for name, grad in zip(wanted(record, feeds, names), got, strict=True):
        assert grad.shape == feeds[name].shape
        if feeds[name].size:
            np.testing.assert_array_equal(grad, 0)


def test_every_rule_has_a_record():
    table = load_rules()
    tested = {(record.domain, record.op_type) for record in RECORDS} | ELSEWHERE
    rules = {key for key in table.keys() if not isinstance(table.find(*key), str)}
    assert not table.failures
    assert rules == tested


#: Modes that require known dimensions, with errors.
NEED_DIMENSIONS = {"SAME_UPPER", "SAME_LOWER"}


def without_dimensions(model):
    """Return a model with known ranks of inputs and outputs, and known dimensions of kernels only."""
    model = copy_model(model)
    (node,) = model.graph.node
    has_weights = node.op_type.startswith("Conv") or node.domain == "com.microsoft"
    kernels = model.graph.input[1:] if has_weights else ()
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if value not in kernels:
                dim.Clear()
    return model


@pytest.mark.sweep(110, slow=110)
@pytest.mark.parametrize("record", CASES)
def test_unknown_dimensions(record):
    known, _, feeds, expected, names = in_float64(record)
    model = without_dimensions(known)
    outside = record.op_type == "AveragePool" and {"ceil_mode", "pads"} & set(record.attributes)
    modes = NEED_DIMENSIONS.intersection(map(str, record.attributes.values()))
    counted = "count_include_pad" in record.attributes and "ceil_mode" not in record.attributes
    if modes or (outside and not counted):
        with pytest.raises(GradientError, match="must be known|needs known"):
            gradient_model(model, None, wanted(record, feeds, names))
        return
    found = run(gradient_model(model, None, wanted(record, feeds, names)), feeds)
    rtol = 1e-4 if record.single else 1e-9
    for got, array in zip(found, expected, strict=True):
        assert got.shape == array.shape
        np.testing.assert_allclose(got, array, rtol=rtol, atol=rtol)
