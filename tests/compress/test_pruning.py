"""``prune``: shapes really shrink, in the estimator and in the file; importance by finite differences."""

import re

import numpy as np
import pytest
from onnx import checker, numpy_helper, parser
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, make_friedman1
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ortlearn import OrtGradientOptimizer
from ortlearn.compress import distill, prune, quantize
from ortlearn.compress.channels import find_channels, without_channels
from ortlearn.compress.files import as_file
from ortlearn.compress.objectives import ScoreGraph
from ortlearn.compress.units import BATCH, importance
from ortlearn.conversion import to_trainable
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import initializer_arrays, set_initializers
from ortlearn.runtime.graph_run import run_graph

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, y = load_digits(return_X_y=True)
HELD = X[1000:], y[1000:]
FAST = {"max_iter": 4, "batch_size": 100, "steps": 2}


@pytest.fixture(scope="module")
def network():
    model = MLPClassifier((60, 30), max_iter=30, random_state=0)
    return make_pipeline(StandardScaler(), model).fit(X[:1000], y[:1000])


@pytest.mark.parametrize("kind", [RandomForestRegressor, RandomForestClassifier])
def test_monotonic_forests_stay_monotonic(kind):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(400, 3))
    target = data[:, 0] / 2 + np.sin(2 * data[:, 1]) + rng.normal(size=400)
    target = target > 0 if kind is RandomForestClassifier else target
    forest = kind(20, max_depth=8, monotonic_cst=[1, 0, 0], random_state=0).fit(data, target)
    found = prune(forest, data, target, sparsity=0.5).model
    values = [
        found.predict_proba(own)[:, 1] if kind is RandomForestClassifier else found.predict(own)
        for own in (data, data + [0.3, 0, 0])
    ]
    assert (values[1] >= values[0] - 1e-12).all() and (values[1] > values[0]).any()


@pytest.mark.slow
def test_units_of_a_network(network):
    found = prune(network, X[:1000], y[:1000], sparsity=0.5, held_out=HELD, **FAST)
    sizes = [coef.shape for coef in found.model[-1].coefs_]
    assert sizes[0][1] + sizes[1][1] == 45 and sizes[0][1] == sizes[1][0] and sizes[1][1] == sizes[2][0]
    assert found.model[-1].hidden_layer_sizes == (sizes[0][1], sizes[1][1])
    assert initializer_arrays(found.onnx)["coefs_1"].shape == sizes[1]
    assert found.loss < 0.06 and found.n_bytes["new"] < 0.6 * found.n_bytes["old"]
    assert found.layers == {"hidden units": f"60, 30 -> {sizes[0][1]}, {sizes[1][1]}"}
    assert [coef.shape for coef in network[-1].coefs_] == [(64, 60), (60, 30), (30, 10)]
    small = quantize(found.model, X[:1000], y[:1000], held_out=HELD)
    assert abs(small.loss) < 0.02 and small.n_bytes["new"] < found.n_bytes["new"]


def test_importance_is_first_order(network):
    """The change of the loss of a batch if the weights into a unit shrink, divided by the share, squared."""
    model = MLPClassifier((5,), activation="tanh", max_iter=3, random_state=0).fit(X[:BATCH] / 16, y[:BATCH])
    data, graph = X[:BATCH] / 16, ScoreGraph.of(to_trainable(model))
    found = importance(graph, find_channels(graph.model)[0], data, y[:BATCH])[0]
    weights, bias, step, changes = model.coefs_[0].copy(), model.intercepts_[0].copy(), 1e-4, []
    for unit in range(5):
        losses = []
        for sign in (1, -1):
            model.coefs_[0], model.intercepts_[0] = weights.copy(), bias.copy()
            model.coefs_[0][:, unit] *= 1 + sign * step
            model.intercepts_[0][unit] *= 1 + sign * step
            losses.append(log_loss(y[:BATCH], model.predict_proba(data), labels=model.classes_))
        changes.append(((losses[0] - losses[1]) / (2 * step)) ** 2)
    np.testing.assert_allclose(found, changes / np.linalg.norm(changes), rtol=5e-3, atol=1e-4)


