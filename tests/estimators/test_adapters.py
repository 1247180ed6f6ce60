"""Low-rank adapters: A and B are trained, and W + alpha / rank A B replaces W."""

import pickle

import numpy as np
import pytest
from onnx import numpy_helper, parser
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV

from ortlearn import OrtGradientOptimizer, saving
from ortlearn.exceptions import ConversionError, NoTrainableWeightError
from ortlearn.graphs import initializer_arrays
from ortlearn.learning_rates import LearningRateAdam, LearningRateSGD
from ortlearn.onnx_files import LoRA, replace_head
from ortlearn.onnx_files.weight_locations import weight_locations
from ortlearn.trainable.explanation import explain
from tests.estimators.network_files import NETWORKS, network_file, samples

#: Weights with adapters of rank 2, and whether the first axis is that of the outputs.
ADAPTED = {
    "perceptron": {"w0": True, "w1": False},
    "convolution": {"k": True, "g": True, "w": False},
    "transformer": dict.fromkeys(("wq", "wk", "wv", "wo", "wy"), False),
    "experts": {"we": False, "wy": False},
    "recurrent": {"wi": True, "wh": True, "wy": False},
    "shared": {"w": True},
}


def merged(weights, arrays, transposed, scale):
    """Return the weights of a model plus its adapters, by the formula of the paper."""
    found = dict(arrays)
    for name, outputs_first in transposed.items():
        product = scale * weights[f"{name}.lora_A"] @ weights[f"{name}.lora_B"]
        product = np.swapaxes(product, -1, -2) if outputs_first else product
        found[name] = arrays[name] + product.reshape(arrays[name].shape)
    return found


def with_arrays(model, arrays):
    for tensor in model.graph.initializer:
        if tensor.name in arrays:
            array = arrays[tensor.name].astype(numpy_helper.to_array(tensor).dtype)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return model


def output(model, X, run_onnx, **feeds):
    return run_onnx(model, X, **feeds)["y"]


def set_random_weights(trainer, seed=2):
    """Set random weights of a trainer and return them."""
    rng = np.random.default_rng(seed)
    weights = {
        name: rng.normal(size=a.shape).astype(a.dtype) / 3 for name, a in trainer.get_weights().items()
    }
    trainer.set_weights(weights)
    return weights


