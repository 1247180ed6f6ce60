"""Derivatives along directions on every gradient rule, against differences and the adjoint gradient."""

import numpy as np
import pytest

from ortlearn.transforms import directional, gradient
from tests.differentiation.evaluation import run
from tests.differentiation.records import RECORDS
from tests.differentiation.test_rules import node_model, wanted

CASES = [pytest.param(record, id=str(record)) for record in RECORDS if record.second]
STEP = 1e-5


def floats_of(model):
    return [value for value in model.graph.output if value.type.tensor_type.elem_type in (1, 11)]


@pytest.mark.slow
@pytest.mark.sweep(0, slow=180)
@pytest.mark.parametrize("record", CASES)
def test_directional_derivatives(record):
    model, feeds, names = node_model(record)
    wrt = wanted(record, feeds, names)
    outputs = [value.name for value in floats_of(model)]
    along = directional(model, wrt, outputs)
    rng = np.random.default_rng(0)
    directions = {name: rng.normal(size=feeds[name].shape).astype(feeds[name].dtype) for name in wrt}
    found = run(along, {**feeds, **{f"{name}_direction": value for name, value in directions.items()}})

    values = dict(zip([value.name for value in model.graph.output], run(model, feeds), strict=True))
    u = {name: rng.normal(size=values[name].shape).astype(values[name].dtype) for name in outputs}
    backward = run(gradient(model, wrt, outputs), {**feeds, **{f"{name}_grad": u[name] for name in outputs}})
    forward = sum(
        float((part.astype(float) * u[name]).sum()) for name, part in zip(outputs, found, strict=True)
    )
    adjoint = sum(
        float((part.astype(float) * directions[name]).sum()) for name, part in zip(wrt, backward, strict=True)
    )
    scale = sum(
        float(np.abs(part * directions[name]).sum()) for name, part in zip(wrt, backward, strict=True)
    )
    tolerance = 1e-3 if record.single else 1e-8
    assert forward == pytest.approx(adjoint, abs=tolerance * max(scale, 1e-3))

    if record.single:
        return

    def moved(sign):
        shifted = {name: np.asarray(feeds[name] + sign * STEP * value) for name, value in directions.items()}
        results = run(model, {**feeds, **shifted})
        return [
            part for part, value in zip(results, model.graph.output, strict=True) if value.name in outputs
        ]

    for part, high, low in zip(found, moved(1), moved(-1), strict=True):
        slope = (high - low) / (2 * STEP)
        np.testing.assert_allclose(part, slope, rtol=1e-4, atol=1e-5 * max(1, np.abs(slope).max(initial=0)))
