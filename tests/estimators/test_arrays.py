"""Images and sequences: samples, labels and scores of any number of dimensions, against NumPy."""

import pickle

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV

from ortlearn import OrtGradientOptimizer
from ortlearn.estimators import OrtGradientForwardBackwardOptimizer
from ortlearn.estimators.scoring import r2_of_positions
from ortlearn.learning_rates import LearningRateSGD
from ortlearn.saving import load, save
from ortlearn.training.devices import Device
from ortlearn.training.sessions import make_session
from tests.estimators.array_graphs import FILES

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RATE = 0.01
ONE_STEP = {
    "learning_rate": LearningRateSGD(RATE, learning_rate="constant"),
    "max_iter": 1,
    "batch_size": 1000,
    "shuffle": False,
    "warm_start": True,
    "keep_better": False,
}


def dtype_of(file):
    """Return float64, and float32 for a convolution, of which onnxruntime has no other."""
    return np.float32 if "Conv" in file.nodes else np.float64


def loss_of(file):
    return "log_loss" if file.n_classes else "squared_error"


def trainer(optimizer, file, **options):
    options = {"learning_loss": loss_of(file), "random_state": 0, **ONE_STEP, **options}
    return optimizer(**{"estimator": file.model(dtype_of(file)), **options})


def weights_of(trained, file):
    """Return all weights, trained and frozen."""
    return {**file.draw(dtype_of(file)), **trained.trained_coef_}


def position_losses(file, scores, y):
    """Return the loss of each label, by its definition."""
    if not file.n_classes:
        return (scores - y) ** 2 / 2
    if file.axis is None or scores.shape[file.axis] == 1:
        z = scores if file.axis is None else scores.squeeze(file.axis)
        return np.logaddexp(0, z) - y * z
    chosen = np.take_along_axis(log_softmax(scores, axis=file.axis), np.expand_dims(y, file.axis), file.axis)
    return -chosen.squeeze(file.axis)


def objective(file, arrays, X, y, sample_weight):
    """Return the objective of all samples: a mean over positions, a sum over the elements of regressors."""
    losses = position_losses(file, file.scores(X.astype(np.float64), **arrays), y)
    weights = np.ones(1) if sample_weight is None else sample_weight
    weights = np.broadcast_to(weights.reshape(weights.shape + (1,) * (y.ndim - weights.ndim)), y.shape)
    count = 1 if file.n_classes else y[0].size
    return count * (weights * losses).sum() / weights.sum()


@pytest.fixture(params=FILES)
def file(request):
    return FILES[request.param]


@pytest.mark.parametrize("weighted", ["no", "samples", "positions"])
def test_a_step_is_along_the_gradient_of_the_definition(optimizer, file, weighted):
    X, y = file.samples(12, dtype_of(file))
    rng = np.random.default_rng(3)
    weight = {"no": None, "samples": rng.random(12), "positions": rng.random(y.shape)}[weighted]
    trained = trainer(optimizer, file).fit(X, y, weight)
    start = {name: array.astype(np.float64) for name, array in file.draw(dtype_of(file)).items()}
    tolerance = 2e-3 if dtype_of(file) == np.float32 else 1e-6
    assert trained.train_losses_[0] == pytest.approx(objective(file, start, X, y, weight), rel=1e-5)
    steps = {name: (start[name] - array) / RATE for name, array in trained.trained_coef_.items()}
    for name, gradient in steps.items():
        way = rng.normal(0, 1, gradient.shape)
        up, down = ({**start, name: start[name] + sign * 1e-5 * way} for sign in (1, -1))
        slope = (objective(file, up, X, y, weight) - objective(file, down, X, y, weight)) / 2e-5
        found, size = float((gradient * way).sum()), np.abs(gradient * way).sum()
        assert size > 1e-3
        assert found == pytest.approx(slope, abs=tolerance * size), name