def test_weights_without_adapters_start_from_the_file(optimizer, run_onnx):
    (X, y), file = samples(), network_file("perceptron")
    options = {"lora": LoRA(2, target="w1"), "weights_to_train": ["w0"], "random_state": 0}
    trainer = optimizer(file, **options, learning_rate=1e-30, max_iter=1).fit(X, y)
    np.testing.assert_array_equal(trainer.get_weights()["w0"], initializer_arrays(file)["w0"])
    separate = trainer.get_trained_onnx(merged=False)
    np.testing.assert_allclose(output(separate, X, run_onnx), output(file, X, run_onnx), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_first_prediction_equals_that_of_the_file(name, warm_start, optimizer, run_onnx):
    X, y = samples()
    trainer = optimizer(
        network_file(name), lora=LoRA(2, target="*"), learning_rate=1e-30, max_iter=1, random_state=0
    )
    trainer.set_params(warm_start=warm_start).fit(X, y)
    np.testing.assert_allclose(
        trainer.predict(X), output(network_file(name), X, run_onnx), rtol=1e-5, atol=1e-6
    )
    weights = trainer.get_weights()
    assert {key.partition(".")[0] for key in weights} == set(ADAPTED[name])
    for key, array in weights.items():
        assert (np.abs(array).max() > 0.1) == key.endswith("A"), key
    again = clone(trainer).set_params(random_state=1).fit(X, y).get_weights()
    assert all((again[key] != array).any() for key, array in weights.items() if key.endswith("A"))


@pytest.mark.parametrize("alpha", [None, 3.0])
@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_equal_finite_differences(name, alpha, optimizer, run_onnx):
    """A full-batch gradient step is compared with differences of the loss of models merged in NumPy."""
    dtype = np.float32 if name in ("convolution", "recurrent") else np.float64  # types of kernels
    X, y = samples(dtype)
    file = network_file(name, dtype)
    rate = LearningRateSGD(eta0=0.25, learning_rate="constant")
    trainer = optimizer(
        file, lora=LoRA(2, alpha=alpha, target="*"), learning_rate=rate, max_iter=1, random_state=0
    )
    trainer.set_params(batch_size=len(X)).fit(X, y)
    before = set_random_weights(trainer)
    after = trainer.partial_fit(X, y).get_weights()
    gradient = {key: (before[key] - after[key]).astype(np.float64) / 0.25 for key in before}

    def loss(step):
        weights = {key: before[key] + step * direction[key] for key in before}
        arrays = merged(weights, initializer_arrays(file), ADAPTED[name], (alpha or 2) / 2)
        difference = output(with_arrays(network_file(name, dtype), arrays), X, run_onnx) - y
        return (difference.astype(np.float64) ** 2).sum(axis=1).mean() / 2

    for seed in range(3):
        rng = np.random.default_rng(seed)
        direction = {key: rng.normal(size=array.shape) for key, array in before.items()}
        step = 2e-3 if dtype == np.float32 else 1e-5
        slope = (loss(step) - loss(-step)) / (2 * step)
        expected = sum((gradient[key] * direction[key]).sum() for key in gradient)
        assert abs(expected) > 1e-3
        np.testing.assert_allclose(slope, expected, rtol=2e-2 if dtype == np.float32 else 1e-6)


@pytest.mark.parametrize("name", NETWORKS)
def test_merged_and_separate_files_predict_the_same(name, optimizer, run_onnx):
    X, y = samples()
    file = network_file(name)
    trainer = optimizer(file, lora=LoRA(2, alpha=1.0, target="*"), max_iter=1, random_state=0).fit(X, y)
    weights = set_random_weights(trainer)
    one, two = trainer.get_trained_onnx(), trainer.get_trained_onnx(merged=False)
    expected = trainer.predict(X)
    assert np.abs(expected - output(file, X, run_onnx)).max() > 0.01
    np.testing.assert_allclose(output(one, X, run_onnx), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(output(two, X, run_onnx, **weights), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(output(two, X, run_onnx), output(file, X, run_onnx), rtol=1e-5, atol=1e-6)
    # the merged model has the original nodes, and different values of weights with adapters only
    own = initializer_arrays(file)
    found = merged(weights, own, ADAPTED[name], 0.5)
    assert list(one.graph.node) == list(file.graph.node) and one.opset_import == file.opset_import
    for key, array in initializer_arrays(one).items():
        if key in ADAPTED[name]:
            np.testing.assert_allclose(array, found[key], rtol=1e-6, atol=1e-7)
            assert np.abs(array - own[key]).max() > 0.01
        else:
            assert array.tobytes() == own[key].tobytes(), key
    assert all(
        array.tobytes() == own[key].tobytes() for key, array in initializer_arrays(two).items() if key in own
    )


@pytest.mark.parametrize("change", [{"opset": 9}, {"constants": True}, {"dtype": np.float16}])
def test_exports_keep_the_form_of_the_file(change, run_onnx):
    """The file has an old opset, weights in constants, or float16 weights."""
    file, (X, y) = network_file("perceptron", **change), samples()
    trainer = OrtGradientOptimizer(file, lora=LoRA(2), max_iter=30, random_state=0, warm_start=True)
    trainer.set_params(learning_rate=LearningRateAdam(eta0=0.01)).fit(X, y)
    one, two = trainer.get_trained_onnx(), trainer.get_trained_onnx(merged=False)
    assert one.opset_import == two.opset_import == file.opset_import
    assert [node.op_type for node in one.graph.node] == [node.op_type for node in file.graph.node]
    assert {place.elem_type for place in weight_locations(two).values()} == {
        place.elem_type for place in weight_locations(file).values()
    }
    dtype = change.get("dtype", np.float32)
    feeds = {key: array.astype(dtype) for key, array in trainer.get_weights().items()}
    tolerance = 1e-2 if dtype == np.float16 else 1e-5
    for model, inputs in ((one, {}), (two, feeds)):
        found = output(model, X.astype(dtype), run_onnx, **inputs)
        np.testing.assert_allclose(found, trainer.predict(X), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "target, expected",
    [
        ("*MatMul*", "wq wk wv wo wy"),
        ("MatMul", "wq wk wv wo wy"),
        ("*query*", "wq"),
        ("/enc", "wq wk wv wo"),
        ("enc/value", "wv"),
        (["wk", "/head/*"], "wk wy"),
    ],
)
def test_targets(target, expected):
    table = explain(network_file("transformer"), lora=LoRA(2, target=target))
    trained = {name for row in table.rows if row.trainable for name in row.weights}
    assert trained == {f"{name}.lora_{part}" for name in expected.split() for part in "AB"}
    frozen = {name for row in table.rows if "its adapter is trained" in row.reason for name in row.weights}
    assert frozen == set(expected.split()) and not any(
        row.advice for row in table.rows if row.weights[0] in frozen
    )


def test_default_targets():
    """Weights larger than their adapter have one: (24, 6) for rank 4, all weights for rank 1."""
    for rank, expected in ((4, {"w0"}), (1, {"w0", "w1"})):
        table = explain(network_file("perceptron"), lora=LoRA(rank))
        trained = {name.partition(".")[0] for row in table.rows if row.trainable for name in row.weights}
        assert trained == expected


def test_weights_trained_without_adapter(optimizer):
    X, y = samples()
    trainer = optimizer(network_file("transformer"), "*lb", lora=LoRA(1, target="*query*"), warm_start=True)
    trainer.set_params(max_iter=3, random_state=0, learning_rate=0.1).fit(X, y)
    assert set(trainer.get_weights()) == {"wq.lora_A", "wq.lora_B", "lb"}
    before, after = initializer_arrays(network_file("transformer")), initializer_arrays(trainer.onnx_)
    assert {name for name in before if before[name].tobytes() != after[name].tobytes()} == {"wq", "lb"}


@pytest.mark.slow
def test_training_improves_and_continues(optimizer):
    X, y = samples(n=200)
    trainer = optimizer(
        network_file("transformer"), lora=LoRA(2, target="MatMul"), max_iter=30, random_state=0
    )
    trainer.set_params(learning_rate=LearningRateAdam(eta0=0.01), warm_start=True).fit(X, y)
    first = trainer.train_losses_
    assert first[-1] < 0.8 * first[0]
    assert trainer.fit(X, y).train_losses_[0] < 0.9 * first[0]  # a warm start continues from the adapters
    assert trainer.partial_fit(X, y).train_losses_[-1] < first[-1]


@pytest.mark.parametrize("wrong", [0, -1, True, 2.0, "8", [2]])
def test_invalid_adapters(wrong):
    with pytest.raises(ValueError, match="lora=.* must be a LoRA, a rank of 1 or more, or None"):
        OrtGradientOptimizer(network_file("perceptron"), lora=wrong).fit(*samples())


@pytest.mark.parametrize(
    "lora, error, message",
    [
        (LoRA(0), ValueError, "'rank' parameter of LoRA must be an int in the range"),
        (LoRA(alpha=0.0), ValueError, "'alpha' parameter of LoRA must be a float in the range"),
        (LoRA(target=3), ValueError, "'target' parameter of LoRA"),
        (
            LoRA(2, target="*quer"),
            NoTrainableWeightError,
            r"target='\*quer' matches no .*'wq' \(/enc/query/MatMul\)",
        ),
        (LoRA(2, target="Add"), NoTrainableWeightError, "target='Add' matches no weight of a matrix product"),
        (
            LoRA(1, target="*ls"),
            NoTrainableWeightError,
            r"'ls' of LayerNormalization, which do not support low-rank adapters",
        ),
        (
            LoRA(5, target="MatMul"),
            ConversionError,
            r"rank=5 exceeds the 2 rows or columns of weight 'wy' of shape \(24, 2\)",
        ),
        (LoRA(30), NoTrainableWeightError, "larger than its adapter of rank 30"),
    ],
)
def test_errors(lora, error, message):
    with pytest.raises(error, match=message):
        OrtGradientOptimizer(network_file("transformer"), lora=lora).fit(*samples())


def test_trained_weights_have_no_adapter():
    X, y = samples()
    trainer = OrtGradientOptimizer(network_file("transformer"), ["wq", "wy"], lora=LoRA(3, target="MatMul"))
    found = set(trainer.set_params(max_iter=1).fit(X, y).get_weights())  # rank 3 exceeds wy
    assert found == {"wq", "wy", *(f"{name}.lora_{part}" for name in ("wk", "wv", "wo") for part in "AB")}
    with pytest.raises(NoTrainableWeightError, match="matches no weight of a matrix product"):
        trainer.set_params(weights_to_train="MatMul").fit(X, y)


def test_scikit_learn_estimators_are_rejected():
    with pytest.raises(ConversionError, match="lora is for ONNX files, LinearRegression is a scikit-learn"):
        OrtGradientOptimizer(LinearRegression(), lora=2).fit(*samples())


def test_exports_without_adapters(tmp_path):
    trainer = OrtGradientOptimizer(network_file("perceptron"), max_iter=1).fit(*samples())
    for export in (
        lambda: trainer.get_trained_onnx(merged=False),
        lambda: trainer.save_adapter(tmp_path / "a"),
    ):
        with pytest.raises(ValueError, match="trained without adapters: set lora"):
            export()
    assert not list(tmp_path.iterdir())


def test_zipmap_is_rejected():
    trainer = OrtGradientOptimizer(network_file("perceptron"), lora=2, max_iter=1).fit(*samples())
    with pytest.raises(ValueError, match="zipmap=True is for scikit-learn models"):
        trainer.get_trained_onnx(zipmap=True, merged=False)


def test_nested_parameters():
    X, y = samples(n=60)
    trainer = OrtGradientOptimizer(network_file("perceptron"), lora=LoRA(2, target="w0"), max_iter=2)
    assert trainer.get_params()["lora__rank"] == 2
    copied = clone(trainer).set_params(lora__rank=1, lora__alpha=4.0)
    assert (copied.lora.scale, trainer.lora.rank) == (4.0, 2)
    search = GridSearchCV(trainer, {"lora__rank": [1, 3]}, cv=2).fit(X, y)
    assert search.best_estimator_.get_weights()["w0.lora_A"].shape == (24, search.best_params_["lora__rank"])
    with pytest.raises(ValueError, match=r"'lora__rank' cannot be set, since lora=4 .* lora=LoRA\(4\)"):
        OrtGradientOptimizer(network_file("perceptron"), lora=4).set_params(lora__rank=2)


@pytest.mark.slow
def test_pickled_and_saved(tmp_path, optimizer):
    X, y = samples()
    trainer = optimizer(network_file("transformer"), lora=LoRA(2, target="/enc"), max_iter=2, random_state=0)
    trainer.fit(X, y)
    saving.save(trainer, tmp_path / "trained.zip")
    for copied in (pickle.loads(pickle.dumps(trainer)), saving.load(tmp_path / "trained.zip")):
        assert copied.lora.get_params() == trainer.lora.get_params()
        assert (copied.predict(X) == trainer.predict(X)).all()
        assert copied.get_trained_onnx(merged=False) == trainer.get_trained_onnx(merged=False)
        expected = clone(trainer).fit(X, y).partial_fit(X, y).get_weights()
        found = copied.partial_fit(X, y).get_weights()
        assert all((found[key] == array).all() for key, array in expected.items())


def test_adapter_files_in_onnxruntime(tmp_path, optimizer):
    """onnxruntime reads and applies the file written by ``save_adapter``."""
    onnxruntime = pytest.importorskip("onnxruntime")
    if not hasattr(onnxruntime, "LoraAdapter"):
        pytest.skip("adapters need onnxruntime 1.20 or later")
    for name, dtype in (*((name, np.float32) for name in NETWORKS), ("perceptron", np.float64)):
        X, y = samples(dtype)
        trainer = optimizer(
            network_file(name, dtype), lora=LoRA(2, target="*"), max_iter=1, random_state=0
        ).fit(X, y)
        weights, path = set_random_weights(trainer), trainer.save_adapter(tmp_path / f"{name}.onnx_adapter")
        read = onnxruntime.AdapterFormat.read_adapter(str(path)).get_parameters()
        assert {key: value.numpy().tobytes() for key, value in read.items()} == {
            key: array.tobytes() for key, array in weights.items()
        }
        adapter, options = onnxruntime.LoraAdapter(), onnxruntime.RunOptions()
        adapter.Load(str(path))
        options.add_active_adapter(adapter)
        session = onnxruntime.InferenceSession(
            trainer.get_trained_onnx(merged=False).SerializeToString(), providers=["CPUExecutionProvider"]
        )
        (adapted,), (plain,) = session.run(None, {"x": X}, options), session.run(None, {"x": X})
        np.testing.assert_allclose(adapted, trainer.predict(X), rtol=1e-4, atol=1e-5)
        assert np.abs(plain - adapted).max() > 0.01


def test_sequences_with_a_label_at_every_step(optimizer, run_onnx):
    """X has three dimensions, and an output layer is applied at every step, after layers with adapters."""
    file = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]>
        g (float[N,6,4] x) => (float[N,2] y) { ["/0/MatMul"] a = MatMul (x, w) h = Tanh (a)
        m = ReduceMean <keepdims = 0> (h, one) y = MatMul (m, v) }""")
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(4, 8)) * [[0], [1], [1], [1]]  # the first column has no effect on the features
    for name, array in {"w": weight, "v": rng.normal(size=(8, 2))}.items():
        file.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))
    file.graph.initializer.append(numpy_helper.from_array(np.array([1]), "one"))
    new = replace_head(file, "h", classes=["down", "up"], axis=-1)
    X = rng.normal(size=(300, 6, 4)).astype(np.float32)
    y = np.where(X[..., 0] > 0, "up", "down")
    options = {"max_iter": 20, "random_state": 0, "learning_rate": LearningRateAdam(eta0=0.03)}
    alone = optimizer(new, **options).fit(X, y)
    trainer = optimizer(new, lora=LoRA(2, target="w"), **options).fit(X, y)
    assert set(trainer.get_weights()) == {"head.weight", "head.bias", "w.lora_A", "w.lora_B"}
    assert trainer.score(X, y) > 0.95 > 0.6 > alone.score(X, y)
    assert (run_onnx(trainer.get_trained_onnx(), X)["label"] == trainer.predict(X)).all()
    found = run_onnx(
        trainer.get_trained_onnx(merged=False),
        X,
        **{name: array for name, array in trainer.get_weights().items() if "lora" in name},
    )
    np.testing.assert_allclose(found["probabilities"], trainer.predict_proba(X), rtol=1e-4, atol=1e-5)


def test_peepholes_have_no_adapters():
    """They are vectors, one per direction."""
    file = network_file("recurrent")
    node = next(node for node in file.graph.node if node.op_type == "LSTM")
    node.input.extend(["", "", "", "p"])
    file.graph.initializer.append(numpy_helper.from_array(np.ones((2, 9), np.float32), "p"))
    table = explain(file, lora=LoRA(2, target="LSTM"))
    trained = {name.partition(".")[0] for row in table.rows if row.trainable for name in row.weights}
    assert trained == {"wi", "wh"}
    with pytest.raises(NoTrainableWeightError, match="'p' of LSTM, which do not support low-rank"):
        OrtGradientOptimizer(file, lora=LoRA(1, target="p")).fit(*samples())


def test_default_adapters_of_stacked_matrices():
    """A weight of three matrices (8, 5) is larger than its adapter of rank 3, but not of rank 4."""
    for rank, expected in ((3, {"we"}), (1, {"we", "wy"})):
        table = explain(network_file("experts"), lora=LoRA(rank))
        trained = {name.partition(".")[0] for row in table.rows if row.trainable for name in row.weights}
        assert trained == expected
    with pytest.raises(NoTrainableWeightError, match="larger than its adapter of rank 4"):
        OrtGradientOptimizer(network_file("experts"), lora=LoRA(4)).fit(*samples())
