"""Do two conversions have the same weights?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...exceptions import WriteBackError
from ...graphs import initializer_arrays
from ...models.constraints.reparametrisation import release
from ..trainable_model import TrainableModel
from .reconversion import Reconverted

__all__ = ["check_link", "check_same", "check_unchanged", "is_close", "refusal"]

#: What float32 rounds, relative to a number, and to the largest of its weight.
TOLERANCE, OF_LARGEST = 1e-5, 1e-6
#: Constraints keep parameters off the edge of their sets by about so much.
EDGE = 1e-4


def is_close(found: np.ndarray, expected: np.ndarray, of_largest: float = OF_LARGEST) -> bool:
    """Tell whether two arrays are the same but for rounding."""
    found, expected = np.ravel(found), np.ravel(expected)
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind != "f":
        return np.array_equal(found, expected)
    finite = expected[np.isfinite(expected)]
    largest = float(np.abs(finite).max(initial=0.0))
    return np.allclose(found, expected, rtol=TOLERANCE, atol=of_largest * largest, equal_nan=True)


def refusal(trainable: TrainableModel, what: str) -> WriteBackError:
    """Return the error that a model cannot take something, and what to do then."""
    return WriteBackError(
        f"{trainable.origin} cannot take {what}. The trained model is there as ONNX: get_trained_onnx, "
        "save_onnx_graph."
    )


def check_unchanged(base: Reconverted, trainable: TrainableModel) -> None:
    """Raise an error if an estimator is no longer the one that was converted.

    Parameters
    ----------
    base : Reconverted
        The estimator as it is now.
    trainable : TrainableModel
        What came of it then.

    Raises
    ------
    WriteBackError
        If a weight differs.
    """
    model = release(trainable.model, trainable.constraints, trainable.parameters)
    for name, array in initializer_arrays(model, trainable.weights).items():
        now = base.arrays.get(trainable.original_names[name])
        if now is None or not is_close(now, array, EDGE if name in trainable.constraints else OF_LARGEST):
            origin = trainable.weights[name].origin or trainable.original_names[name]
            raise WriteBackError(
                f"{trainable.origin} has been changed since it was converted for training ({origin}): there "
                "is nothing to write the weights into. Fit again."
            )


def check_link(base: Reconverted, trainable: TrainableModel) -> None:
    """Raise an error if the training put an exponential after a model that has none.

    Parameters
    ----------
    base : Reconverted
        The estimator.
    trainable : TrainableModel
        What was trained.

    Raises
    ------
    WriteBackError
        If the trained graph predicts ``exp(score)``, and the estimator the score.
    """
    if trainable.kind.link != "log":
        return
    model = release(trainable.model, trainable.constraints, trainable.parameters)
    if sum(node.op_type == "Exp" for node in model.graph.node) > base.operators.count("Exp"):
        raise refusal(trainable, "an exponential: with this loss the trained model predicts exp(score)")


def check_same(
    written: Reconverted, base: Reconverted, expected: Mapping[str, np.ndarray], trainable: TrainableModel
) -> None:
    """Raise an error if the conversion of a written copy is not the trained graph.

    Parameters
    ----------
    written : Reconverted
        The copy.
    base : Reconverted
        The estimator before.
    expected : mapping of str to ndarray
        What trained weights should be in it; the others are as before.
    trainable : TrainableModel
        What was trained.

    Raises
    ------
    WriteBackError
        If a weight differs, trained or not, or the graphs.
    """
    if written.operators != base.operators:
        raise refusal(trainable, "the trained weights: the converter would write another graph with them")
    for use, name in base.uses:
        found = written.at(use)
        if found is None or not is_close(found, expected.get(name, base.arrays[name])):
            stable = next(new for new, old in trainable.original_names.items() if old == name)
            origin = trainable.weights[stable].origin if stable in trainable.weights else ""
            what = f"{name!r} ({origin})" if origin else repr(name)
            raise refusal(trainable, f"the trained weights: {what} would not be what was trained")
