"""add_loss_output: names, penalties and rejected graphs."""

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, parser
from sklearn.base import clone

from ortlearn.differentiation import gradient_of_loss
from ortlearn.exceptions import PluginError, UnknownPluginError
from ortlearn.graphs import make_inputs_of
from ortlearn.losses import (
    AbsoluteErrorLoss,
    BaseLoss,
    ElasticLoss,
    SquaredErrorLoss,
    add_loss_output,
    resolve_loss,
)

LINEAR = """<ir_version: 8, opset_import: ["": 18]>
g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, -2}, float[1] b = {3}>
{ z = MatMul (x, w)  y = Add (z, b) }"""
TWO = """<ir_version: 8, opset_import: ["": 18]>
g (float[N,2] x) => (float[N,2] y, int64[N] k, float[N,1] z) <float[2,1] w = {1, -2}>
{ y = Neg (x)  k = ArgMax <axis = 1, keepdims = 0> (x)  z = MatMul (x, w) }"""
X = np.array([[1, 2], [3, 5]], dtype=np.float32)
LABEL = np.array([[1], [2]], dtype=np.float32)
SQUARES = ((X @ [[1], [-2]] + 3 - LABEL) ** 2).sum()


def linear():
    return parser.parse_model(LINEAR)


def names(values):
    return [value.name for value in values]


def test_names_and_order(run_onnx):
    model = linear()
    before = model.SerializeToString()
    new = add_loss_output(model, loss_name="L", label_name="target", weight_name="weight")
    assert model.SerializeToString() == before
    checker.check_model(new, full_check=True)
    assert names(new.graph.input) == ["x", "target", "weight"]
    assert names(new.graph.output) == ["L", "y"]
    dims = [
        [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim] for value in new.graph.input
    ]
    assert dims == [["N", 2], ["N", 1], ["N"]]


@pytest.mark.parametrize("penalty", [{"w": {"l1": 0.5, "l2": 2.0}}, {"w": {"l1": 0.5}}, {"w": 2.0},
                                     {"w": {"l2": 2.0}, "b": {"l1": 0.25, "l2": 0.0}}, {}, None])  # fmt: skip
def test_penalties(run_onnx, penalty):
    expected = SQUARES
    for name, factors in (penalty or {}).items():
        factors = factors if isinstance(factors, dict) else {"l2": factors}
        weight = {"w": np.array([1.0, -2.0]), "b": np.array([3.0])}[name]
        expected += factors.get("l1", 0) * np.abs(weight).sum() + factors.get("l2", 0) * (weight**2).sum()
    loss, _ = run_onnx(add_loss_output(linear(), penalty=penalty), X, LABEL)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)


def test_penalty_on_an_input(run_onnx):
    model = add_loss_output(make_inputs_of(linear(), ["w"]), penalty={"w": 1.0})
    loss, _ = run_onnx(model, x=X, label=LABEL, w=np.array([[1], [-2]], np.float32))
    np.testing.assert_allclose(loss, SQUARES + 5, rtol=1e-6)


@pytest.mark.parametrize("backend", ["auto", pytest.param("ort", marks=pytest.mark.needs_training)])
def test_gradient_with_penalties(run_onnx, backend):
    penalty = {"w": {"l1": 0.5, "l2": 2.0}, "b": 0.25}
    model = add_loss_output(make_inputs_of(linear(), ["w", "b"]), weight_name="s", penalty=penalty)
    weights = {"w": np.array([[1], [-2]], np.float32), "b": np.array([3], np.float32)}
    s = np.array([0.5, 2.0], np.float32)
    _, w_grad, b_grad = run_onnx(
        gradient_of_loss(model, "loss", ["w", "b"], backend), x=X, label=LABEL, s=s, **weights
    )
    slopes = 2 * s[:, None] * (X @ weights["w"] + weights["b"] - LABEL)
    np.testing.assert_allclose(w_grad, X.T @ slopes + 0.5 * np.sign(weights["w"]) + 4 * weights["w"])
    np.testing.assert_allclose(b_grad, slopes.sum(axis=0) + 0.5 * weights["b"])


@pytest.mark.parametrize(
    "penalty, message",
    [
        ({"nothing": 1.0}, "'nothing', which is not an initializer"),
        ({"y": 1.0}, "'y', which is not an initializer"),
        ({"z": 1.0}, "'z', which is not an initializer"),
        ({"label": 1.0}, "'label', which is not an initializer"),
        ({"w": {"l3": 1.0}}, "Set l1, l2 or both"),
        ({"w": {}}, "Set l1, l2 or both"),
        ({"w": 0.0}, "Set l1, l2 or both"),
        ({"w": {"l1": None}}, "Set l1, l2 or both"),
    ],
)
def test_invalid_penalties(penalty, message):
    with pytest.raises(ValueError, match=message):
        add_loss_output(linear(), penalty=penalty)


@pytest.mark.parametrize("index, output", [(2, "z"), ("z", "z"), (-1, "z"), (0, "y"), ("y", "y")])
def test_output_index(run_onnx, index, output):
    model = add_loss_output(parser.parse_model(TWO), output_index=index)
    assert names(model.graph.output) == ["loss", "y", "k", "z"]
    values = X @ np.array([[1], [-2]]) if output == "z" else -X
    loss = run_onnx(model, X, np.ones_like(values, dtype=np.float32))[0]
    np.testing.assert_allclose(loss, ((values - 1) ** 2).sum())


@pytest.mark.parametrize("index", [None, 3, -4, "x", "missing", 1.0, (0,)])
def test_invalid_output_index(index):
    with pytest.raises(ValueError, match=r"output_index=.* one of \['y', 'k', 'z'\]"):
        add_loss_output(parser.parse_model(TWO), output_index=index)


