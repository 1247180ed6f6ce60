"""ONNX models of images and sequences, and the same networks in NumPy."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, numpy_helper, parser
from scipy.special import log_softmax

from ortlearn.learning_rates import LearningRateSGD

__all__ = [
    "FILES",
    "ONE_STEP",
    "RATE",
    "ArrayFile",
    "dtype_of",
    "objective",
    "position_losses",
    "trainer",
    "weights_of",
]


@dataclass(frozen=True)
class ArrayFile:
    """An ONNX model, its inputs, and its scores in NumPy.

    ``labels`` is the shape of the labels of a sample. ``axis`` is the axis of the classes in the scores, or
    None for a regressor or for scores of the shape of the labels.
    """

    nodes: str
    x_shape: tuple
    y_shape: tuple
    weights: dict
    scores: Callable
    labels: tuple
    axis: int | None = None
    n_classes: int = 0

    def model(self, dtype=np.float32, symbolic=False) -> ModelProto:
        """Return the ONNX model."""
        kind = "float" if dtype == np.float32 else "double"

        def dims(shape):
            return ",".join(["N", *(str(s) if not symbolic or s != self.length else "T" for s in shape)])

        text = (
            f'<ir_version: 8, opset_import: ["": 18]> g ({kind}[{dims(self.x_shape)}] x) => '
            f"({kind}[{dims(self.y_shape)}] y) {{ {self.nodes} }}"
        )
        model = parser.parse_model(text)
        arrays = self.draw(dtype)
        model.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in arrays.items())
        return model

    @property
    def length(self):
        """Length of the sequences."""
        return 5

    def draw(self, dtype=np.float32, seed=0):
        """Return random weights."""
        rng = np.random.default_rng(seed)
        return {
            name: (value if isinstance(value, np.ndarray) else rng.normal(0, 0.3, value).astype(dtype))
            for name, value in self.weights.items()
        }

    def samples(self, n=12, dtype=np.float32, seed=1):
        """Return X and y."""
        rng = np.random.default_rng(seed)
        X = rng.normal(0, 1, (n, *self.x_shape)).astype(dtype)
        if self.n_classes:
            return X, rng.integers(0, self.n_classes, (n, *self.labels))
        return X, rng.normal(0, 1, (n, *self.labels)).astype(dtype)


def convolution(x, w, b):
    """Return the convolution of x with a square kernel, in the shape of x."""
    pad = w.shape[2] // 2
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w) + b.reshape(1, -1, 1, 1)


def _images(x, w, b, v, c, **_):
    hidden = np.maximum(convolution(x, w, b), 0).mean(axis=(2, 3))
    return hidden @ v + c


def _pixels(x, w, b, v, c):
    return convolution(np.maximum(convolution(x, w, b), 0), v, c)


def _steps(x, w, b, v, c):
    return np.tanh(x @ w + b) @ v + c


def _forecast(x, w, b, v, c, **_):
    hidden = np.tanh(x @ w + b)  # (n, t, h)
    return np.swapaxes(np.swapaxes(hidden, 1, 2) @ v, 1, 2) + c


CONV = "h0 = Conv <pads = [1,1,1,1]> (x, w, b) h = Relu (h0)"
DENSE = "m = MatMul (x, w) a = Add (m, b) h = Tanh (a) k = MatMul (h, v) z = Add (k, c)"
PIXEL_WEIGHTS = {"w": (3, 2, 3, 3), "b": (3,), "v": (4, 3, 1, 1), "c": (4,)}
STEP_WEIGHTS = {"w": (3, 6), "b": (6,), "v": (6, 4), "c": (4,)}
FILES = {
    "images": ArrayFile(
        f"{CONV} p = GlobalAveragePool (h) f = Flatten (p) k = MatMul (f, v) y = Add (k, c)",
        (2, 6, 5),
        (4,),
        {"w": (3, 2, 3, 3), "b": (3,), "v": (3, 4), "c": (4,)},
        _images,
        (),
        1,
        4,
    ),
    "pixels": ArrayFile(
        f"{CONV} y = Conv (h, v, c)", (2, 6, 5), (4, 6, 5), PIXEL_WEIGHTS, _pixels, (6, 5), 1, 4
    ),
    "pixels_of_softmax": ArrayFile(
        f"{CONV} z = Conv (h, v, c) y = Softmax <axis = 1> (z)",
        (2, 6, 5),
        (4, 6, 5),
        PIXEL_WEIGHTS,
        _pixels,
        (6, 5),
        1,
        4,
    ),
    "mask": ArrayFile(
        f"{CONV} z = Conv (h, v, c) y = Sigmoid (z)",
        (2, 6, 5),
        (1, 6, 5),
        {"w": (3, 2, 3, 3), "b": (3,), "v": (1, 3, 1, 1), "c": (1,)},
        _pixels,
        (6, 5),
        1,
        2,
    ),
    "steps": ArrayFile(f"{DENSE} y = Identity (z)", (5, 3), (5, 4), STEP_WEIGHTS, _steps, (5,), 2, 4),
    "transposed_steps": ArrayFile(
        f"{DENSE} s = Softmax <axis = 2> (z) y = Transpose <perm = [0, 2, 1]> (s)",
        (5, 3),
        (4, 5),
        STEP_WEIGHTS,
        lambda x, **w: np.swapaxes(_steps(x, **w), 1, 2),
        (5,),
        1,
        4,
    ),
    "flags": ArrayFile(f"{DENSE} y = Identity (z)", (5, 3), (5, 4), STEP_WEIGHTS, _steps, (5, 4), None, 2),
    "forecast": ArrayFile(
        "m = MatMul (x, w) a = Add (m, b) h = Tanh (a) s = Transpose <perm = [0, 2, 1]> (h) "
        "k = MatMul (s, v) q = Transpose <perm = [0, 2, 1]> (k) y = Add (q, c)",
        (5, 3),
        (2, 6),
        {"w": (3, 6), "b": (6,), "v": (5, 2), "c": (6,)},
        _forecast,
        (2, 6),
    ),
    "filtered": ArrayFile(
        f"{CONV} y = Conv (h, v, c)", (2, 6, 5), (4, 6, 5), PIXEL_WEIGHTS, _pixels, (4, 6, 5)
    ),
}


RATE = 0.01
ONE_STEP = {
    "learning_rate": LearningRateSGD(RATE, learning_rate="constant"),
    "max_iter": 1,
    "batch_size": 1000,
    "shuffle": False,
    "warm_start": True,
    "keep_better": False,
}


def dtype_of(file):
    """Return float64, or float32 for a convolution, for which onnxruntime has no float64 kernel."""
    return np.float32 if "Conv" in file.nodes else np.float64


def loss_of(file):
    return "log_loss" if file.n_classes else "squared_error"


def trainer(optimizer, file, **options):
    options = {"learning_loss": loss_of(file), "random_state": 0, **ONE_STEP, **options}
    return optimizer(**{"estimator": file.model(dtype_of(file)), **options})


def weights_of(trained, file):
    """Return trained and frozen weights."""
    return {**file.draw(dtype_of(file)), **trained.trained_coef_}


def position_losses(file, scores, y):
    """Return the loss of each label by the definition."""
    if not file.n_classes:
        return (scores - y) ** 2 / 2
    if file.axis is None or scores.shape[file.axis] == 1:
        z = scores if file.axis is None else scores.squeeze(file.axis)
        return np.logaddexp(0, z) - y * z
    chosen = np.take_along_axis(log_softmax(scores, axis=file.axis), np.expand_dims(y, file.axis), file.axis)
    return -chosen.squeeze(file.axis)


def objective(file, arrays, X, y, sample_weight):
    """Return the objective: a mean over positions, or a sum over the outputs of regressors."""
    losses = position_losses(file, file.scores(X.astype(np.float64), **arrays), y)
    weights = np.ones(1) if sample_weight is None else sample_weight
    weights = np.broadcast_to(weights.reshape(weights.shape + (1,) * (y.ndim - weights.ndim)), y.shape)
    count = 1 if file.n_classes else y[0].size
    return count * (weights * losses).sum() / weights.sum()
