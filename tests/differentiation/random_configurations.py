"""Random configurations of operators with many attributes and optional inputs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

__all__ = ["OPERATORS", "Configuration", "configuration"]

ACTIVATIONS = "Sigmoid Tanh Relu HardSigmoid LeakyRelu Elu Softsign ScaledTanh Affine ThresholdedRelu".split()
COORDINATES = "half_pixel asymmetric align_corners pytorch_half_pixel tf_crop_and_resize half_pixel_symmetric"


class Configuration(NamedTuple):
    """A model of one node, values of its inputs, and the inputs along which its outputs are smooth."""

    model: ModelProto
    feeds: dict[str, np.ndarray]
    smooth: list[str]


class _Draw:
    """Random choices."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)

    def of(self, *values):
        return values[self.rng.integers(len(values))]

    def size(self, low: int = 1, high: int = 4) -> int:
        return int(self.rng.integers(low, high))

    def sizes(self, n: int, high: int = 4) -> list[int]:
        return [self.size(1, high) for _ in range(n)]

    def normal(self, *shape) -> np.ndarray:
        return self.rng.normal(size=shape).astype(np.float32)

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def some(self, share: float, **options) -> dict:
        return options if self.chance(share) else {}


def recurrent(d: _Draw):
    kind = d.of("LSTM", "GRU", "RNN")
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    direction = d.of("forward", "reverse", "bidirectional")
    n = 2 if direction == "bidirectional" else 1
    steps, batch, width, hidden = d.sizes(4)
    lengths = d.rng.integers(1, steps + 1, size=batch).astype(np.int32)
    state = (n, batch, hidden)
    optional = [d.normal(n, 2 * gates * hidden), lengths, d.normal(*state)]
    optional += [d.normal(*state), d.normal(n, 3 * hidden)] if kind == "LSTM" else []
    first = [
        d.normal(steps, batch, width),
        d.normal(n, gates * hidden, width),
        d.normal(n, gates * hidden, hidden),
    ]
    inputs = first + [array if d.chance(0.6) else None for array in optional]
    count = {"LSTM": 3, "GRU": 2, "RNN": 1}[kind] * n
    options = {"hidden_size": hidden, "direction": direction} | d.some(0.3, clip=d.of(0.5, 3.0))
    options |= d.some(0.5, activations=[d.of(*ACTIVATIONS) for _ in range(count)])
    for name in ("alpha", "beta"):
        numbers = [float(d.rng.uniform(0.1, 1)) for _ in range(d.of(1, count))]
        options |= d.some(0.4, **{f"activation_{name}": numbers})
    options |= d.some(0.2, input_forget=1) if kind == "LSTM" else {}
    options |= d.some(0.4, linear_before_reset=1) if kind == "GRU" else {}
    return kind, 18, inputs, options, 3 if kind == "LSTM" else 2


def attention(d: _Draw):
    batch, heads, queries = d.sizes(3)
    keys, size, past = d.size(), d.of(2, 4), d.of(0, 0, 2)
    groups, columns = d.of(heads, 1), d.of(size, 3)
    shapes = ((heads, queries, size), (groups, keys, size), (groups, keys, columns))
    flat = d.chance(0.4)
    inputs = [d.normal(batch, s[1], s[0] * s[2]) if flat else d.normal(batch, *s) for s in shapes]
    mask = d.of(None, d.normal(queries, keys + past), d.rng.random(size=(queries, keys + past)) < 0.7)
    if mask is not None and mask.dtype == bool:
        mask[:, 0] = True  # a query without keys has no defined result
    inputs.append(mask)
    inputs += [d.normal(batch, groups, past, size), d.normal(batch, groups, past, columns)] if past else []
    options = {"q_num_heads": heads, "kv_num_heads": groups} if flat else {}
    options |= d.some(0.3, is_causal=1) | d.some(0.3, scale=0.7) | d.some(0.3, softcap=5.0)
    return "Attention", 23, inputs, options, 3 if past else 1


def resize(d: _Draw):
    n = d.of(1, 2, 2, 3)
    x = d.normal(*d.sizes(2, 3), *d.sizes(n, 6))
    axes = sorted(d.rng.permutation(x.ndim)[: d.size(1, x.ndim + 1)].tolist()) if d.chance(0.4) else None
    chosen = range(x.ndim) if axes is None else axes
    options = {"mode": d.of("nearest", "linear", "cubic"), "axes": axes}
    options |= d.some(0.6, coordinate_transformation_mode=d.of(*COORDINATES.split()))
    options |= d.some(0.4, nearest_mode=d.of("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"))
    options |= (
        d.some(0.3, antialias=1) | d.some(0.2, exclude_outside=1) | d.some(0.2, extrapolation_value=0.3)
    )
    crop = options.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    roi = np.array([0.2] * len(chosen) + [0.9] * len(chosen), np.float32) if crop else None
    if d.chance(0.5):
        scales = [1.0 if axis < 2 else d.of(0.5, 1.0, 1.5, 2.7) for axis in chosen]
        return "Resize", 19, [x, roi, np.array(scales, np.float32)], options, 1
    options |= d.some(0.3, keep_aspect_ratio_policy=d.of("not_larger", "not_smaller", "stretch"))
    sizes = np.array([x.shape[axis] if axis < 2 else d.size(1, 8) for axis in chosen])
    return "Resize", 19, [x, roi, None, sizes], options, 1


