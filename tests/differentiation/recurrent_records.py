"""Records of recurrent layers."""

from __future__ import annotations

import numpy as np

from tests.differentiation.records_base import Record

__all__ = ["RECURRENT"]

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, BATCH, COLUMNS, HIDDEN = 4, 3, 2, 3


def layer(op_type, *, lengths=None, bias=True, states=True, peepholes=False, outputs=None, **attributes):
    """Return the record of a layer with random weights."""
    gates, rng = GATES[op_type], np.random.default_rng(0)
    directions = 2 if attributes.get("direction") == "bidirectional" else 1

    def draw(*shape):
        return rng.normal(size=shape) * 0.6

    x, state = (STEPS, BATCH), (directions, BATCH)
    if attributes.get("layout"):
        x, state = x[::-1], state[::-1]
    inputs = [
        draw(*x, COLUMNS),
        draw(directions, gates * HIDDEN, COLUMNS),
        draw(directions, gates * HIDDEN, HIDDEN),
        draw(directions, 2 * gates * HIDDEN) if bias else None,
        None if lengths is None else np.array(lengths, np.int32),
        draw(*state, HIDDEN) if states else None,
        *([draw(*state, HIDDEN) if states else None] if op_type == "LSTM" else []),
        *([draw(directions, 3 * HIDDEN)] if peepholes else []),
    ]
    while inputs[-1] is None:
        inputs.pop()
    return Record(
        op_type,
        tuple(inputs),
        {"hidden_size": HIDDEN, **attributes},
        opsets=(14, 18, 21),
        n_outputs=outputs or (3 if op_type == "LSTM" else 2),
        empty=False,
        kernel=not attributes.get("layout"),
        second=lengths is None and not peepholes,
    )


DIRECTIONS = [
    layer(op_type, direction=direction, lengths=lengths, **extra)
    for op_type, extras in (
        ("RNN", [{}]),
        ("GRU", [{}, {"linear_before_reset": 1}]),
        ("LSTM", [{}, {"peepholes": True, "input_forget": 1}]),
    )
    for extra in extras
    for direction, lengths in (("forward", None), ("reverse", [4, 0, 2]), ("bidirectional", [1, 4, 3]))
]

# Both branches of every activation are reached.
ACTIVATIONS = [
    layer("RNN", activations=["Affine"], activation_alpha=[0.3], activation_beta=[0.1]),
    layer("RNN", activations=["HardSigmoid"], activation_alpha=[0.4], activation_beta=[0.4]),
    layer("RNN", activations=["Softplus"]),
    layer("GRU", activations=["HardSigmoid", "LeakyRelu"]),
    layer("GRU", activations=["sigmoid", "Elu"], activation_alpha=[0.7], linear_before_reset=1),
    layer("GRU", activations=["Softsign", "ScaledTanh"], activation_alpha=[0.7], activation_beta=[1.2]),
    layer("LSTM", activations=["Relu", "ThresholdedRelu", "Softsign"], activation_alpha=[0.2]),
    layer(
        "LSTM",
        direction="bidirectional",
        activations=["HardSigmoid", "Elu", "ScaledTanh", "Sigmoid", "Affine", "LeakyRelu"],
        activation_alpha=[0.3, 0.7, 0.8, 0.6, 0.2],
        activation_beta=[0.4, 1.1, 0.1],
    ),
]

RECURRENT = [
    *DIRECTIONS,
    *ACTIVATIONS,
    *(layer(op_type, bias=False, states=False) for op_type in GATES),
    *(layer(op_type, outputs=1) for op_type in GATES),
    *(layer(op_type, clip=0.7) for op_type in GATES),
    *(layer(op_type, layout=1, direction="bidirectional", lengths=[4, 2, 3]) for op_type in GATES),
    layer("LSTM", peepholes=True, lengths=[4, 1, 3]),
    layer("LSTM", input_forget=1),
]