@pytest.mark.slow
def test_max_loss(network):
    found = prune(network, X[:1000], y[:1000], max_loss=1.0, held_out=HELD, max_iter=1, steps=1)
    assert sum(found.model[-1].hidden_layer_sizes) == 9
    nothing = prune(LogisticRegression(max_iter=300).fit(X / 16, y), X / 16, y, max_loss=0.0)
    assert nothing.loss == pytest.approx(0, abs=0.02)


@pytest.mark.slow
def test_regression_network():
    data, target = make_friedman1(300, random_state=0)
    model = MLPRegressor(hidden_layer_sizes=(40,), max_iter=60, learning_rate_init=0.01, random_state=0)
    found = prune(model.fit(data, target), data, target, sparsity=0.5, **FAST)
    assert found.metric == "r2" and found.model.coefs_[0].shape == (10, 20) and found.loss < 0.1


@pytest.mark.parametrize(
    "forest", [RandomForestClassifier(60), BaggingClassifier(n_estimators=12, max_features=0.5)]
)
def test_trees(forest):
    data, labels = load_breast_cancer(return_X_y=True)
    forest.set_params(random_state=0).fit(data[:300], labels[:300])
    found = prune(forest, data[:300], labels[:300], sparsity=2 / 3, held_out=(data[300:], labels[300:]))
    count = len(forest.estimators_)
    assert len(found.model.estimators_) == found.model.n_estimators == count // 3
    assert found.n_bytes["new"] < 0.5 * found.n_bytes["old"] and found.loss < 0.03
    assert found.model.score(data[300:], labels[300:]) == pytest.approx(
        found.scores["accuracy"]["new"]["value"], abs=0.01
    )


def test_chosen_trees_beat_the_first_ones():
    data, target = make_friedman1(600, noise=1.0, random_state=0)
    forest = RandomForestRegressor(60, max_depth=4, random_state=0).fit(data[:200], target[:200])
    found = prune(forest, data[200:400], target[200:400], sparsity=0.9, held_out=(data[400:], target[400:]))
    first = np.mean([tree.predict(data[400:]) for tree in forest.estimators_[:6]], axis=0)
    kept = np.square(found.model.predict(data[400:]) - target[400:]).mean()
    assert kept < np.square(first - target[400:]).mean()


@pytest.mark.parametrize("model", [Ridge(), LogisticRegression(max_iter=500)])
def test_features(model):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(400, 12))
    score = data[:, 0] - 2 * data[:, 5] + data[:, 7]
    labels = score if isinstance(model, Ridge) else (score > 0).astype(int)
    pipeline = make_pipeline(StandardScaler(), model).fit(data, labels)
    found = prune(pipeline, data, labels, sparsity=0.75)
    assert np.flatnonzero(found.model[1].get_support()).tolist() == [0, 5, 7]
    assert (
        found.model[-1].coef_.shape[-1] == 3 and found.layers == {"features": "12 -> 3"} and found.loss < 0.02
    )


def test_models_inside_of_others():
    """A part of nested pipelines is replaced; their other steps, and the given model, stay as they are."""
    data, target = make_friedman1(200, random_state=0)
    target = np.exp(target / 10)
    columns = make_column_transformer((StandardScaler(), [0, 1, 2, 3, 4]), (MinMaxScaler(), [5, 6, 7]))
    forest = RandomForestRegressor(12, random_state=0)
    inner = TransformedTargetRegressor(forest, func=np.log, inverse_func=np.exp)
    model = make_pipeline(columns, make_pipeline(StandardScaler(), inner)).fit(data, target)
    found = prune(model, data, target, sparsity=0.5)
    small, whole = found.model[-1][-1], model[-1][-1]
    assert found.layers == {"trees": "12 -> 6"} and found.loss < 0.15
    assert len(small.regressor_.estimators_) == small.regressor.n_estimators == 6
    assert len(whole.regressor_.estimators_) == whole.regressor.n_estimators == 12
    samples = model[-1][:-1].transform(model[:-1].transform(data))
    alone = prune(whole.regressor_, samples, np.log(target), sparsity=0.5).model
    np.testing.assert_allclose(np.log(found.model.predict(data)), alone.predict(samples), rtol=1e-9)