def test_predictions_are_those_of_the_definition(optimizer, file):
    X, y = file.samples(12, dtype_of(file))
    trained = trainer(optimizer, file).fit(X, y)
    scores = file.scores(X, **weights_of(trained, file))
    written = make_session(trained.get_trained_onnx(), Device("cpu")).run(None, {"x": X})[0]
    close = {"rtol": 1e-4, "atol": 1e-5}
    if not file.n_classes:
        np.testing.assert_allclose(trained.predict(X), scores, **close)
        np.testing.assert_array_equal(trained.predict(X), written)
        flat = y.reshape(12, -1), trained.predict(X).reshape(12, -1)
        weight = np.linspace(0, 1, 12)
        assert trained.score(X, y) == pytest.approx(r2_score(*flat))
        assert trained.score(X, y, weight) == pytest.approx(r2_score(*flat, sample_weight=weight))
        assert trained.score(X, y, np.ones(y.shape)) == pytest.approx(r2_score(*flat))
    else:
        binary = file.axis is None or scores.shape[file.axis] == 1
        if binary:
            axis = -1 if file.axis is None else file.axis
            scores = scores[..., None] if file.axis is None else scores
            scores = np.concatenate([np.zeros_like(scores), scores], axis=axis)
        axis = -1 if file.axis is None else file.axis
        np.testing.assert_allclose(trained.predict_proba(X), softmax(scores, axis=axis), **close)
        np.testing.assert_array_equal(trained.predict(X), scores.argmax(axis=axis))
        if not binary and "max" in file.nodes:
            np.testing.assert_array_equal(trained.predict_proba(X), written)
        weight = np.random.default_rng(0).random(y.shape)
        known = accuracy_score(y.ravel(), trained.predict(X).ravel(), sample_weight=weight.ravel())
        assert trained.score(X, y, weight) == pytest.approx(known)
        assert trained.score(X, y) == pytest.approx(np.mean(y == trained.predict(X)))
    losses = position_losses(file, file.scores(X, **weights_of(trained, file)), y).reshape(12, -1)
    per_sample = losses.mean(axis=1) if file.n_classes else losses.sum(axis=1)
    np.testing.assert_allclose(trained.losses(X, y), per_sample, rtol=1e-4)
    assert trained.predict(X).shape == y.shape


def test_both_ways_of_training_agree_over_batches(both, file):
    X, y = file.samples(25, dtype_of(file))
    weight = np.random.default_rng(0).random(y.shape)
    options = {"batch_size": 4, "max_iter": 3, "shuffle": True}
    one, two = (trainer(kind, file, **options).fit(X, y, weight) for kind in both)
    for name, array in one.trained_coef_.items():
        np.testing.assert_allclose(array, two.trained_coef_[name], rtol=1e-4, atol=1e-6)


def test_sklearn_takes_it_for_an_estimator(either, file, tmp_path):
    X, y = file.samples(90, dtype_of(file))
    model = trainer(either, file, max_iter=2, early_stopping=True, batch_size=8)
    search = GridSearchCV(model, {"batch_size": [5, 10]}, cv=2).fit(X, y)
    best = search.best_estimator_
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    for same in (pickle.loads(pickle.dumps(best)), clone(best).fit(X, y)):
        np.testing.assert_array_equal(same.predict(X), best.predict(X))
    save(best, tmp_path / "model.zip")
    again = load(tmp_path / "model.zip")
    np.testing.assert_array_equal(again.predict(X), best.predict(X))
    stream = trainer(either, file).partial_fit(X, y)
    save(stream, tmp_path / "stream.zip")
    continued = load(tmp_path / "stream.zip").partial_fit(X, y)
    np.testing.assert_array_equal(continued.predict(X), stream.partial_fit(X, y).predict(X))


