"""Run the update of a learning rate in a separate graph."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, helper

from ..graphs import GraphBuilder, TensorType, make_value_info
from ..learning_rates import BaseLearningRate
from .running import Run, check_graph, run_reference

__all__ = ["RATE", "SHAPES", "Updates", "update_model"]

#: Shapes of a matrix, a vector and a number.
SHAPES = ((4, 3), (3,), ())
#: An arbitrary rate.
RATE = 0.05


def update_model(
    learning_rate: BaseLearningRate, weight: np.ndarray, state: dict[str, np.ndarray]
) -> ModelProto:
    """Return the graph of one update, with the inputs weight, gradient, rate and states."""
    name = type(learning_rate).__name__
    elem_type = helper.np_dtype_to_tensor_dtype(weight.dtype)
    known = {"weight": weight.shape, "gradient": weight.shape, "rate": ()}
    known |= {f"state_{key}": value.shape for key, value in state.items()}
    types = {key: TensorType(elem_type, shape) for key, shape in known.items()}
    op = GraphBuilder(dtype=weight.dtype, existing_names=known, types=types)
    names = {key: f"state_{key}" for key in state}
    found = learning_rate.update(op, "weight", "gradient", names, "rate")
    assert isinstance(found, tuple), f"{name}: update must return (weight, states), not {found!r}"
    new, states = found
    assert set(states) == set(state), f"{name}: update must return the states {[*state]}, not {[*states]}"
    assert set(op.opsets) == {""}, f"{name}: uses operators of {sorted(set(op.opsets) - {''})}, not standard"
    outputs = [make_value_info(new, TensorType(elem_type, weight.shape))]
    outputs += [make_value_info(states[key], TensorType(elem_type, state[key].shape)) for key in state]
    inputs = [make_value_info(key, kind) for key, kind in types.items()]
    graph = helper.make_graph(op.nodes, "update", inputs, outputs, op.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", op.opset)], ir_version=10)


class Updates:
    """Weight and states under repeated updates."""

    def __init__(
        self,
        learning_rate: BaseLearningRate,
        weight: np.ndarray,
        run: Run = run_reference,
    ):
        self.name = type(learning_rate).__name__
        self.weight = weight
        self.state = learning_rate.init(weight)
        taken = [weight]
        for key, value in self.state.items():
            assert value.dtype == weight.dtype, f"{self.name}: the state {key!r} of init is {value.dtype}"
            shared = any(np.shares_memory(value, other) for other in taken)
            assert not shared, f"{self.name}: the state {key!r} of init shares memory with another array"
            taken.append(value)
        self._model = update_model(learning_rate, weight, self.state)
        check_graph(self.name, self._model)
        self._run = run

    def apply(self, gradient: np.ndarray, rate: float) -> None:
        """Update weight and states once."""
        dtype, shape = self.weight.dtype, self.weight.shape
        feeds = {
            "weight": self.weight,
            "gradient": np.asarray(gradient, dtype),
            "rate": np.array(rate, dtype),
        }
        feeds |= {f"state_{key}": value for key, value in self.state.items()}
        used = {value.name for value in self._model.graph.input}
        new, *values = self._run(self._model, {key: value for key, value in feeds.items() if key in used})
        before = {"weight": self.weight, **self.state}
        self.weight, self.state = np.asarray(new), dict(zip(self.state, map(np.asarray, values), strict=True))
        for key, value in {"weight": self.weight, **self.state}.items():
            assert value.dtype == dtype, f"{self.name}: the new {key!r} is {value.dtype}, not {dtype}"
            expected = shape if key == "weight" else before[key].shape
            assert value.shape == expected, f"{self.name}: the new {key!r} has the shape {value.shape}"