@pytest.mark.slow
def test_a_distilled_regressor_is_pruned_and_quantised():
    data, target = make_friedman1(300, random_state=0)
    teacher = RandomForestRegressor(20, random_state=0).fit(data, target)
    student = distill(teacher, "mlp:16", data, target, alpha=0.5, extra=0, max_iter=30, eta0=0.02).model
    found = prune(student, data, target, sparsity=0.5, **FAST | {"max_iter": 15})
    assert found.model[-1].regressor.hidden_layer_sizes == (8,) and found.loss < 0.2
    assert quantize(found.model, data, target).scores["r2"]["difference"]["value"] > -0.05


NETWORK = """<ir_version: 8, opset_import: ["": 17]> g (float[N,1,8,8] image) => (float[N,10] score)
    { a = Conv <pads = [1,1,1,1]> (image, w1, b1) n = BatchNormalization (a, s, b1n, m, v) b = Relu (n)
      c = MaxPool <kernel_shape = [2,2], strides = [2,2]> (b) d = Conv <pads = [1,1,1,1]> (c, w2)
      e = Mul (d, k) f = Flatten (e) g1 = MatMul (f, w3) h = Add (g1, b3) t = Tanh (h) r = Reshape (t, shape)
      score = Gemm <transB = 1> (r, w4, b4) }"""
SHAPES = {
    **{"w1": (6, 1, 3, 3), "b1": (6,), "s": (6,), "b1n": (6,), "m": (6,), "v": (6,), "w2": (8, 6, 3, 3)},
    **{"k": (1, 8, 1, 1), "w3": (128, 12), "b3": (12,), "w4": (10, 12), "b4": (10,)},
}


def convolution():
    model, rng = parser.parse_model(NETWORK), np.random.default_rng(0)
    for name, shape in SHAPES.items():
        values = np.ones(shape) if name in "sv" else rng.normal(0, 0.3, shape)
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
    model.graph.initializer.append(numpy_helper.from_array(np.array([-1, 12]), "shape"))
    return model