def grid_sample(d: _Draw):
    n = d.of(2, 2, 3)
    x = d.normal(*d.sizes(2, 3), *d.sizes(n, 5))
    grid = d.rng.uniform(-1.4, 1.4, size=[x.shape[0], *d.sizes(n), n]).astype(np.float32)
    options = d.some(0.7, mode=d.of("linear", "nearest", "cubic")) | d.some(0.5, align_corners=1)
    options |= d.some(0.6, padding_mode=d.of("zeros", "border", "reflection"))
    return "GridSample", 20, [x, grid], options, 1


def roi_align(d: _Draw):
    x, n = d.normal(*d.sizes(2, 3), d.size(2, 7), d.size(2, 7)), d.size(0)
    corners = np.sort(d.rng.uniform(-1, 8, size=(n, 2, 2)), axis=1).reshape(n, 4).astype(np.float32)
    options = d.some(0.5, sampling_ratio=d.size(0)) | d.some(0.5, spatial_scale=d.of(0.25, 0.5))
    options |= d.some(0.7, output_height=d.size(), output_width=d.size()) | d.some(0.5, mode="max")
    options |= d.some(0.4, coordinate_transformation_mode="output_half_pixel")
    return "RoiAlign", 16, [x, corners, d.rng.integers(0, len(x), size=n)], options, 1


def einsum(d: _Draw):
    sizes = dict(zip("abcd", d.sizes(4), strict=True))
    terms = ["".join(d.of(*sizes) for _ in range(d.size(0))) for _ in range(d.of(1, 2, 2, 3))]
    arrays = [d.normal(*(sizes[letter] for letter in term)) for term in terms]
    left = d.of(",", " , ").join(terms)
    kept = [letter for letter in sorted({*"".join(terms)}) if d.chance(0.6)]
    right = "->" + "".join(d.rng.permutation(kept)) if kept and d.chance(0.8) else d.of("", "->")
    return "Einsum", 18, arrays, {"equation": left + right}, 1


def scatter_nd(d: _Draw):
    shape, k = d.sizes(d.size()), 1
    k = d.size(1, len(shape) + 1)
    count = d.size(0, 1 + int(np.prod(shape[:k])))
    flat = d.rng.permutation(int(np.prod(shape[:k])))[:count]
    indices = np.stack(np.unravel_index(flat, shape[:k]), -1)
    options = d.some(0.7, reduction=d.of("none", "add", "mul", "max", "min"))
    return "ScatterND", 18, [d.normal(*shape), indices, d.normal(count, *shape[k:])], options, 1


def top_k(d: _Draw):
    shape = d.sizes(d.size(), 5)
    axis = d.size(-len(shape), len(shape))
    options = d.some(0.5, largest=0) | d.some(0.5, sorted=0) | {"axis": axis}
    return "TopK", 18, [d.normal(*shape), np.array([d.size(0, shape[axis] + 1)])], options, 1


def cumulative_sum(d: _Draw):
    x = d.normal(*d.sizes(d.size(), 5))
    axis = np.array(d.size(-x.ndim, x.ndim), d.of(np.int64, np.int32))
    return "CumSum", 18, [x, axis], d.some(0.5, exclusive=1) | d.some(0.5, reverse=1), 1


OPERATORS = (recurrent, attention, resize, grid_sample, roi_align, einsum, scatter_nd, top_k, cumulative_sum)


def configuration(operator, seed: int) -> Configuration:
    """Return a node with static, named or unknown sizes, and constant or given inputs that are no data."""
    d = _Draw(seed)
    kind, opset, arrays, options, n_outputs = operator(d)
    sizes, has_constants = d.of("static", "named", "unknown"), d.chance(0.5)
    names, inputs, constants, feeds = [], [], [], {}
    for i, array in enumerate(arrays):
        names.append("" if array is None else f"i{i}")
        if array is None:
            continue
        feeds[f"i{i}"] = array
        if has_constants and (array.dtype != np.float32 or (kind == "Resize" and i)):
            constants.append(numpy_helper.from_array(array, f"i{i}"))
            continue
        dims = {"static": array.shape, "named": [f"n{i}{j}" for j in range(array.ndim)]}
        shape = dims.get(sizes, [None] * array.ndim)
        elem = helper.np_dtype_to_tensor_dtype(array.dtype)
        inputs.append(helper.make_tensor_value_info(f"i{i}", elem, shape))
    while not names[-1]:
        names.pop()
    outputs = [helper.make_tensor_value_info(f"o{i}", TensorProto.FLOAT, None) for i in range(n_outputs)]
    results = ["o0", "indices"] if kind == "TopK" else [value.name for value in outputs]
    known = {name: value for name, value in options.items() if value is not None}
    node = helper.make_node(kind, names, results, name="n", **known)
    graph = helper.make_graph([node], "one", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    # Pixels jump between neighbours along a grid, regions and scales.
    smooth = {"Resize": ["i0"], "GridSample": ["i0"], "RoiAlign": ["i0"]}.get(kind)
    floats = [name for name, array in feeds.items() if array.dtype == np.float32]
    return Configuration(model, feeds, [name for name in floats if smooth is None or name in smooth])
