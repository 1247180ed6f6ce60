"""Linear operators and scalers of ai.onnx.ml, as standard operators, against onnxruntime."""

import numpy as np
import pytest
from onnx import TensorProto, helper, parser
from onnx.reference import ReferenceEvaluator

from ortlearn.exceptions import ConversionError
from ortlearn.graphs import initializer_arrays
from ortlearn.onnx_files.decompositions import decompose_operators
from ortlearn.trainable.conversion import to_trainable
from tests.onnx_files.decompositions.comparisons import check_same

X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
ROW = [0.5, -1.0, 2.0]
THREE = [*ROW, 1.0, 0.25, -0.5, -2.0, 0.1, 0.3]


def fused(op_type, outputs, elem_type=TensorProto.FLOAT, **attributes):
    """Return a model of one operator of ai.onnx.ml."""
    node = helper.make_node(op_type, ["x"], list(outputs), domain="ai.onnx.ml", **attributes)
    infos = [helper.make_tensor_value_info(name, *known) for name, known in outputs.items() if known]
    inputs = [helper.make_tensor_value_info("x", elem_type, ["N", 3])]
    graph = helper.make_graph([node], "g", inputs, infos)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8)


def classifier(rows, intercepts, link, labels=None, **outputs):
    """Return a LinearClassifier with the given coefficients and intercepts."""
    labels = labels or list(range(10, 10 + max(len(rows) // 3, 2)))
    kind = "classlabels_strings" if isinstance(labels[0], str) else "classlabels_ints"
    label_type = TensorProto.STRING if isinstance(labels[0], str) else TensorProto.INT64
    outputs = outputs or {
        "label": (label_type, ["N"]),
        "scores": (TensorProto.FLOAT, ["N", len(labels)]),
    }
    return fused(
        "LinearClassifier",
        outputs,
        coefficients=[float(v) for v in rows],
        intercepts=[float(v) for v in intercepts],
        post_transform=link,
        multi_class=0,
        **{kind: labels},
    )


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("intercepts", [True, False])
@pytest.mark.parametrize("elem_type", [TensorProto.FLOAT, TensorProto.INT64], ids=["float", "int64"])
def test_linear_regressor(run_onnx, targets, intercepts, elem_type):
    attributes = {"intercepts": [0.5, 1.5, -3.0][:targets]} if intercepts else {}
    model = fused(
        "LinearRegressor",
        {"y": (TensorProto.FLOAT, ["N", targets])},
        elem_type,
        coefficients=THREE[: 3 * targets],
        targets=targets,
        **attributes,
    )
    data = X if elem_type == TensorProto.FLOAT else (10 * X).astype(np.int64)
    expected = data @ np.reshape(THREE[: 3 * targets], (targets, 3)).T + attributes.get("intercepts", 0.0)
    runs = run_onnx(model, X) if elem_type == TensorProto.FLOAT else [expected.astype(np.float32)]
    np.testing.assert_allclose(runs[0], expected, rtol=1e-5, atol=1e-5)
    plain = check_same(run_onnx, model, data, runs)
    shapes = {name: array.shape for name, array in initializer_arrays(plain).items()}
    assert shapes == {"coef": (3, targets), "intercept": (targets,)}


@pytest.mark.parametrize(
    "attributes, message",
    [
        ({"post_transform": "CUBE"}, "post_transform is 'CUBE'"),
        ({"coefficients": [1.0]}, "not a multiple of 3 rows"),
    ],
)
def test_unsupported_linear_regressors_are_rejected(attributes, message):
    settings = {"coefficients": THREE, "targets": 3, **attributes}
    model = fused("LinearRegressor", {"y": (TensorProto.FLOAT, ["N", 3])}, **settings)
    with pytest.raises(ConversionError, match=message):
        decompose_operators(model)


@pytest.mark.parametrize("offset, scale", [([1.0, -2.0, 0.5], [2.0, 0.1, -1.0]), ([0.5], [3.0])])
@pytest.mark.parametrize("elem_type", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_scaler(run_onnx, offset, scale, elem_type):
    model = fused("Scaler", {"y": (TensorProto.FLOAT, ["N", 3])}, elem_type, offset=offset, scale=scale)
    data = X.astype(helper.tensor_dtype_to_np_dtype(elem_type))
    plain = check_same(run_onnx, model, data)
    assert set(initializer_arrays(plain)) == {"offset", "scale"}


@pytest.mark.parametrize("link", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize(
    "labels", [[0, 1, 2], [7, -3, 5], ["a", "b", "c"], ["z", "é", "a"]], ids=["range", "ints", "text", "utf8"]
)
def test_linear_classifier_of_three_classes(run_onnx, link, labels):
    plain = check_same(run_onnx, classifier(THREE, [0.1, -0.2, 0.3], link, labels))
    assert initializer_arrays(plain)["coef"].shape == (3, 3)


@pytest.mark.parametrize("link", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"]], ids=["ints", "text"])
def test_opposite_coefficients_become_one_column(run_onnx, link, labels):
    rows = [*(-v for v in ROW), *ROW]
    plain = check_same(run_onnx, classifier(rows, [-0.3, 0.3], link, labels))
    arrays = initializer_arrays(plain)
    np.testing.assert_allclose(arrays["coef"], np.reshape(ROW, (3, 1)))
    np.testing.assert_allclose(arrays["intercept"], [0.3])


@pytest.mark.parametrize(
    "rows, intercepts, link",
    [
        ([*ROW, 1.0, 2.0, 3.0], [-0.3, 0.3], "NONE"),
        ([*ROW, 1.0, 2.0, 3.0], [-0.3, 0.3], "LOGISTIC"),
        ([*(-v for v in ROW), *ROW], [-0.3, 0.2], "LOGISTIC"),
        ([*(-v for v in ROW), *ROW], [-0.3, 0.3], "SOFTMAX"),
    ],
)
def test_other_coefficients_have_two_columns(run_onnx, rows, intercepts, link):
    plain = check_same(run_onnx, classifier(rows, intercepts, link))
    assert initializer_arrays(plain)["coef"].shape == (3, 2)


@pytest.mark.parametrize("link", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("labels", [[0, 1], [5, 3]])
def test_single_score_belongs_to_the_second_class(run_onnx, link, labels):
    # The result of onnxruntime depends on the signs of the coefficients.
    model = classifier(ROW, [0.3], link, labels)
    plain = check_same(run_onnx, model, X, ReferenceEvaluator(model).run(None, {"x": X}))
    assert initializer_arrays(plain)["coef"].shape == (3, 1)


def test_missing_intercepts_are_zero(run_onnx):
    model = classifier(THREE, [0.0] * 3, "SOFTMAX")
    runs = run_onnx(model, X)
    attributes = [a for a in model.graph.node[0].attribute if a.name != "intercepts"]
    del model.graph.node[0].attribute[:]
    model.graph.node[0].attribute.extend(attributes)
    check_same(run_onnx, model, X, runs)


@pytest.mark.parametrize("rows, intercepts", [(THREE, [0, 5, 10]), ([*(-v for v in ROW), *ROW], [-1, 1])])
def test_labels_come_from_scores_before_they_saturate(run_onnx, rows, intercepts):
    rows = [100 * v for v in rows]
    model = classifier(rows, [100 * v for v in intercepts], "LOGISTIC")
    check_same(run_onnx, model, np.abs(X) * 10)


def test_unknown_links_are_rejected():
    with pytest.raises(ConversionError, match="post_transform is 'CUBE'"):
        decompose_operators(classifier(THREE, [0.0] * 3, "CUBE"))


@pytest.mark.parametrize("link", ["SOFTMAX", "SOFTMAX_ZERO", "PROBIT"])
def test_single_score_with_softmax_is_rejected(link):
    with pytest.raises(ConversionError, match=f"post_transform is '{link}' for two classes"):
        decompose_operators(classifier(ROW, [0.0], link, [0, 1]))


def test_missing_labels(run_onnx):
    arguments = THREE, [0.1, -0.2, 0.3], "LOGISTIC", [10, 11, 12]
    expected = run_onnx(classifier(*arguments), X)[1]
    model = classifier(*arguments, **{"": None, "scores": (TensorProto.FLOAT, ["N", 3])})
    plain = decompose_operators(model)
    np.testing.assert_allclose(run_onnx(plain, X)[0], expected, atol=1e-6)
    assert "ArgMax" not in {node.op_type for node in plain.graph.node}


def test_weights_of_chains_are_separate(run_onnx):
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]>
        g (float[N,3] x) => (float[N,1] y) <float[1] coef = {1}> {
            a = ai.onnx.ml.Scaler <offset = [1.0, 2.0, 3.0], scale = [1.0, 2.0, 3.0]> (x)
            b = ai.onnx.ml.Scaler <offset = [1.0, 2.0, 3.0], scale = [1.0, 2.0, 3.0]> (a)
            z = ai.onnx.ml.LinearRegressor <coefficients = [1.0, 2.0, 3.0], intercepts = [1.0]> (b)
            y = Add (z, coef)
        }"""
    )
    plain = check_same(run_onnx, model)
    names = [tensor.name for tensor in plain.graph.initializer]
    assert len(names) == 7 and len(set(names)) == 7


def test_models_without_fused_operators_are_unchanged():
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N] x) => (float[N] y) { y = Neg (x) }'
    )
    assert decompose_operators(model).SerializeToString() == model.SerializeToString()


def test_scores_of_a_fused_classifier():
    model = classifier([*(-v for v in ROW), *ROW], [-0.3, 0.3], "LOGISTIC", ["no", "yes"])
    trainable = to_trainable(model)
    assert trainable.trained == ["I0_coef", "I1_intercept"]
    assert (trainable.scores.link, trainable.scores.n_outputs) == ("sigmoid", 1)
    assert trainable.scores.classes.tolist() == ["no", "yes"]
