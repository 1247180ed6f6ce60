"""Integer weights and activations: ``quantize``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from ..exceptions import StartKeptWarning, warn_user
from ..runtime.deployment import optimized_operators
from .files import File, as_file, check_samples, class_numbers, split_samples
from .objectives import training_options
from .quantiser import Quantiser
from .ranges import METHODS
from .results import Compressed, report

__all__ = ["quantize"]

#: Largest level of weights by type, and that of reduce_range.
LAST, REDUCED = {"int8": 127, "int4": 7, "int3": 3}, 64
GRADES = ("calibration", "scales", "training")
#: Operators of onnxruntime that multiply integers.
INTEGER_KERNELS = (
    "ConvInteger",
    "MatMulInteger",
    "MatMulIntegerToFloat",
    "QGemm",
    "QLinearConv",
    "QLinearMatMul",
)


def quantize(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    to: str = "int8",
    grade: str = "calibration",
    calibration: str = "minmax",
    symmetric: bool = False,
    activations: bool | None = None,
    reduce_range: bool = True,
    keep_float: str | Sequence[str] = (),
    max_loss: float | None = None,
    held_out: Any = 0.3,
    max_iter: int = 30,
    batch_size: int = 32,
    eta0: float | None = None,
    random_state: int = 0,
) -> Compressed:
    """Return a model with integer weights, and integer activations, as an ONNX file in QDQ form.

    Weights have one scale per output channel, activations one per tensor. Linear layers and convolutions are
    quantised; other operators stay in float. The file has the inputs and outputs of the float one.

    Parameters
    ----------
    model : estimator, onnx.ModelProto, bytes, str or os.PathLike
        Fitted estimator of scikit-learn or of ortlearn, or an ONNX file, in floats. It is not changed.
    X : array-like or frame
        Samples, as the model takes them.
    y : array-like, default=None
        Labels; by default the model's own answers, so that the result is compared with the float model.
    to : {"int8", "int4", "int3"}, default="int8"
        Type of the weights; those of 3 bits are stored as int4. onnxruntime has no kernels that multiply
        integers of 4 bits: it stores them, and computes in floats.
    grade : {"calibration", "scales", "training"}, default="calibration"
        ``"calibration"`` chooses scales from the values of X; ``"scales"`` trains them after that (LSQ);
        ``"training"`` trains weights, biases and scales, with gradients straight through the rounding.
    calibration : {"minmax", "percentile", "entropy", "mse"}, default="minmax"
        How the range of an activation is chosen: all values; 99.99 % of them; the range with the lowest
        Kullback-Leibler divergence; that with the lowest squared error, which also chooses ranges of weights.
    symmetric : bool, default=False
        Whether activations have the zero point 0.
    activations : bool, default=None
        Whether activations are quantised, to int8; by default if weights are int8.
    reduce_range : bool, default=True
        Whether int8 weights are between -64 and 64 instead of 127. Processors without VNNI instructions add
        products in pairs of 16 bits, which larger ones exceed: the result would depend on the machine.
    keep_float : str or sequence of str, default=()
        Names or patterns of weights or nodes of layers that stay in float.
    max_loss : float, default=None
        Largest loss of accuracy, or of R2, on held-out samples: layers are kept in float, the most sensitive
        one first, until it holds.
    held_out : float or tuple, default=0.3
        Share of X that scores are measured on, or the samples ``(X, y)``.
    max_iter, batch_size : int
        Largest number of epochs, and size of batches.
    eta0 : float, default=None
        First rate of Adam; by default 1e-3 for scales, and 1e-4 if weights are trained, too.
    random_state : int, default=0
        Seed.

    Returns
    -------
    Compressed
        ``onnx`` is the quantised file; ``layers`` says for each layer whether it is quantised, and why not;
        ``facts["grade"]`` is the grade that was reached, and ``facts["integer kernels"]`` counts the integer
        operators that onnxruntime runs for the file.

    Raises
    ------
    ValueError
        If there are no samples, if X or y has values that are not finite, or for an unknown option.
    ConversionError
        If the model has no layer that can be quantised; the message names operators.

    Warns
    -----
    StartKeptWarning
        If training does not lower the loss of a tenth of the samples: the result is the calibrated file.

    References
    ----------
    Jacob, B. et al., "Quantization and training of neural networks for efficient integer-arithmetic-only
    inference", CVPR 2018. Esser, S. K. et al., "Learned step size quantization", ICLR 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.neural_network import MLPClassifier
    >>> from ortlearn.compress import quantize
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MLPClassifier((128,), early_stopping=True, n_iter_no_change=3, random_state=0).fit(X, y)
    >>> small = quantize(model, X, y)
    >>> small.facts["integer kernels"], small.n_bytes["new"] < 0.4 * small.n_bytes["old"], small.loss < 0.01
    ({'QGemm': 2}, True, True)
    """
    eta0 = {"training": 1e-4}.get(grade, 1e-3) if eta0 is None else eta0
    known = {"to": (to, LAST), "grade": (grade, GRADES), "calibration": (calibration, METHODS)}
    for name, (value, values) in known.items():
        if value not in values:
            raise ValueError(f"{name}={value!r} must be one of {list(values)}.")
    last = min(LAST[to], REDUCED if reduce_range else LAST["int8"])
    activations = to == "int8" if activations is None else activations
    if max_loss is not None and not max_loss >= 0:
        raise ValueError(f"max_loss={max_loss!r} must be 0 or more.")
    check_samples(X, y, held_out)
    y, held_out = class_numbers(model, X, y, held_out)
    (X_fit, y_fit), (X_test, y_test) = split_samples(X, y, held_out, random_state)
    (file, X_fit), (_, X_test) = (as_file(model, part) for part in (X_fit, X_test))
    quantiser = Quantiser(file, X_fit, y_fit, random_state, to != "int8")
    old = File(quantiser.file)
    old.feeds(X_fit)  # raises an error for values that are not finite
    y_test = old.labels(X_test) if y_test is None else y_test
    before = old.metrics(X_test, y_test)
    chosen = quantiser.without(quantiser.plan(last, calibration, symmetric, activations), keep_float)
    training = grade, training_options(max_iter, batch_size, eta0, random_state)
    new = File(quantiser.quantised(chosen, *training))
    if max_loss is not None:
        ones = np.ones(_num_samples(X_test))
        metric, score = next(iter(before.items()))
        order = None
        while chosen.layers and not score(ones) - new.metrics(X_test, y_test)[metric](ones) <= max_loss:
            order = quantiser.by_sensitivity(chosen) if order is None else order
            name = order.pop(0)
            chosen = chosen.without([name])
            quantiser.left[name] = f"stays in float: the loss would exceed max_loss={max_loss:g}"
            new = File(quantiser.quantised(chosen, *training))
    done = f"{to} weights" + (", int8 activations" if activations else "")
    if quantiser.kept:
        done += f", {quantiser.kept}"
        warn_user(
            f"The result is {quantiser.kept}. Try eta0={eta0 / 3:.1g} or more samples.", StartKeptWarning
        )
    layers = dict.fromkeys(chosen.layers, done) | quantiser.left
    kernels = optimized_operators(new.model)
    facts: dict[str, Any] = {"grade": "calibration" if quantiser.kept else grade}
    facts["integer kernels"] = {name: kernels[name] for name in INTEGER_KERNELS if kernels[name]}
    return report([(old, X_test)], new, (X_test, y_test), random_state, before, layers, facts)
