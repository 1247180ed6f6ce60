"""The node tests of onnx: results, and gradients against finite differences."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto

from ortlearn.differentiation.gradient_model import gradient_model
from ortlearn.exceptions import ConversionError, ExecutionError, GradientError
from ortlearn.onnx_files.decompositions import decompose_operators
from ortlearn.onnx_files.loading import load_onnx
from ortlearn.runtime.readable_versions import FLOOR_OPSET, newest_opset

#: Number of elements of each input to change, and the step.
ELEMENTS, STEP = 6, np.float32(1e-2)
#: Inputs without gradient, which determine positions: regions and scales of Resize.
PLACES = {"roi", "scales"}
#: Functions with a step at an element that is zero.
STEPS = {"test_sign", "test_l2normalization_axis_0"}
#: Differences between the specification and onnxruntime 1.19.
OTHERWISE = {
    "test_averagepool_2d_ceil_last_window_starts_on_pad",
    "test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True",
    "test_maxpool_2d_ceil_output_size_reduce_by_one",
    "test_maxunpool_export_with_output_shape",
    "test_reversesequence_batch",
}
#: Inputs at many kinks at once, where a sum of valid slopes need not lie between the slopes of the sum.
KINKS = {"test_roialign_mode_max": "rois"}
#: Operators with random results.
RANDOM = {"Bernoulli", "Dropout", "RandomUniformLike", "RandomNormalLike"}


def session(model: ModelProto):
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def run(runner, feeds):
    """Return the outputs by name."""
    names = [value.name for value in runner.get_outputs()]
    kept = {value.name: feeds[value.name] for value in runner.get_inputs() if value.name in feeds}
    return dict(zip(names, runner.run(names, kept), strict=True))


def is_float(value):
    return isinstance(value, np.ndarray) and value.dtype == np.float32 and value.size > 0


def slopes_beside(total, array, index, length=STEP):
    """Return the one-sided derivatives by an element; at a kink, any value between them is valid."""
    sides = []
    for step in (-length, length):
        moved = array.copy()
        moved[index] += step
        sides.append((total(moved) - total(array)) / (float(moved[index]) - float(array[index])))
    return sorted(sides)


def check_gradient(model, runner, feeds, name, rng, length=STEP) -> str:
    """Return the error of the gradient of an input, or an empty text."""
    gradient = session(gradient_model(model, None, [name]))
    values = run(runner, feeds)
    seeds = {
        item.name: rng.normal(size=np.shape(values[item.name.removesuffix("_grad")])).astype(np.float32)
        for item in gradient.get_inputs()
        if item.name not in feeds
    }
    found = run(gradient, {**feeds, **seeds})[f"{name}_grad"]
    array = feeds[name]
    if found.shape != array.shape:
        return f"{name} has the shape {array.shape}, its gradient {found.shape}"

    def total(moved):
        try:
            outputs = run(runner, {**feeds, name: moved})
        except Exception:  # not all values are valid: some scales of Resize must be 1
            return np.nan
        pairs = [(outputs[key.removesuffix("_grad")], seed) for key, seed in seeds.items()]
        if any(output.shape != seed.shape for output, seed in pairs):
            return np.nan  # the element determines shapes
        return sum(float(np.vdot(output.astype(float), seed)) for output, seed in pairs)

    largest = np.abs(found).max()
    for number in rng.permutation(array.size)[:ELEMENTS]:
        index = np.unravel_index(number, array.shape)
        low, high = slopes_beside(total, array, index, length)
        bound = 1e-3 + 0.02 * max(abs(low), abs(high), 0.1 * largest)
        if np.isfinite(low + high) and not low - bound <= found[index] <= high + bound:
            return f"{name}{list(map(int, index))}: {found[index]}, and slopes {low:.4g} and {high:.4g}"
    return ""


def outcome(case, rng) -> tuple[str, str]:
    """Return the outcome of a case, and its error."""
    feeds = {v.name: a for v, a in zip(case.model.graph.input, case.data_sets[0][0], strict=False)}
    if not any(map(is_float, feeds.values())) or not all(isinstance(a, np.ndarray) for a in feeds.values()):
        return "no arrays of float32", ""
    if RANDOM & {node.op_type for node in case.model.graph.node}:
        return "random", ""
    try:
        model = decompose_operators(load_onnx(case.model))
    except (ConversionError, ExecutionError, GradientError):
        return "refused", ""
    try:
        runner = session(model)
        values = run(runner, feeds)
    except Exception:  # onnxruntime has several errors for missing kernels
        return "onnxruntime does not compute it", ""
    wrong = "" if case.name in OTHERWISE else _wrong_outputs(case, feeds, values)
    if wrong or case.name in STEPS | OTHERWISE:
        return "computed", wrong
    if not any(map(is_float, values.values())) or not all(
        np.isfinite(a).all() for a in (*feeds.values(), *values.values()) if is_float(a)
    ):
        return "computed", ""
    if case.name in KINKS:
        moved = feeds[KINKS[case.name]]
        feeds[KINKS[case.name]] = (moved + 0.037 * rng.uniform(-1, 1, moved.shape)).astype(moved.dtype)
    kept, end = {item.name for item in runner.get_inputs()}, "differentiated"
    for name, array in feeds.items():
        if is_float(array) and name in kept - PLACES:
            try:
                wrong = check_gradient(model, runner, feeds, name, rng, 0.002 if case.name in KINKS else STEP)
            except GradientError:
                end = "no gradient"
            if wrong:
                return end, wrong
    return end, ""


def _wrong_outputs(case, feeds, values) -> str:
    """Return the output that differs from both onnx and onnxruntime, which differ in some cases."""
    expected = dict(zip(values, case.data_sets[0][1], strict=False))
    for name, array in expected.items():
        if not is_float(array) or np.allclose(values[name], array, rtol=1e-3, atol=1e-4, equal_nan=True):
            continue
        try:
            own = run(session(case.model), feeds)[name]
        except Exception:  # unsupported version
            return f"{name} is not what onnx says"
        if not np.allclose(values[name], own, rtol=1e-4, atol=1e-5, equal_nan=True):
            return f"{name} is neither what onnx says nor what onnxruntime computes"
    return ""


@pytest.mark.slow
def test_node_tests_of_onnx():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = collect_testcases(None)
    rng, ends, wrong = np.random.default_rng(0), Counter[str](), {}
    for case in cases:
        end, problem = outcome(case, rng)
        ends[end] += 1
        if problem:
            wrong[case.name] = problem
    assert not wrong, f"{ends}\n" + "\n".join(f"{name}: {problem}" for name, problem in wrong.items())
    assert ends["differentiated"] > (1000 if newest_opset() > FLOOR_OPSET else 850), ends
