"""Inputs of any number of dimensions: variable lengths, masks, several inputs, and invalid data."""

import numpy as np
import pytest
from onnx import numpy_helper, parser
from scipy.special import softmax
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV

from ortlearn.inference.running import Inference
from ortlearn.training.optimisations.hoisting import CHUNK_BYTES
from tests.calls import calls_of
from tests.estimators.array_graphs import FILES, ONE_STEP, dtype_of, trainer

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


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
    with pytest.raises(ValueError, match=r"X has the shape \(20, 7, 3\), but the model expects"):
        fixed.predict(longer)
    with pytest.raises(ValueError, match="y has 7 labels per sample, and the model has 5 scores"):
        free.partial_fit(X, labels)


def test_memory_maps_are_not_copied(optimizer, tmp_path):
    file = FILES["pixels"]
    X, y = file.samples(20)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    one, two = (trainer(optimizer, file, batch_size=5).fit(samples, y) for samples in (X, mapped))
    np.testing.assert_array_equal(one.predict(X), two.predict(mapped))
    assert np.shares_memory(two._fitted.read(mapped).arrays["x"], mapped)


UNEQUAL = np.empty(12, dtype=object)
UNEQUAL[:] = [np.ones((1 + i % 2, 3)) for i in range(12)]
BAD = {
    "rank of X": ("pixels", {"X": np.ones((12, 60))}, r"X has the shape \(12, 60\), but the model expects"),
    "size of X": ("pixels", {"X": np.ones((12, 3, 6, 5))}, r"X has the shape \(12, 3, 6, 5\)"),
    "NaN": ("pixels", {"X": np.full((12, 2, 6, 5), np.nan)}, "Input X contains NaN"),
    "lengths": (
        "steps",
        {"X": [np.ones((1 + i % 2, 3)) for i in range(12)]},
        "X differ in shape, lengths of 1 to 2: pad them.*sample_weight of zero",
    ),
    "lengths in an array": ("steps", {"X": UNEQUAL}, "X differ in shape.*lengths of 1 to 2: pad them"),
    "texts": ("steps", {"X": np.full((12, 5, 3), "a")}, "X must hold numbers"),
    "rank of y": ("pixels", {"y": np.zeros((12, 30), int)}, r"\(n, h, w\) for scores \(n, k, h, w\)"),
    "size of y": ("transposed_steps", {"y": np.zeros((12, 4), int)}, r"y has the shape \(12, 4\)"),
    "lengths of y": ("steps", {"y": [[0] * (1 + i % 2) for i in range(12)]}, "y differ in shape.*pad them"),
    "lengths of y in an array": ("steps", {"y": UNEQUAL}, "y differ in shape.*lengths of 1 to 2"),
    "lengths of weights": ("steps", {"sample_weight": UNEQUAL}, "sample_weight differ in shape.*pad them"),
    "classes": ("pixels", {"y": np.arange(12 * 30).reshape(12, 6, 5)}, "4 scores for the classes"),
    "elements": ("forecast", {"y": np.zeros((12, 6, 2))}, r"y has the shape \(12, 6, 2\).*\(n, 2, 6\)"),
    "NaN in y": ("forecast", {"y": np.full((12, 2, 6), np.nan)}, "y contains NaN"),
    "weights": (
        "steps",
        {"sample_weight": np.ones((12, 4))},
        r"has the shape \(12, 4\): .* or the shape of y, \(12, 5\)",
    ),
    "negative weights": ("steps", {"sample_weight": -np.ones((12, 5))}, "not negative"),
    "zero weights": ("steps", {"sample_weight": np.zeros((12, 5))}, "zero for every position"),
    "weights of images": ("images", {"sample_weight": np.ones((12, 2))}, r"shape \(12, 2\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(optimizer, case):
    name, given, message = BAD[case]
    X, y = FILES[name].samples(12, dtype_of(FILES[name]))
    with pytest.raises(ValueError, match=message):
        trainer(optimizer, FILES[name]).fit(**{"X": X, "y": y, **given})


def test_scikit_learn_models_require_matrices(optimizer):
    with pytest.raises(ValueError, match="Found array with dim 4"):
        optimizer(Ridge()).fit(np.ones((5, 2, 2, 2)), np.ones(5))
    with pytest.raises(ValueError, match="Found array with dim 3"):
        optimizer(Ridge()).fit(np.ones((5, 2)), np.ones((5, 2, 2)))
    with pytest.raises(ValueError, match="1D|for ONNX files"):
        optimizer(Ridge()).fit(np.ones((5, 2)), np.ones((5, 2)), np.ones((5, 2)))


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
    """Return a network of three inputs, and samples of several lengths."""
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


def test_masked_values_have_no_effect(optimizer, pooled):
    model, X, y = pooled
    options = {**ONE_STEP, "max_iter": 2, "batch_size": 9}
    longer = {
        "word": np.concatenate([np.where(X["mask"] > 0, X["word"], 7), np.full((80, 3), 5)], axis=1),
        "mask": np.concatenate([X["mask"], np.zeros((80, 3))], axis=1),
        "extra": X["extra"],
    }
    trainers = [
        optimizer(model, learning_loss="log_loss", **options).fit(samples, y) for samples in (X, longer)
    ]
    for name, array in trainers[0].trained_coef_.items():
        np.testing.assert_allclose(array, trainers[1].trained_coef_[name])
    np.testing.assert_allclose(trainers[0].predict_proba(longer), trainers[0].predict_proba(X))
    assert trainers[0].partial_fit(longer, y).score(X, y) >= 0


def test_search_with_a_structured_array(optimizer, pooled):
    model, X, y = pooled
    kinds = [(name, array.dtype, array.shape[1:]) for name, array in X.items()]
    samples = np.empty(80, dtype=kinds)
    for name, array in X.items():
        samples[name] = array
    search = GridSearchCV(optimizer(model, learning_loss="log_loss", **ONE_STEP), {"max_iter": [1, 2]}, cv=2)
    search.fit(samples, y)
    np.testing.assert_array_equal(search.predict(samples), search.best_estimator_.predict(X))


BAD_INPUTS = {
    "sizes": ({"mask": np.ones((80, 5))}, "'word' and 'mask' of the model share the dimension 'T'.*6.*5"),
    "samples": ({"mask": np.ones((79, 6))}, "differ in length"),
    "rank": ({"extra": np.ones((80, 4))}, r"Column 'extra' of X has the shape \(80, 4\)"),
    "lengths": ({"word": [[1] * (1 + i % 3) for i in range(80)]}, "column 'word' of X differ in shape"),
    "decimals": ({"word": np.full((80, 6), 0.5)}, "had integers"),
    "infinity": ({"extra": np.full((80, 2, 2), np.inf)}, "infinity .* in column 'extra'"),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_bad_input_of_several_inputs(optimizer, pooled, case):
    model, X, y = pooled
    given, message = BAD_INPUTS[case]
    with pytest.raises(ValueError, match=message):
        optimizer(model, learning_loss="log_loss", **ONE_STEP).fit({**X, **given}, y)
    lacking = {name: values for name, values in X.items() if name != "mask"}
    with pytest.raises(ValueError, match=r"Columns are missing: \['mask'\]"):
        optimizer(model, learning_loss="log_loss", **ONE_STEP).fit(lacking, y)


@pytest.mark.slow
def test_images_are_processed_in_chunks(optimizer):
    file = FILES["pixels"]
    X, y = file.samples(20)
    trained = trainer(optimizer, file).fit(X, y)
    whole = trained.predict_proba(X)
    repeats = CHUNK_BYTES // X.nbytes + 2
    with calls_of(Inference._run_chunk) as calls:
        found = trained.predict_proba(np.concatenate([X] * repeats))
    assert len(calls) > 1
    np.testing.assert_allclose(found, np.concatenate([whole] * repeats), rtol=1e-5)


def test_lists_of_different_lengths(optimizer):
    file = parser.parse_model("""<ir_version: 8, opset_import: ["": 18]> g (float[N,T] x) => (float[N,1] y)
        <float[1,1] w = {1}, int64[1] a = {1}> { m = ReduceMean (x, a) y = MatMul (m, w) }""")
    samples = [np.ones(1 + i % 3) for i in range(6)]
    with pytest.raises(ValueError, match="X differ in shape, lengths of 1 to 3: pad them"):
        optimizer(file).fit(samples, np.ones(6))
    trained = optimizer(file, max_iter=1).fit(np.ones((6, 3)), np.ones(6))
    with pytest.raises(ValueError, match="X differ in shape, lengths of 1 to 3: pad them"):
        trained.predict(samples)


def test_object_array_of_arrays(optimizer):
    file = FILES["steps"]
    X, y = file.samples(12, np.float64)
    arrays = np.empty(12, dtype=object)
    arrays[:] = list(X)
    one, two = (trainer(optimizer, file).fit(samples, y) for samples in (X, arrays))
    np.testing.assert_array_equal(one.predict(X), two.predict(arrays))
