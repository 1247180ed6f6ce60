"""Penalties: values, gradients, names, and which weights they apply to. One record per built-in."""

import numpy as np
import pytest
from onnx import helper

from ortlearn import plugins
from ortlearn.differentiation import gradient_of_loss
from ortlearn.exceptions import PluginError, UnknownPluginError
from ortlearn.graphs import GraphBuilder, TensorType
from ortlearn.penalties import (
    BasePenalty,
    ElasticPenalty,
    L1Penalty,
    L2Penalty,
    NoPenalty,
    penalty_loss_onnx,
    resolve_penalty,
)

WEIGHT = np.random.default_rng(0).normal(size=(4, 3))
#: Penalties by name: objects, and what l1 and l2 they stand for.
CASES = {
    "none": [(NoPenalty(), 0.0, 0.0)],
    "l1": [(L1Penalty(), 0.5, 0.0), (L1Penalty(0.01), 0.01, 0.0)],
    "l2": [(L2Penalty(), 0.0, 0.5), (L2Penalty(2.0), 0.0, 2.0)],
    "elastic": [(ElasticPenalty(), 0.5, 0.5), (ElasticPenalty(0.1, 3.0), 0.1, 3.0)],
}
ALIASES = {"elasticnet": "elastic", "l1l2": "elastic"}
#: Those that are more than l1 and l2: tested in test_proximal.py.
OTHERS = {"group_lasso", "max_norm"}
ALL = [pytest.param(*case, id=f"{name}-{i}") for name, cases in CASES.items() for i, case in enumerate(cases)]


def model_of(nodes, initializers, output, dtype, shape=WEIGHT.shape):
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("w", elem_type, shape)],
        [helper.make_tensor_value_info(output, elem_type, [])],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def value_of(weight, l1, l2):
    return l1 * np.abs(weight).sum() + l2 * (weight**2).sum()


def test_every_built_in_penalty_has_a_record():
    infos = plugins.list_plugins(plugins.PENALTIES)
    built_in = {info.name for info in infos if info.distribution == "ortlearn"}
    assert built_in == set(CASES) | set(ALIASES) | OTHERS
    for name, cases in CASES.items():
        assert all(isinstance(penalty, plugins.get(plugins.PENALTIES, name)) for penalty, *_ in cases)
    for alias, name in ALIASES.items():
        assert plugins.get(plugins.PENALTIES, alias) is plugins.get(plugins.PENALTIES, name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("penalty, l1, l2", ALL)
def test_forward_and_gradient(run_onnx, penalty, l1, l2, dtype):
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    op = GraphBuilder(dtype=dtype, types={"w": TensorType(elem_type, WEIGHT.shape)})
    output = penalty.forward(op, "w")
    if l1 == l2 == 0:
        assert output is None and not op.nodes
        return
    model = model_of(op.nodes, op.initializers, output, dtype)
    (value,) = run_onnx(model, WEIGHT.astype(dtype))
    assert value.shape == () and value.dtype == dtype
    np.testing.assert_allclose(value, value_of(WEIGHT, l1, l2), rtol=1e-5)
    _, gradient = run_onnx(gradient_of_loss(model, output, ["w"]), WEIGHT.astype(dtype))
    np.testing.assert_allclose(gradient, l1 * np.sign(WEIGHT) + 2 * l2 * WEIGHT, rtol=1e-5)


@pytest.mark.parametrize("factors", [{"l1": 0.0, "l2": 0.0}, {"l1": None, "l2": 0}])
def test_an_elastic_penalty_without_factors_writes_nothing(factors):
    op = GraphBuilder()
    assert ElasticPenalty(**factors).forward(op, "w") is None
    assert not op.nodes


@pytest.mark.parametrize("penalty, l1, l2", ALL)
def test_intercepts_are_penalised_only_on_request(penalty, l1, l2):
    assert penalty.applies_to(is_intercept=False)
    assert not penalty.applies_to(is_intercept=True)
    assert type(penalty)(intercept=True).applies_to(is_intercept=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(4, 3), (5,), (), (2, 3, 4)])
@pytest.mark.parametrize("factors", [{"l1": 0.3}, {"l2": 0.7}, {"l1": 0.3, "l2": 0.7}, {"l1": 0, "l2": 1}])
def test_penalty_loss_onnx(run_onnx, factors, shape, dtype):
    initializers, nodes = penalty_loss_onnx("w", dtype, **factors)
    weight = np.random.default_rng(1).normal(size=shape).astype(dtype)
    (value,) = run_onnx(model_of(nodes, initializers, nodes[-1].output[0], dtype, shape), weight)
    assert value.shape == () and value.dtype == dtype
    expected = value_of(weight.astype(np.float64), factors.get("l1", 0), factors.get("l2", 0))
    np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_names_of_several_penalties_differ(run_onnx):
    first = {node.output[0] for node in penalty_loss_onnx("w", np.float32, 1.0, 1.0)[1]}
    taken = {"w", *first}
    before = set(taken)
    initializers, nodes = penalty_loss_onnx("w", np.float32, 1.0, 1.0, existing_names=taken)
    new = {name for node in nodes for name in (node.name, *node.output)}
    new |= {tensor.name for tensor in initializers}
    assert not new & before
    assert taken == before | new
    again = penalty_loss_onnx("v", np.float32, 1.0, 1.0, existing_names=taken)[1]
    assert not {node.output[0] for node in again} & (before | new)


@pytest.mark.parametrize("factors", [{}, {"l1": 0.0}, {"l1": None, "l2": 0.0}])
def test_no_factor_is_an_error(factors):
    with pytest.raises(ValueError, match="'w' is empty: set l1, l2 or both"):
        penalty_loss_onnx("w", np.float32, **factors)


def test_valid_specifications_of_penalties():
    assert isinstance(resolve_penalty(None), NoPenalty)
    assert isinstance(resolve_penalty("l1l2"), ElasticPenalty)
    assert resolve_penalty(L1Penalty).l1 == 0.5
    given = L2Penalty(3.0, intercept=True)
    assert resolve_penalty(given) is not given
    expected = {"l2": 3.0, "intercept": True, "weights": None, "toward": "zero"}
    assert resolve_penalty(given).get_params() == expected


@pytest.mark.parametrize(
    "spec, error", [("l3", UnknownPluginError), (0.5, PluginError), ({"l1": 1}, PluginError)]
)
def test_invalid_penalties(spec, error):
    with pytest.raises(error):
        resolve_penalty(spec)


def test_a_penalty_without_a_result_is_an_error():
    class Mine(BasePenalty):
        pass

    with pytest.raises(NotImplementedError, match="Mine has no forward expression"):
        Mine().forward(GraphBuilder(), "w")
