"""Tasks, links and scores of ONNX files are inferred from their outputs and nodes."""

import numpy as np
import pytest
from onnx import numpy_helper, parser
from scipy.special import expit
from skl2onnx import to_onnx
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.preprocessing import scale

from ortlearn import OrtGradientOptimizer
from ortlearn.trainable.conversion import to_trainable

X, CLASSES = load_iris(return_X_y=True)
X = scale(X).astype(np.float32)
TWO = (CLASSES == 1).astype(int)
LABELS = np.stack([CLASSES > 0, CLASSES > 1, X[:, 0] > 0], axis=1).astype(int)
NO_STEP = {"warm_start": True, "max_iter": 1, "learning_rate": 1e-30}


def exported(model, y):
    fitted = model.fit(X, y)
    options = {"zipmap": False} if hasattr(fitted, "predict_proba") else None
    return fitted, to_onnx(fitted, X[:1], options=options, target_opset={"": 18, "ai.onnx.ml": 3})


@pytest.mark.parametrize(
    "model, y, link, n_scores, n_weights",
    [
        (BaggingClassifier(LogisticRegression(), n_estimators=3, random_state=0), CLASSES, "softmax", 3, 6),
        (CalibratedClassifierCV(RidgeClassifier(), cv=2), TWO, "softmax", 2, 4),
        (OneVsRestClassifier(LogisticRegression()), CLASSES, "sigmoid", 3, 6),
        (RidgeClassifier(), TWO, "sigmoid", 1, 2),
    ],
    ids=["members", "calibrated", "rest", "decisions"],
)
def test_members_of_meta_estimators_are_trained(model, y, link, n_scores, n_weights):
    fitted, onx = exported(model, y)
    trained = OrtGradientOptimizer(onx, **NO_STEP).fit(X, y)
    scores = to_trainable(onx).scores
    assert (scores.link, scores.n_outputs, len(trained.weights_to_train_)) == (link, n_scores, n_weights)
    np.testing.assert_array_equal(trained.predict(X), fitted.predict(X))


def test_one_vs_one():
    fitted, onx = exported(OneVsOneClassifier(LogisticRegression()), CLASSES)
    assert to_trainable(onx).scores.score == "Csvcconc"
    trained = OrtGradientOptimizer(onx, **NO_STEP).fit(X, CLASSES)
    np.testing.assert_array_equal(trained.predict(X), fitted.predict(X))


@pytest.mark.parametrize("loss", ["auto", "log_loss"])
@pytest.mark.parametrize("model", [OneVsRestClassifier(LogisticRegression()), RidgeClassifier()])
def test_multilabel(model, loss):
    fitted, onx = exported(model, LABELS)
    trained = OrtGradientOptimizer(onx, learning_loss=loss, **NO_STEP).fit(X, LABELS)
    scores = trained._fitted.problem.trainable.scores
    assert (scores.task, scores.link, scores.n_outputs) == ("multilabel", "sigmoid", 3)
    np.testing.assert_array_equal(trained.predict(X), fitted.predict(X))


def test_classes_in_any_order():
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[N,1] x) => (int64[N] label, float[N,3] p)
        <float[1,3] w = {1, -1, 0}, float[3] b = {0, 0, 0}, int64[3] classes = {7, 3, 5}>
        { m = MatMul (x, w) z = Add (m, b) p = Softmax (z)
          best = ArgMax <axis = 1, keepdims = 0> (p) label = Gather (classes, best) }"""
    )
    samples = np.array([[3.0], [-3.0]], dtype=np.float32)
    trained = OrtGradientOptimizer(model, **NO_STEP).fit(samples, [7, 3])
    assert trained.predict(samples).tolist() == [7, 3]
    np.testing.assert_allclose(
        trained.losses(samples, [7, 3]), np.log(1 + np.exp(-3) + np.exp(-6)), rtol=1e-4
    )


FLAT = {
    "logit": "y = Squeeze (z, one)",
    "squeezed probability": "p = Sigmoid (z) y = Squeeze (p, one)",
    "probability of a squeezed logit": "s = Squeeze (z, one) y = Sigmoid (s)",
    "reshaped": "y = Reshape (z, all)",
    "taken": "p = Sigmoid (z) y = Gather <axis = 1> (p, first)",
    "second class": "t = Concat <axis = 1> (none, z) p = Softmax (t) y = Gather <axis = 1> (p, second)",
}


@pytest.mark.parametrize("name", FLAT)
def test_single_output_scores_the_second_class(name):
    """As exported from ``model(x).squeeze(1)`` and ``model(x)[:, 0]``."""
    file = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 13]> g (float[N,4] x) => (float[N] y)
        <float[4,1] w = {{1, -1, 0.5, 1}}, float[1] b = {{0.1}}, int64[1] one = {{1}}, int64[1] all = {{-1}},
        float[1] no = {{0}}, int64 first = {{0}}, int64 second = {{1}}>
        {{ m = MatMul (x, w) z = Add (m, b) none = Mul (z, no) {FLAT[name]} }}""")
    trained = OrtGradientOptimizer(file, learning_loss="log_loss", **NO_STEP).fit(X, TWO)
    logits = X @ np.array([1, -1, 0.5, 1]) + 0.1
    np.testing.assert_allclose(trained.decision_function(X), logits, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(trained.predict_proba(X)[:, 1], 1 / (1 + np.exp(-logits)), rtol=1e-5)
    np.testing.assert_array_equal(trained.predict(X), logits > 0)
    assert trained.get_trained_onnx().graph.output == file.graph.output


HEAD = '<ir_version: 8, opset_import: ["": 17]> g (float[N,3] x) => (int64[N,1] label, float[N,1] score)'
SIGNS = "{ q = MatMul (x, w) score = %s (q) b = %s (score, zero) label = %s }"


def file_of_signs(score, comparison="Greater", label="Cast <to = 7> (b)"):
    """Return a file whose labels are comparisons of a score with a number."""
    model = parser.parse_model(HEAD + SIGNS % (score, comparison, label))
    arrays = {"w": np.array([[1.0], [0.5], [0.0]], np.float32), "one": np.array(1), "minus": np.array(-1)}
    arrays["zero"] = np.array(0.5 if score == "Sigmoid" else 0.0, np.float32)
    model.graph.initializer.extend(numpy_helper.from_array(value, key) for key, value in arrays.items())
    return model


SAMPLES = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
SECOND = (SAMPLES[:, 0] > 0).astype(int)


def test_scores_of_decisions_have_a_link():
    trained = OrtGradientOptimizer(file_of_signs("Identity"), random_state=0).fit(SAMPLES, SECOND)
    shares = trained.predict_proba(SAMPLES)
    np.testing.assert_allclose(shares[:, 1], expit(np.ravel(trained.decision_function(SAMPLES))), rtol=1e-5)
    np.testing.assert_array_equal(trained.predict(SAMPLES), shares.argmax(axis=1))


@pytest.mark.parametrize(
    "options, labels, text",
    [
        (("Tanh",), SECOND, "outside of 0 to 1"),
        (("Sigmoid", "Less"), SECOND, "another order"),
        (("Sigmoid", "Greater", "Where (b, one, minus)"), SECOND, r"predicts labels \[-1\]"),
    ],
)
def test_labels_that_scores_do_not_give_are_refused(options, labels, text):
    with pytest.raises(ValueError, match=text):
        OrtGradientOptimizer(file_of_signs(*options), random_state=0).fit(SAMPLES, labels)