def test_channels_without_effect_change_nothing():
    """Channels whose outgoing weights are zero are removed, with all that belongs to them."""
    model, images = convolution(), X[:20].reshape(-1, 1, 8, 8).astype(np.float32) / 16
    arrays = initializer_arrays(model)
    kept = [np.array([0, 2, 5]), np.array([1, 2, 3, 7]), np.array([0, 11])]
    for name, axis, own in (("w2", 1, kept[0]), ("w4", 1, kept[2])):
        arrays[name] = arrays[name].copy()
        arrays[name][:, np.setdiff1d(np.arange(arrays[name].shape[axis]), own)] = 0
    rows = arrays["w3"].copy().reshape(8, 16, 12)
    rows[np.setdiff1d(np.arange(8), kept[1])] = 0
    arrays["w3"] = rows.reshape(128, 12)
    model = set_initializers(model, arrays)
    groups, left = find_channels(model)
    assert [group.name for group in groups] == ["w1", "w2", "w3"]
    assert list(left.values()) == ["its outputs are those of the model"]
    small = without_channels(model, groups, kept)
    checker.check_model(small, full_check=True)
    shapes = {name: array.shape for name, array in initializer_arrays(small).items()}
    assert shapes["w1"] == (3, 1, 3, 3) and shapes["v"] == (3,) and shapes["w2"] == (4, 3, 3, 3)
    assert shapes["k"] == (1, 4, 1, 1) and shapes["w3"] == (64, 2) and shapes["w4"] == (10, 2)
    expected, found = (run_graph(one, {"image": images}) for one in (model, small))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_trained_file_is_pruned():
    names = np.array(["a", "b"])[(y > 4).astype(int)]
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[N,64] x) => (float[N,2] s)
        { a = Gemm (x, w, b) h = Relu (a) s = Gemm (h, v, c) }"""
    )
    rng, shapes = np.random.default_rng(0), {"w": (64, 12), "b": (12,), "v": (12, 2), "c": (2,)}
    arrays = {name: rng.normal(size=shape).astype(np.float32) / 8 for name, shape in shapes.items()}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    trained = OrtGradientOptimizer(model, learning_loss="log_loss", random_state=0, max_iter=50)
    trained.fit(X / 16, names)
    found = prune(trained, X / 16, names, sparsity=0.5, steps=1, max_iter=2)
    assert found.model is None and found.scores["accuracy"]["old"]["value"] > 0.8
    assert initializer_arrays(found.onnx)["w"].shape == (64, 6)


@pytest.mark.slow
def test_channels_of_a_file():
    images, model = X.reshape(-1, 1, 8, 8).astype(np.float32) / 16, convolution()
    options = {"sparsity": 0.5, "held_out": (images[600:], y[600:]), "max_iter": 8, "steps": 2}
    found = prune(model, images[:600], y[:600], batch_size=50, eta0=0.01, **options)
    assert found.model is None and found.onnx.graph.input == model.graph.input and found.loss < 0
    sizes = [int(size) for size in re.findall(r"\d+", found.layers["hidden units"])]
    assert sizes[:3] == [6, 8, 12] and sum(sizes[3:]) == 13
    assert initializer_arrays(found.onnx)["w1"].shape == (sizes[3], 1, 3, 3)
    assert found.n_bytes["new"] < 0.6 * found.n_bytes["old"]
    small = quantize(found.onnx, images[:600], y[:600], held_out=(images[600:], y[600:]))
    assert abs(small.loss) < 0.05 and len(small.layers) == 5
    assert small.facts["integer kernels"] and small.onnx.graph.output == model.graph.output


@pytest.mark.parametrize(
    "text, reason",
    [
        ("a = MatMul (x, w) b = Softmax (a) y = MatMul (b, v)", "Softmax reads its outputs"),
        ("a = MatMul (x, w) b = MatMul (x, u) c = Add (a, b) y = MatMul (c, v)", "Add joins its outputs"),
        ("a = MatMul (x, w) b = MatMul (a, v) c = MatMul (x, w) y = Add (b, c)", "other operators read it"),
    ],
)
def test_obstacles_are_named(text, reason):
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[N,4] x) => (float[N,3] y) {{ {text} }}'
    )
    for name, shape in {"w": (4, 3), "u": (4, 3), "v": (3, 3)}.items():
        values = np.ones(shape, np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    groups, left = find_channels(model)
    assert not groups and any(reason in found for found in left.values())
    with pytest.raises(ConversionError, match="no units or channels that can be removed"):
        prune(model, X[:20, :4].astype(np.float32), y[:20] % 3, sparsity=0.5)


@pytest.mark.parametrize("is_forest", [False, True])
def test_leaves(is_forest):
    """The trees have the splits that scikit-learn leaves with the strength of the pruning."""
    model = RandomForestClassifier(10) if is_forest else DecisionTreeClassifier()
    model.set_params(random_state=0).fit(X[:600], y[:600])
    found = prune(model, X[:600], y[:600], sparsity=0.5, leaves=is_forest, held_out=(X[600:], y[600:]))
    trees = found.model.estimators_ if is_forest else [found.model]
    before, after = map(int, re.findall(r"\d+", found.layers["leaves"]))
    assert after == sum(tree.get_n_leaves() for tree in trees) <= before / 2 < after * 1.3
    same = clone(model).set_params(ccp_alpha=found.model.ccp_alpha).fit(X[:600], y[:600])
    assert found.n_bytes["new"] < 0.6 * found.n_bytes["old"] and found.loss < 0.1
    if is_forest:  # the square root of a half of the trees
        assert len(trees) == found.model.n_estimators == 8
        expected = {tree.random_state: tree.tree_ for tree in same.estimators_}
        for tree in trees:
            wanted = expected[tree.random_state]
            np.testing.assert_array_equal(tree.tree_.threshold, wanted.threshold)
            assert tree.tree_.max_depth == wanted.max_depth
    else:
        np.testing.assert_array_equal(same.predict_proba(X), found.model.predict_proba(X))
    with pytest.raises(ConversionError, match="LogisticRegression cannot be pruned by leaves"):
        prune(LogisticRegression(max_iter=10).fit(X / 16, y), X, y, sparsity=0.5, leaves=True)


def test_chosen_trees_by_definition():
    """Of samples that no tree has seen: the next tree is that with the lowest error of the mean."""
    data, target = make_friedman1(150, noise=1.0, random_state=0)
    forest = RandomForestRegressor(12, random_state=0).fit(data[:90], target[:90])
    found = prune(forest, data[90:], target[90:], sparsity=0.5, held_out=(data[:90], target[:90]))
    answers = np.stack([tree.predict(data[90:]) for tree in forest.estimators_])
    kept = list[int]()
    for _ in range(6):
        free = [i for i in range(12) if i not in kept]
        kept.append(min(free, key=lambda i: np.square(answers[[*kept, i]].mean(axis=0) - target[90:]).sum()))
    expected = [forest.estimators_[i].tree_.value for i in sorted(kept)]
    for tree, value in zip(found.model.estimators_, expected, strict=True):
        np.testing.assert_array_equal(tree.tree_.value, value)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("leaves", [False, True])
def test_new_values_of_leaves_reduce_the_error_of_a_forest(leaves):
    """Means of trees shrink extremes: ridge regression of out-of-bag errors restores them."""
    rng = np.random.default_rng(0)
    data = rng.uniform(-2, 2, (400, 4))
    target = 3 * np.sin(2 * data[:, 0]) * data[:, 1] + np.exp(data[:, 2])
    forest = RandomForestRegressor(40, random_state=0).fit(data[:200], target[:200])
    options = {"sparsity": 0.5, "leaves": leaves, "held_out": (data[200:], target[200:])}
    found = prune(forest, data[:200], target[:200], **options)
    plain = prune(forest, data[:199], target[:199], **options)  # not the samples of its fit
    assert found.loss < min(0, plain.loss - 0.005)
    values = {tuple(tree.tree_.value.ravel()) for tree in forest.estimators_}
    assert leaves or all(tuple(tree.tree_.value.ravel()) in values for tree in plain.model.estimators_)


def test_bad_input(network):
    with pytest.raises(ValueError, match="Pass sparsity.*or max_loss"):
        prune(network, X, y)
    with pytest.raises(ValueError, match="sparsity=1 must be"):
        prune(network, X, y, sparsity=1)
    with pytest.raises(ValueError, match="max_loss=-1 must be"):
        prune(network, X, y, max_loss=-1)
    with pytest.raises(ValueError, match="X has no samples"):
        prune(network, X[:0], y[:0], sparsity=0.5)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    with pytest.raises(ConversionError, match="no product or convolution with stored weights; distil it"):
        prune(as_file(tree, X)[0], X, y, sparsity=0.5)
    with pytest.raises(ConversionError, match="KMeans cannot be pruned"):
        prune(KMeans(3, random_state=0).fit(X), X, y, sparsity=0.5)