@pytest.mark.parametrize("name", ["steps", "transposed_steps", "forecast"])
def test_labels_of_weight_zero_may_be_anything(optimizer, name):
    file = FILES[name]
    X, y = file.samples(20, np.float64)
    weight = (np.random.default_rng(0).random(y.shape) > 0.3).astype(float)
    hidden = np.where(weight > 0, y, -100 if file.n_classes else np.nan)
    options = {"batch_size": 5, "max_iter": 2}
    one, two = (trainer(optimizer, file, **options).fit(X, labels, weight) for labels in (y, hidden))
    for array, other in zip(one.trained_coef_.values(), two.trained_coef_.values(), strict=True):
        np.testing.assert_array_equal(array, other)
    assert one.score(X, y, weight) == two.score(X, hidden, weight)
    np.testing.assert_allclose(one.losses(X, y, weight), two.losses(X, hidden, weight))
    validated = trainer(optimizer, file, **options, early_stopping=True)
    validated.fit(X, hidden, weight, X_val=X, y_val=hidden, sample_weight_val=weight)
    known = objective(file, weights_of(validated, file), X, y, weight)
    assert validated.validation_losses_[-1] == pytest.approx(known)


@pytest.mark.parametrize("name", ["steps", "transposed_steps"])
def test_sequences_of_any_length(optimizer, name):
    file = FILES[name]
    X, y = file.samples(20, np.float64)
    free = optimizer(file.model(np.float64, symbolic=True), learning_loss="log_loss", **ONE_STEP)
    fixed = trainer(optimizer, file).fit(X, y)
    free.fit(X, y)
    for own, known in zip(free.trained_coef_.values(), fixed.trained_coef_.values(), strict=True):
        np.testing.assert_allclose(own, known)
    longer = np.concatenate([X, X[:, :2]], axis=1)
    labels = np.concatenate([y, y[:, :2]], axis=1)
    assert free.predict(longer).shape == (20, 7)
    assert free.partial_fit(longer, labels).score(longer, labels) >= 0
    with pytest.raises(ValueError, match=r"X has the shape \(20, 7, 3\), the model is expecting"):
        fixed.predict(longer)
    with pytest.raises(ValueError, match="y has 7 labels for each sample, and the model has 5 scores"):
        free.partial_fit(X, labels)


def test_memory_maps_are_not_copied_for_a_batch(either, tmp_path):
    file = FILES["pixels"]
    X, y = file.samples(20)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    one, two = (trainer(either, file, batch_size=5).fit(rows, y) for rows in (X, mapped))
    np.testing.assert_array_equal(one.predict(X), two.predict(mapped))