def test_integer_output_is_rejected():
    with pytest.raises(ValueError, match="'k' must be a float32 or float64 tensor"):
        add_loss_output(parser.parse_model(TWO), output_index=1)


@pytest.mark.parametrize("shape", [["N"], ["N", 2, 2], []])
def test_output_shapes_are_checked(shape):
    infos = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)] for name in "xy"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", *infos)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    with pytest.raises(ValueError, match="'y' must have two dimensions"):
        add_loss_output(model)


@pytest.mark.parametrize(
    "options, taken",
    [
        ({"loss_name": "y"}, "y"),
        ({"label_name": "w"}, "w"),
        ({"weight_name": "z"}, "z"),
        ({"label_name": "loss"}, "loss"),
        ({"weight_name": "label"}, "label"),
    ],
)
def test_existing_names_are_rejected(options, taken):
    with pytest.raises(ValueError, match=f"already has a tensor named '{taken}'"):
        add_loss_output(linear(), **options)


def test_second_loss_is_rejected():
    first = add_loss_output(linear())
    second = add_loss_output(first, "absolute_error", "loss2", "label2", output_index="y")
    checker.check_model(second, full_check=True)
    assert names(second.graph.output) == ["loss2", "loss", "y"]


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_label_type_of_log_loss(run_onnx, n_outputs):
    model = linear() if n_outputs == 1 else parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N,3] x) => (float[N,3] y) { y = Neg (x) }'
    )  # fmt: skip
    label = add_loss_output(model, "log_loss").graph.input[1].type.tensor_type
    assert label.elem_type == TensorProto.INT64
    assert [d.dim_param for d in label.shape.dim] == ["N"]


def test_graph_without_standard_operators(run_onnx):
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["ai.onnx.ml": 3]> g (float[N,2] x) => (float[N,2] y)
        { y = ai.onnx.ml.Scaler <offset = [0.0], scale = [2.0]> (x) }"""
    )
    new = add_loss_output(model)
    np.testing.assert_allclose(run_onnx(new, X, 2 * X)[0], 0)
    assert [(i.domain, i.version) for i in new.opset_import] == [("ai.onnx.ml", 3), ("", 18)]


@pytest.mark.parametrize("opset", [13, 15, 21])
def test_other_opsets(run_onnx, opset):
    model = linear()
    model.opset_import[0].version = opset
    np.testing.assert_allclose(run_onnx(add_loss_output(model), X, LABEL)[0], SQUARES)


def test_old_opset_is_rejected():
    model = linear()
    model.opset_import[0].version = 12
    with pytest.raises(ValueError, match=r"opset 12, and a loss requires 13 .*pin_versions"):
        add_loss_output(model)


def test_factor_of_squared_error(run_onnx):
    def value(spec, **params):
        return run_onnx(add_loss_output(linear(), spec, **params), X, LABEL)[0]

    np.testing.assert_allclose(value("squared_error"), SQUARES)
    np.testing.assert_allclose(value(SquaredErrorLoss), SQUARES)
    np.testing.assert_allclose(value("squared_error", factor=0.5), SQUARES / 2)
    np.testing.assert_allclose(value(SquaredErrorLoss()), SQUARES / 2)


def test_valid_specifications_of_losses():
    assert resolve_loss("l1").get_params() == {}
    assert resolve_loss(ElasticLoss, l1_weight=0.2).l1_weight == 0.2
    given = ElasticLoss(l1_weight=0.3)
    assert resolve_loss(given) is not given and resolve_loss(given).l1_weight == 0.3
    assert clone(given).l1_weight == 0.3


@pytest.mark.parametrize(
    "spec, params, error, message",
    [
        ("squared", {}, UnknownPluginError, "squared_error"),
        ("elastic", {"l3": 1}, PluginError, "ElasticLoss cannot be created from"),
        (ElasticLoss(), {"l1_weight": 1}, PluginError, "is already an object"),
        (3, {}, PluginError, "is not a loss"),
        (dict, {}, PluginError, "is not a loss"),
        (None, {}, PluginError, "is not a loss"),
    ],
)
def test_invalid_losses(spec, params, error, message):
    with pytest.raises(error, match=message):
        resolve_loss(spec, **params)


def test_given_loss_is_not_changed():
    loss = SquaredErrorLoss(factor=0.25)
    add_loss_output(linear(), loss)
    assert loss.factor == 0.25 and SquaredErrorLoss().factor == 0.5
    assert AbsoluteErrorLoss.definition_params == {}


class _Failing(BaseLoss):
    tasks = frozenset({"regression"})

    def __init__(self, size=1):
        if size < 0:
            raise IndexError("no such size")
        self.size = size

    def forward(self, op, expected, predicted):
        return {}["missing"]


def test_errors_name_the_plugin():
    with pytest.raises(PluginError, match=r"_Failing cannot be created from .*IndexError: no such size"):
        resolve_loss(_Failing, size=-1)
    with pytest.raises(PluginError, match=r"forward of _Failing raised KeyError: 'missing'"):
        add_loss_output(linear(), _Failing())


@pytest.mark.parametrize("operation", [lambda a, b: a - b, lambda a, b: -a, lambda a, b: np.abs(a)])
def test_python_operators_on_tensors(operation):
    class Arithmetic(_Failing):
        def forward(self, op, expected, predicted):
            return operation(predicted, expected)

    with pytest.raises(PluginError, match=r"forward of Arithmetic .* such as op.Sub\(a, b\)"):
        add_loss_output(linear(), Arithmetic())
