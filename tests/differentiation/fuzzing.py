"""Gradients of random models against finite differences: ``python -m tests.differentiation.fuzzing 0 8000``.

Each seed is one model: a single operator, or three to twelve nodes including control flow. Models are built,
differentiated and run in separate processes, which may be killed.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import sys
import time
import traceback

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

from ortlearn.differentiation.gradient_model import gradient_model
from ortlearn.differentiation.rounding import RoundingError
from ortlearn.exceptions import GradientError
from tests.differentiation.random_models import Generator, Misfit, load, run_model
from tests.differentiation.random_operators import CONTROL, MAKERS, ROUNDING

__all__ = ["OUTCOMES", "check_seed", "check_seeds"]

#: Outcomes of a seed; the last three are defects.
OUTCOMES = {
    "right": "equal to finite differences in float64",
    "float32": "equal within the precision of a float32 kernel",
    "kink": "one-sided derivatives differ",
    "refused": "an error with a reason",
    "no kernel": "onnxruntime has no float64 kernel for an operator of the gradient",
    "empty": "onnxruntime rejects an operator of the gradient on empty tensors",
    "nothing": "no operator fitted, or the model does not run",
    "model stops": "the model itself terminates the process, before it is differentiated",
    "wrong": "different from finite differences",
    "failed": "an error of another kind",
    "stopped": "the gradient terminates the process",
}
GOOD = ("right", "float32", "kink", "refused", "no kernel", "empty", "nothing", "model stops")
#: Seconds after which a seed counts as stopped.
TIMEOUT = 60


def make(seed):
    """Return a model, the values of its inputs, and the inputs to differentiate."""
    rng = np.random.default_rng(seed)
    g = Generator(rng, int(rng.integers(13, 22)), empty=rng.random() < 0.15)
    for _ in range(int(rng.integers(2, 4))):
        g.add_input(g.normal(g.dims(int(rng.choice([0, 1, 2, 2, 3, 4])))))
    length = 1 if rng.random() < 0.4 else int(rng.integers(3, 13))
    made, tries = [], 0
    while len(made) < length and tries < 12 * length:
        tries += 1
        table = CONTROL if rng.random() < 0.12 else ROUNDING if rng.random() < 0.01 else MAKERS
        try:
            made.append(g.choice(table)(g))
        except Misfit:
            continue
    read = {name for node in g.nodes for name in node.input}
    ends = [n for n in dict.fromkeys([*made[-2:], *made]) if n not in read or n in made[-2:]]
    ends = [n for n in ends if g.values[n].dtype == np.float64 and n not in g.inputs]
    if not ends:
        return None
    wrt = [n for n in g.inputs if g.values[n].dtype == np.float64]
    feeds = {n: g.values[n] for n in g.inputs}
    return g.build(ends[:4]), feeds, wrt, g.precision


def check_seed(seed, say=lambda phase: None, differentiate=gradient_model):
    """Return the outcome of a seed, and details."""
    say("make")
    made = make(seed)
    if made is None or not made[2]:
        return "nothing", ""
    model, feeds, wrt, precision = made
    try:
        run = load(model)
    except NoKernel as error:
        return "no kernel", f"the model: {error}"
    try:
        values = run(feeds)
    except Exception as error:  # although each node is supported
        return "nothing", f"the model does not run: {error}"
    say("differentiate")
    try:
        onx = differentiate(model, None, wrt)
    except RoundingError as error:
        return "refused", f"rounds: {error}"
    except GradientError as error:
        return "refused", str(error)
    except Exception:
        return "failed", traceback.format_exc()
    rng = np.random.default_rng(seed)
    weights = {o.name: rng.normal(size=np.shape(v)) for o, v in zip(model.graph.output, values, strict=True)}
    seeds = {f"{name}_grad": value for name, value in weights.items()}
    narrow = False
    empty = any(value.size == 0 for value in (*feeds.values(), *values))
    try:
        grads = run_model(onx, {**feeds, **seeds})
    except NoKernel:
        try:
            grads = in_float32(model, wrt, {**feeds, **seeds}, differentiate)
        except NoKernel as error:
            return "no kernel", str(error)
        except Exception as error:
            return ("empty" if empty else "failed"), f"the gradient does not run: {error}"
        narrow = True
    except Exception as error:
        return "empty" if empty else "failed", f"the gradient does not run: {error}"
    worst = ("right", "")
    for name, grad in zip(wrt, grads, strict=True):
        if grad.shape != feeds[name].shape or grad.dtype != feeds[name].dtype:
            return (
                "wrong",
                f"{name}: {grad.dtype}{grad.shape} instead of {feeds[name].dtype}{feeds[name].shape}",
            )
        outcome, text = compare(run, feeds, name, grad, weights, rng, precision, narrow)
        if list(OUTCOMES).index(outcome) > list(OUTCOMES).index(worst[0]):
            worst = outcome, text
    return worst


class Line:
    """The weighted sum of the outputs of a model along a line."""

    def __init__(self, run, feeds, name, direction, weights):
        self.run, self.feeds, self.name, self.direction = run, feeds, name, direction
        self.weights, self.scale = weights, 0.0

    def __call__(self, t):
        moved = self.feeds[self.name] + t * self.direction
        found = self.run({**self.feeds, self.name: np.asarray(moved)})
        products = [w * v for w, v in zip(self.weights.values(), found, strict=True)]
        self.scale = max(self.scale, sum(float(np.abs(p).sum()) for p in products))
        return sum(float(p.sum()) for p in products)


def in_float32(model, wrt, feeds, differentiate):
    """Return the gradients of a model computed in float32, converted to float64."""
    model = in_single(model)
    narrow = {n: v.astype(np.float32) if v.dtype == np.float64 else v for n, v in feeds.items()}
    return [grad.astype(np.float64) for grad in run_model(differentiate(model, None, wrt), narrow)]


def in_single(message):
    """Return a copy of a model, or of a part of it, with float32 for float64."""
    message = type(message).FromString(message.SerializeToString())
    for graph in [message.graph] if isinstance(message, ModelProto) else [message]:
        for value in (*graph.input, *graph.output):
            kind = value.type.tensor_type
            kind.elem_type = {TensorProto.DOUBLE: TensorProto.FLOAT}.get(kind.elem_type, kind.elem_type)
        for tensor in graph.initializer:
            if tensor.data_type == TensorProto.DOUBLE:
                array = numpy_helper.to_array(tensor).astype(np.float32)
                tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        for attribute in (a for node in graph.node for a in node.attribute):
            if attribute.name == "to" and attribute.i == TensorProto.DOUBLE:
                attribute.i = TensorProto.FLOAT
            elif attribute.HasField("g"):
                attribute.g.CopyFrom(in_single(attribute.g))
    return message


def compare(run, feeds, name, grad, weights, rng, precision, narrow):
    """Compare one gradient with the slope along a random direction.

    ``precision`` is the relative error of the model, ``narrow`` whether the gradient is float32.
    """
    if not grad.size:
        return "right", ""
    direction = rng.normal(size=grad.shape)
    along = Line(run, feeds, name, direction, weights)
    products = grad * direction
    slope, size = float(products.sum()), float(np.abs(products).sum())
    middle = along(0.0)
    exact = precision < 1e-12
    steps = (1e-4, 1e-5, 1e-6) if exact else (1e-2, 3e-3) if precision < 1e-4 else (1e-1, 3e-2)
    tolerance = 2e-2 if not exact else 2e-3 if narrow else 2e-5
    slopes = []
    for h in steps:
        up, down = along(h) - middle, middle - along(-h)
        noise = 8 * precision * along.scale / h
        central, left, right = (up + down) / (2 * h), down / h, up / h
        slopes.append((left, right, noise))
        if abs(central - slope) <= noise + tolerance * (size + abs(central)) + (1e-4 if narrow else 1e-7):
            return ("right" if exact and not narrow else "float32"), ""
    text = f"{name}: {slope} instead of {left} to the left, {right} to the right"
    if not np.isfinite([left, right]).all():
        return "kink", f"not finite: {text}"
    if np.isfinite(slope) and (_one_sided(slope, slopes, size) or _jumps(slopes)):
        return "kink", text
    grain = _grain(along)
    if np.isfinite(slope) and grain > 1e-12 * along.scale:
        return _compare_coarse(along, middle, slope, size, grain, text)
    return "wrong", text


def _one_sided(slope, slopes, size):
    """Return whether one-sided derivatives differ, or one of them equals the gradient."""
    left, right, noise = slopes[-1]
    far = abs(left - right)
    near = min(abs(left - slope), abs(right - slope))
    close = (2e-2 if noise > 1e-6 else 1e-3) * (size + abs(slope))
    differ = far > 3 * noise + 1e-3 * (abs(left) + abs(right)) / 2
    return differ or (far > 10 * close and far > 1.5 * noise and near < close + noise)


def _jumps(slopes):
    """Return whether slopes grow for smaller steps: the function is not continuous."""
    first, last = (abs(left + right) / 2 for left, right, _ in (slopes[0], slopes[-1]))
    return last > 2.5 * first + 1e-6 and last > 2 * slopes[-1][2]


def _grain(along):
    """Return the noise of the sum between adjacent points."""
    jumps = []
    for step in (1e-11, 3e-8, 1e-7):
        values = np.array([along(k * step) for k in range(6)])
        jumps.append(float(np.abs(np.diff(values, 2)).max()))
    return max(jumps)


def _compare_coarse(along, middle, slope, size, grain, text):
    for h in (3e-2, 1e-2, 3e-3, 1e-3):
        up, down = along(h) - middle, middle - along(-h)
        central = (up + down) / (2 * h)
        if abs(central - slope) <= 4 * grain / h + 5e-2 * (size + abs(central)):
            return "float32", text
        if abs(up - down) / h > 8 * grain / h + 0.2 * (abs(up) + abs(down)) / h:
            return "kink", text
    return "wrong", text


def _work(first, last, queue):
    for seed in range(first, last):
        queue.put((seed, "begin", ""))
        try:
            outcome, text = check_seed(seed, lambda phase, seed=seed: queue.put((seed, phase, "")))
        except Exception:
            outcome, text = "failed", traceback.format_exc()
        queue.put((seed, "end", (outcome, text)))


def check_seeds(first, last, report=print):
    """Check seeds in processes that may be killed, and return the number of each outcome, and defects."""
    context = multiprocessing.get_context("spawn")
    counts, bad = collections.Counter(), []
    while first < last:
        queue = context.SimpleQueue()
        worker = context.Process(target=_work, args=(first, min(first + 400, last), queue))
        worker.start()
        phase, seed, end = "begin", first, min(first + 400, last)
        heard = time.monotonic()
        while first < end:
            if queue.empty():
                worker.join(0.02)
                if worker.exitcode is not None and queue.empty():
                    break
                if time.monotonic() - heard > TIMEOUT:
                    worker.kill()
                continue
            seed, phase, found = queue.get()
            heard = time.monotonic()
            if phase == "end":
                counts[found[0]] += 1
                if found[0] not in GOOD:
                    bad.append((seed, *found))
                    report(seed, *found)
                first = seed + 1
        worker.join()
        if first < end:
            outcome = "stopped" if phase == "differentiate" else "model stops"
            counts[outcome] += 1
            if outcome == "stopped":
                bad.append((seed, outcome, ""))
            report(seed, outcome, f"exit code {worker.exitcode}")
            first = seed + 1
    return counts, bad


def main(arguments=None):
    """Check seeds from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--one", action="store_true", help="show one seed, in this process")
    options = parser.parse_args(arguments)
    if options.one:
        for seed in range(options.first, options.last):
            made = make(seed)
            print(made[0] if made else None, made and made[1])
            print(check_seed(seed))
        return 0
    counts, bad = check_seeds(options.first, options.last)
    for outcome, text in OUTCOMES.items():
        print(f"{counts[outcome]:6d}  {outcome}: {text}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