@pytest.mark.parametrize(
    "name, options",
    [
        ("pixels", {"learning_loss": "focal"}),
        ("pixels", {"learning_loss": "hinge"}),
        ("pixels", {"class_weight": "balanced"}),
        ("mask", {"class_weight": {0: 1.0, 1: 3.0}}),
        ("forecast", {"learning_loss": "huber"}),
        ("forecast", {"learning_loss": "absolute_error"}),
        ("forecast", {"learning_rate": "LBFGS"}),
        ("steps", {"learning_rate": "LBFGS"}),
        ("steps", {"learning_rate": "auto"}),
        ("pixels", {"learning_rate": "auto"}),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_and_updates(either, name, options, weighted):
    file = FILES[name]
    X, y = file.samples(40, dtype_of(file))
    weight = np.random.default_rng(0).random(y.shape) if weighted else None
    model = trainer(either, file, **{"batch_size": 10, "max_iter": 20, **options}).fit(X, y, weight)
    assert model.train_losses_[-1] < model.train_losses_[0]


def test_weights_of_classes_are_weights_of_pixels(either):
    file = FILES["pixels"]
    X, y = file.samples(12)
    table = {0: 1.0, 1: 3.0, 2: 0.5, 3: 0.0}
    weight = np.random.default_rng(0).random(12)
    one = trainer(either, file, class_weight=table).fit(X, y, weight)
    two = trainer(either, file).fit(X, y, np.vectorize(table.get)(y) * weight[:, None, None])
    np.testing.assert_allclose(one.train_losses_, two.train_losses_, rtol=1e-6)
    balanced = trainer(either, file, class_weight="balanced").fit(X, y)
    counts = np.bincount(y.ravel())
    three = trainer(either, file).fit(X, y, (1 / counts)[y])
    np.testing.assert_allclose(balanced.train_losses_, three.train_losses_, rtol=1e-6)


@pytest.mark.parametrize("name", ["steps", "forecast"])
def test_a_loss_in_python_is_of_each_position(name):
    file = FILES[name]
    X, y = file.samples(15, np.float64)
    model = file.model(np.float64)
    if file.n_classes:  # a function does not say that it is for classes: labels do
        model.graph.node.append(helper.make_node("ArgMax", ["y"], ["label"], axis=2, keepdims=0))
        model.graph.output.append(helper.make_tensor_value_info("label", TensorProto.INT64, ["N", 5]))

    def squares(expected, predicted):
        return ((predicted - expected) ** 2 / 2).sum(axis=1), predicted - expected

    def multinomial(expected, predicted):
        losses = -(expected * log_softmax(predicted, axis=1)).sum(axis=1)
        return losses, softmax(predicted, axis=1) - expected

    weight = np.random.default_rng(0).random(y.shape)
    options = {"batch_size": 4, "max_iter": 2}
    known = trainer(OrtGradientForwardBackwardOptimizer, file, **options, estimator=model)
    found = clone(known).set_params(learning_loss=multinomial if file.n_classes else squares)
    known, found = (one.fit(X, y, weight) for one in (known, found))
    for name, array in known.trained_coef_.items():
        np.testing.assert_allclose(array, found.trained_coef_[name], rtol=1e-9)
    np.testing.assert_allclose(known.losses(X, y), found.losses(X, y))


def test_labels_with_an_axis_for_the_classes(either):
    file = FILES["mask"]
    X, y = file.samples(12)
    one, two = trainer(either, file).fit(X, y), trainer(either, file).fit(X, y[:, None])
    np.testing.assert_array_equal(one.predict(X)[:, None], two.predict(X))
    assert two.score(X, y[:, None]) == one.score(X, y)


def test_new_rows_may_lack_classes(either):
    file = FILES["pixels"]
    X, y = file.samples(12)
    model = trainer(either, file).fit(X, np.minimum(y, 1))
    assert model.classes_.tolist() == [0, 1, 2, 3]
    names = np.array(["sky", "road", "car", "tree"])
    named = trainer(either, file).fit(X, names[np.minimum(y, 1)], classes=names)
    np.testing.assert_array_equal(names[model.predict(X)], named.predict(X))


BAD = {
    "rank of X": ("pixels", {"X": np.ones((12, 60))}, r"X has the shape \(12, 60\), the model is expecting"),
    "size of X": ("pixels", {"X": np.ones((12, 3, 6, 5))}, r"X has the shape \(12, 3, 6, 5\)"),
    "NaN": ("pixels", {"X": np.full((12, 2, 6, 5), np.nan)}, "Input X contains NaN"),
    "lengths": (
        "steps",
        {"X": [np.ones((1 + i % 2, 3)) for i in range(12)]},
        "X have other shapes.*pad them",
    ),
    "texts": ("steps", {"X": np.full((12, 5, 3), "a")}, "X must hold numbers"),
    "rank of y": ("pixels", {"y": np.zeros((12, 30), int)}, r"\(n, h, w\) for scores \(n, k, h, w\)"),
    "size of y": ("transposed_steps", {"y": np.zeros((12, 4), int)}, r"y has the shape \(12, 4\)"),
    "lengths of y": ("steps", {"y": [[0] * (1 + i % 2) for i in range(12)]}, "y have other shapes.*pad them"),
    "classes": ("pixels", {"y": np.arange(12 * 30).reshape(12, 6, 5)}, "4 scores for the classes"),
    "elements": ("forecast", {"y": np.zeros((12, 6, 2))}, r"y has the shape \(12, 6, 2\).*\(n, 2, 6\)"),
    "NaN in y": ("forecast", {"y": np.full((12, 2, 6), np.nan)}, "y contains NaN"),
    "weights": ("steps", {"sample_weight": np.ones((12, 4))}, r"shape \(12, 4\), and y \(12, 5\)"),
    "negative weights": ("steps", {"sample_weight": -np.ones((12, 5))}, "not negative"),
    "zero weights": ("steps", {"sample_weight": np.zeros((12, 5))}, "zero for every position"),
    "weights of images": ("images", {"sample_weight": np.ones((12, 2))}, r"shape \(12, 2\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(either, case):
    name, given, message = BAD[case]
    X, y = FILES[name].samples(12, dtype_of(FILES[name]))
    with pytest.raises(ValueError, match=message):
        trainer(either, FILES[name]).fit(**{"X": X, "y": y, **given})


def test_classes_of_time_steps_need_a_loss_for_them(either):
    X, y = FILES["steps"].samples(12, np.float64)
    with pytest.raises(ValueError, match="whole numbers of shape.*learning_loss='log_loss'"):
        trainer(either, FILES["steps"], learning_loss="auto").fit(X, y)


def test_models_of_sklearn_take_matrices(either):
    from sklearn.linear_model import Ridge

    with pytest.raises(ValueError, match="Found array with dim 4"):
        either(Ridge()).fit(np.ones((5, 2, 2, 2)), np.ones(5))
    with pytest.raises(ValueError, match="Found array with dim 3"):
        either(Ridge()).fit(np.ones((5, 2)), np.ones((5, 2, 2)))
    with pytest.raises(ValueError, match="1D|for ONNX files"):
        either(Ridge()).fit(np.ones((5, 2)), np.ones((5, 2)), np.ones((5, 2)))


def test_hoisted_convolutions(both):
    file = FILES["pixels"]
    X, y = file.samples(20)
    options = {"batch_size": 6, "weights_to_train": ["v", "c"]}
    for kind in both:
        one, two = (trainer(kind, file, **options, hoist=hoist).fit(X, y) for hoist in (True, False))
        np.testing.assert_allclose(one.trained_coef_["v"], two.trained_coef_["v"], rtol=1e-4)


def test_an_automatic_rate_trains_images_by_batches():
    X, y = FILES["pixels"].samples(30)
    model = trainer(OrtGradientOptimizer, FILES["pixels"], learning_rate="auto", batch_size=10).fit(X, y)
    assert type(model.learning_rate_).__name__ == "LearningRateAdam"


POOLED = """<ir_version: 8, opset_import: ["": 18]>
    g (int64[N,T] word, double[N,T] mask, double[N,2,2] extra) => (double[N,3] y)
    <int64[1] axis = {1}, int64[1] end = {2}> {
      a = Gather (table, word)
      b = Unsqueeze (mask, end)
      c = Mul (a, b)
      d = ReduceSum <keepdims = 0> (c, axis)
      e = ReduceSum <keepdims = 1> (mask, axis)
      f = Div (d, e)
      h = MatMul (f, w)
      i = Flatten (extra)
      k = MatMul (i, v)
      y = Add (h, k) }"""


@pytest.fixture
def pooled():
    """A network of three inputs, and samples of several lengths."""
    rng = np.random.default_rng(0)
    model = parser.parse_model(POOLED)
    weights = {
        name: rng.normal(0, 1, shape) for name, shape in {"table": (20, 4), "w": (4, 3), "v": (4, 3)}.items()
    }
    model.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in weights.items())
    mask = (np.arange(6) < rng.integers(1, 7, (80, 1))).astype(float)
    X = {"word": rng.integers(0, 20, (80, 6)), "mask": mask, "extra": rng.normal(0, 1, (80, 2, 2))}
    return model, X, rng.integers(0, 3, 80)


def pooled_scores(weights, X):
    embedded = weights["table"][X["word"]] * X["mask"][..., None]
    mean = embedded.sum(axis=1) / X["mask"].sum(axis=1, keepdims=True)
    return mean @ weights["w"] + X["extra"].reshape(-1, 4) @ weights["v"]


def test_several_inputs_of_any_rank(optimizer, pooled):
    model, X, y = pooled
    options = {**ONE_STEP, "batch_size": 7, "max_iter": 4, "shuffle": True, "random_state": 0}
    trained = optimizer(model, learning_loss="log_loss", **options, early_stopping=True).fit(X, y)
    scores = pooled_scores(trained.trained_coef_, X)
    np.testing.assert_allclose(trained.decision_function(X), scores)
    np.testing.assert_allclose(trained.predict_proba(X), softmax(scores, axis=1))
    assert trained.score(X, y) == accuracy_score(y, scores.argmax(axis=1))
    assert len(trained.validation_scores_) > 0


def test_what_a_mask_hides_changes_nothing(either, pooled):
    model, X, y = pooled
    options = {**ONE_STEP, "max_iter": 2, "batch_size": 9}
    longer = {
        "word": np.concatenate([np.where(X["mask"] > 0, X["word"], 7), np.full((80, 3), 5)], axis=1),
        "mask": np.concatenate([X["mask"], np.zeros((80, 3))], axis=1),
        "extra": X["extra"],
    }
    trainers = [either(model, learning_loss="log_loss", **options).fit(rows, y) for rows in (X, longer)]
    for name, array in trainers[0].trained_coef_.items():
        np.testing.assert_allclose(array, trainers[1].trained_coef_[name])
    np.testing.assert_allclose(trainers[0].predict_proba(longer), trainers[0].predict_proba(X))
    assert trainers[0].partial_fit(longer, y).score(X, y) >= 0


def test_searches_pick_rows_of_an_array_with_named_fields(either, pooled):
    model, X, y = pooled
    kinds = [(name, array.dtype, array.shape[1:]) for name, array in X.items()]
    rows = np.empty(80, dtype=kinds)
    for name, array in X.items():
        rows[name] = array
    search = GridSearchCV(either(model, learning_loss="log_loss", **ONE_STEP), {"max_iter": [1, 2]}, cv=2)
    search.fit(rows, y)
    np.testing.assert_array_equal(search.predict(rows), search.best_estimator_.predict(X))


BAD_INPUTS = {
    "sizes": ({"mask": np.ones((80, 5))}, "'word' and 'mask' of the model share the dimension 'T'.*6.*5"),
    "samples": ({"mask": np.ones((79, 6))}, "must be equally long"),
    "rank": ({"extra": np.ones((80, 4))}, r"Column 'extra' of X has the shape \(80, 4\)"),
    "lengths": ({"word": [[1] * (1 + i % 3) for i in range(80)]}, "column 'word' of X have other shapes"),
    "decimals": ({"word": np.full((80, 6), 0.5)}, "whole numbers"),
    "infinity": ({"extra": np.full((80, 2, 2), np.inf)}, "infinity .* in column 'extra'"),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_bad_inputs_of_several(either, pooled, case):
    model, X, y = pooled
    given, message = BAD_INPUTS[case]
    with pytest.raises(ValueError, match=message):
        either(model, learning_loss="log_loss", **ONE_STEP).fit({**X, **given}, y)
    lacking = {name: values for name, values in X.items() if name != "mask"}
    with pytest.raises(ValueError, match=r"Columns are missing: \['mask'\]"):
        either(model, learning_loss="log_loss", **ONE_STEP).fit(lacking, y)


@pytest.mark.parametrize("name", ["pixels", "steps", "forecast", "mask"])
def test_a_stream_of_arrays(either, name):
    file = FILES[name]
    X, y = file.samples(40, dtype_of(file))
    y = np.minimum(y, 1) if file.n_classes else y
    weight = (np.random.default_rng(0).random(y.shape) > 0.4).astype(float)
    hidden = np.where(weight > 0, y, -1 if file.n_classes else np.nan)
    options = {"batch_size": 7, "max_iter": 3, "shuffle": True}
    options |= {"class_weight": "balanced"} if file.n_classes else {}
    known = trainer(either, file, **options).fit(X, y, weight)
    streamed = trainer(either, file, **options).fit_stream(X, hidden, weight)
    for weights, other in zip(known.trained_coef_.values(), streamed.trained_coef_.values(), strict=True):
        np.testing.assert_array_equal(weights, other)

    def batches():
        for rows in (slice(0, 15), slice(15, 40)):
            yield X[rows], hidden[rows], weight[rows]

    options["shuffle"] = False
    known = trainer(either, file, **options).fit(X, y, weight)
    streamed = trainer(either, file, **options).fit_stream(batches, shuffle_buffer=14)
    for weights, other in zip(known.trained_coef_.values(), streamed.trained_coef_.values(), strict=True):
        np.testing.assert_allclose(weights, other, rtol=1e-5, atol=1e-7)
    if file.n_classes:
        assert streamed.classes_.tolist() == list(range(file.n_classes))


def test_a_file_with_its_own_loss_of_arrays(either):
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (double[N,3,4] x, double[N,3,2] label) => (double loss, double[N,3,2] y) <double[4,2] w> {
          y = MatMul (x, w)
          d = Sub (y, label)
          e = Mul (d, d)
          loss = ReduceMean <keepdims = 0> (e) }"""
    )
    rng = np.random.default_rng(0)
    X, w = rng.normal(0, 1, (50, 3, 4)), rng.normal(0, 1, (4, 2))
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    y = X @ rng.normal(0, 1, (4, 2))
    trained = either(model, **ONE_STEP).fit(X, y)
    assert trained.train_losses_[0] == pytest.approx(np.mean((X @ w - y) ** 2))
    gradient = 2 * np.einsum("ntd,ntk->dk", X, X @ w - y) / y.size
    np.testing.assert_allclose(trained.trained_coef_["w"], w - RATE * gradient)
    assert trained.predict(X).shape == y.shape
    known = r2_score(y.reshape(50, -1), trained.predict(X).reshape(50, -1))
    assert trained.score(X, y) == pytest.approx(known)


def test_elements_of_a_matrix_have_weights(optimizer):
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (double[N,4] x) => (double[N,2] y)
        { y = MatMul (x, w) }"""
    )
    rng = np.random.default_rng(0)
    X, y, weight, w = (rng.normal(0, 1, shape) for shape in ((50, 4), (50, 2), (50, 2), (4, 2)))
    weight = np.abs(weight)
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    trained = optimizer(model, **ONE_STEP).fit(X, y, weight)
    gradient = 2 * X.T @ (weight * (X @ w - y)) / weight.sum()
    np.testing.assert_allclose(trained.trained_coef_["w"], w - RATE * gradient)
    parts = [r2_score(y[:, k], trained.predict(X)[:, k], sample_weight=weight[:, k]) for k in (0, 1)]
    assert trained.score(X, y, weight) == pytest.approx(np.mean(parts))
    assert trained.partial_fit(X, y).partial_fit(X, y, sample_weight=weight).predict(X).shape == (50, 2)
    with pytest.raises(ValueError, match="from the first call on"):
        optimizer(model, **ONE_STEP).partial_fit(X, y).partial_fit(X, y, sample_weight=weight)


def test_many_images_are_run_in_chunks(either, monkeypatch):
    file = FILES["pixels"]
    X, y = file.samples(20)
    trained = trainer(either, file).fit(X, y)
    whole = trained.predict_proba(X), trained.losses(X, y)
    monkeypatch.setattr("ortlearn.estimators.inference.CHUNK_BYTES", 3 * X[0].nbytes)
    np.testing.assert_allclose(trained.predict_proba(X), whole[0], rtol=1e-5)
    np.testing.assert_allclose(trained.losses(X, y), whole[1], rtol=1e-5)


def test_scores_of_weights_that_are_zero_for_an_element():
    y = np.array([[1.0, 5.0], [2.0, 7.0], [4.0, 9.0]])
    predicted, weight = y + np.array([[0.5, 0], [0, 0], [0, 0]]), np.array([[1, 0], [1, 0], [1, 0]])
    known = r2_score(y[:, 0], predicted[:, 0])
    assert r2_of_positions(y, predicted, weight) == pytest.approx(known)
    constant = np.ones((3, 2))
    assert r2_of_positions(constant, constant, None) == 1.0
    assert r2_of_positions(constant, constant + 1, None) == 0.0
