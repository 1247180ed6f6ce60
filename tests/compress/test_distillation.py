"""``distill``: students of every kind, the loss by its formula, more samples, fidelity, bad input."""

import numpy as np
import pandas as pd
import pytest
from onnx import numpy_helper, parser
from sklearn.datasets import load_digits, make_classification, make_friedman1
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neural_network import MLPClassifier

from ortlearn.compress import distill, prune, quantize
from ortlearn.compress.files import File
from ortlearn.compress.objectives import ScoreGraph, Term, tempered
from ortlearn.compress.students import more_samples, student_of_size
from ortlearn.compress.teachers import Teachers
from ortlearn.conversion import to_trainable
from ortlearn.runtime.graph_run import run_graph

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, y = make_classification(500, 8, n_informative=5, n_classes=3, class_sep=1.5, random_state=0)
NAMES = np.array(["a", "b", "c"])
HELD = X[350:], NAMES[y[350:]]
FAST = {"max_iter": 12, "batch_size": 100, "alpha": 0.9, "held_out": HELD, "eta0": 0.02, "extra": 0}


@pytest.fixture(scope="module")
def forest():
    return RandomForestClassifier(60, random_state=0).fit(X[:350], NAMES[y[:350]])


@pytest.mark.slow
@pytest.mark.sweep(2)
@pytest.mark.parametrize("student", ["mlp:16", "linear", "trees:10x3", MLPClassifier((8, 8))])
def test_students_of_a_forest(forest, student):
    options = FAST | {"extra": 1 if student == "linear" else 0}
    found = distill(forest, student, X[:350], NAMES[y[:350]], **options)
    assert found.loss < 0.2 and found.facts["agreement"]["value"] > 0.8
    assert found.n_bytes["new"] < found.n_bytes["old"] and found.facts["alpha"] == 0.9
    score = found.scores["accuracy"]["new"]["value"]
    assert score == pytest.approx(found.model.score(*HELD), abs=0.01)
    assert set(found.model.predict(X)) <= set(NAMES)
    assert found.model.get_params().get("mlpclassifier__max_iter", 200) == 200  # as the user would have it
    low, high = found.facts["agreement"]["interval"]
    assert low <= found.facts["agreement"]["value"] <= high


def test_divergence_is_that_of_its_formula(forest):
    found = distill(forest, "mlp:16", X[:350], **{**FAST, "alpha": "auto"})
    p, q = forest.predict_proba(HELD[0]), found.model.predict_proba(HELD[0])
    expected = (p * (np.log(np.clip(p, 1e-7, 1)) - np.log(np.clip(q, 1e-7, 1)))).sum(axis=1).mean()
    assert found.facts["kl"]["value"] == pytest.approx(expected, rel=1e-3) and found.facts["alpha"] == 1
    assert (found.model.predict(HELD[0]) == forest.predict(HELD[0])).mean() == pytest.approx(
        found.facts["agreement"]["value"]
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_loss_by_its_formula(classes):
    """Cross entropy at a temperature times its square, plus that of the labels."""
    kept = y < classes
    model = LogisticRegression().fit(X[kept], y[kept])
    graph = ScoreGraph.of(to_trainable(model))
    rng = np.random.default_rng(0)
    p, q = (tempered(rng.uniform(size=(20, classes)), 1.0) for _ in range(2))
    T, data = 3.0, X[kept][:20].astype(np.float32)
    loss = graph.with_loss(graph.model, [Term(0.7, T), Term(0.3)])
    loss.graph.output.reverse()
    labels = np.hstack([graph.targets(p), graph.targets(q)]).astype(np.float32)
    assert labels.shape[1] == (2 if classes == 2 else 6)
    z = model.decision_function(data).reshape(20, -1)
    z = np.hstack([0 * z, z]) if classes == 2 else z

    def entropy(target, score):
        return -(target * (score - np.log(np.exp(score).sum(axis=1, keepdims=True)))).sum(axis=1)

    expected = 0.7 * T**2 * entropy(p, z / T) + 0.3 * entropy(q, z)
    np.testing.assert_allclose(run_graph(loss, {"X": data, "label": labels}), expected, rtol=1e-4)


def test_tempered():
    p = np.array([[0.9, 0.1]])
    np.testing.assert_allclose(tempered(p, 2.0), np.sqrt(p) / np.sqrt(p).sum(), rtol=1e-12)
    np.testing.assert_allclose(tempered(p, 1.0), p, rtol=1e-12)


@pytest.mark.slow
def test_regression_and_several_teachers():
    data, target = make_friedman1(500, random_state=0)
    teachers = [RandomForestRegressor(20, random_state=seed).fit(data, target) for seed in (0, 1)]
    found = distill(teachers, "mlp:16", data, target, max_iter=15, alpha=1.0, eta0=0.01, extra=0)
    assert found.facts["fidelity r2"]["value"] > 0.7 and found.n_bytes["new"] < 0.05 * found.n_bytes["old"]
    found = distill(teachers, "trees:20x3", data, target, max_iter=15, extra=0)
    assert 0 <= found.facts["alpha"] <= 1 and found.facts["fidelity r2"]["value"] > 0.7


@pytest.mark.slow
def test_quantiles_of_a_teacher():
    """All columns that a teacher predicts are learned; y has no such columns."""
    data, target = make_friedman1(300, random_state=0)
    answers = np.column_stack([target - 2, target, target + 2])
    teacher = RandomForestRegressor(5, random_state=0).fit(data, answers)
    found = distill(teacher, "mlp:32", data, max_iter=40, eta0=0.02, extra=0, held_out=(data[:100], None))
    assert found.facts["fidelity r2"]["value"] > 0.7
    np.testing.assert_allclose(np.diff(found.model.predict(data)).mean(axis=0), 2, atol=0.2)
    with pytest.raises(ValueError, match="y has 1 numbers per sample, the teacher answers 3: leave y out"):
        distill(teacher, "mlp:32", data, target)


def networks():
    """Return an ONNX file of a teacher and one of a smaller student."""
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[N,8] x) => (float[N,3] p)
        { a = Gemm (x, w1, b1) h = Relu (a) z = Gemm (h, w2, b2) p = Softmax <axis = 1> (z) }"""
    found = []
    for seed, width in enumerate((32, 4)):
        rng = np.random.default_rng(seed)
        model = parser.parse_model(text)
        for name, shape in {"w1": (8, width), "b1": (width,), "w2": (width, 3), "b2": (3,)}.items():
            values = rng.normal(0, 0.8, shape).astype(np.float32)
            model.graph.initializer.append(numpy_helper.from_array(values, name))
        found.append(model)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("names", [["hi", "lo", "mid"], [1, 2, 3]])
def test_files_of_scores_take_any_labels(names):
    """Classes are in sorted order, as in a training."""
    teacher, student = networks()
    data = X[:150].astype(np.float32)
    numbers = File(teacher).matrix(data).argmax(axis=1)
    labels = np.array(names)[numbers]
    as_floats = quantize(teacher, data, numbers.astype(float))
    for found in (
        as_floats,
        quantize(teacher, data, labels),
        prune(teacher, data, labels, sparsity=0.1, max_iter=2),
    ):
        assert found.scores["accuracy"]["old"]["value"] == 1.0 and found.loss < 0.2
    options = {"max_iter": 3, "eta0": 0.02, "extra": 0}
    scores = [
        distill(LogisticRegression(max_iter=500).fit(data, own), student, data, own, **options).scores
        for own in (labels, numbers)
    ]
    assert scores[0]["accuracy"] == scores[1]["accuracy"]
    with pytest.raises(ValueError, match="y has 2 classes, and the file 3 scores: pass"):
        quantize(teacher, data, np.where(data[:, 0] > 0, "a", "b"))


@pytest.mark.slow
def test_onnx_files_and_hints():
    teacher, student = networks()
    data = X.astype(np.float32)
    labels = File(teacher).matrix(data).argmax(axis=1)
    teacher = LogisticRegression(max_iter=500).fit(data, labels)
    options = {"alpha": 1.0, "max_iter": 12, "batch_size": 100, "eta0": 0.02, "extra": 0}
    first = File(student).matrix(data).argmax(axis=1)
    found = distill(teacher, student, data, labels, **options)
    assert found.model is None and list(found.onnx.graph.output) == list(student.graph.output)
    assert found.facts["agreement"]["value"] > (first == teacher.predict(data)).mean() + 0.1
    big, _ = networks()
    taught = distill(File(big).model, student, data, None, hints={"z": "z"}, **options)
    plain = distill(File(big).model, student, data, None, **options)
    assert taught.onnx != plain.onnx and {"agreement", "kl"} <= set(taught.facts)
    with pytest.raises(ValueError, match="'h' has 4 numbers per sample, and 'h' of the teacher 32"):
        distill(big, student, data, None, hints={"h": "h"}, **options)


@pytest.mark.slow
def test_files_of_regressors():
    teacher, student = networks()
    for model in (teacher, student):
        del model.graph.node[-1]
        model.graph.output[0].name = "z"
    data = X.astype(np.float32)
    found = distill(teacher, student, data, max_iter=80, batch_size=50, eta0=0.02, extra=0)
    wanted, before, after = (File(model).matrix(data) for model in (teacher, student, found.onnx))
    assert np.square(after - wanted).mean() < 0.5 * np.square(before - wanted).mean()
    assert found.metric == "r2" and found.facts["fidelity r2"]["value"] > 0.5


def test_answers_for_seen_samples_are_out_of_bag():
    forest = RandomForestClassifier(60, oob_score=True, random_state=0).fit(X, NAMES[y])
    found, known = Teachers([forest], X).unseen(X, None, 3, 0)
    np.testing.assert_allclose(found, forest.oob_decision_function_, rtol=1e-10)
    assert known and np.abs(found - forest.predict_proba(X)).max() > 0.3
    other, known = Teachers([forest], X[1:]).unseen(X[1:], None, 3, 0)  # not the samples of its fit
    np.testing.assert_array_equal(other, forest.predict_proba(X[1:]))
    assert not known


def test_other_teachers_are_fitted_on_parts():
    model = LogisticRegression(C=100).fit(X, NAMES[y])
    found, known = Teachers([model], X).unseen(X, NAMES[y], 3, 0)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    expected = cross_val_predict(model, X, NAMES[y], cv=folds, method="predict_proba")
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    plain, is_unseen = Teachers([model], X).unseen(X, NAMES[y], 0, 0)
    np.testing.assert_array_equal(plain, model.predict_proba(X))
    assert known and not is_unseen


@pytest.mark.slow
def test_answers_are_calibrated_on_unseen_samples(forest):
    """Means of trees are too cautious: a temperature below 1 has the lowest log loss."""
    data, labels = X[:350], NAMES[y[:350]]
    found = distill(forest, "linear", data, labels, **{**FAST, "max_iter": 2})
    unseen, _ = Teachers([forest], data).unseen(data, labels, 3, 0)
    heat = found.facts["calibration"]
    own = [-np.log(0.05 + 0.95 * tempered(unseen, T)[np.arange(350), y[:350]]).mean() for T in (heat, 1.0)]
    assert heat < 0.8 and own[0] < own[1]


def test_a_class_that_the_teacher_never_answers():
    """The student has the classes of the teacher, also for answers without some of them."""
    teacher = LogisticRegression(max_iter=500).fit(X, NAMES[y])
    data = X[teacher.predict(X) != "c"][:100]
    found = distill(teacher, "linear", data, extra=0, max_iter=3)
    assert found.model.classes_.tolist() == ["a", "b", "c"]


def test_more_samples_keep_types_and_ranges():
    frame = pd.DataFrame({"n": X[:, 0], "i": np.arange(500), "b": X[:, 1] > 0, "c": NAMES[y]})
    drawn = more_samples(frame, 300, np.random.RandomState(0))
    assert drawn.dtypes.to_dict() == frame.dtypes.to_dict() and len(drawn) == 300
    assert drawn["n"].between(frame["n"].min(), frame["n"].max()).all() and set(drawn["c"]) <= set(NAMES)
    assert not np.isin(drawn["n"], frame["n"]).all()
    array = more_samples(X, 300, np.random.RandomState(0))
    gap = np.abs(np.corrcoef(array.T) - np.corrcoef(X.T)).max()
    assert array.shape == (300, 8) and gap < 0.25


@pytest.mark.slow
def test_frames_of_several_types(forest):
    frame = pd.DataFrame(X, columns=list("abcdefgh")).assign(kind=NAMES[y])
    encoder = student_of_size("trees:20x3", frame, True, 0)
    teacher = encoder.fit(frame[:350], NAMES[y[:350]])
    options = {**FAST, "held_out": (frame[350:], HELD[1]), "extra": 1}
    found = distill(teacher, "mlp:8", frame[:350], NAMES[y[:350]], **options)
    assert found.facts["agreement"]["value"] > 0.9


@pytest.mark.parametrize("size", ["linear", "mlp:8"])
def test_missing_values(size):
    data = np.where(np.random.default_rng(0).uniform(size=X.shape) < 0.1, np.nan, X)
    teacher = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(data, y)
    found = distill(teacher, size, data, **{**FAST, "held_out": (data[350:], y[350:]), "alpha": 1.0})
    assert found.facts["agreement"]["value"] > 0.8


@pytest.mark.slow
def test_a_student_is_quantised():
    data, labels = load_digits(return_X_y=True)
    teacher = RandomForestClassifier(30, random_state=0).fit(data[:1000], labels[:1000])
    held = data[1000:], labels[1000:]
    found = distill(teacher, "mlp:32", data[:1000], labels[:1000], **{**FAST, "held_out": held})
    small = quantize(found.model, data[:1000], labels[:1000], held_out=held)
    assert abs(small.loss) < 0.03 and small.facts["integer kernels"]


@pytest.mark.slow
def test_bad_input(forest):
    for options, message in (
        ({"temperature": 0}, "temperature=0 must be positive"),
        ({"alpha": 2}, "alpha=2 must be"),
        ({"hints": {"a": "b"}}, "hints name tensors of ONNX files"),
    ):
        with pytest.raises(ValueError, match=message):
            distill(forest, "mlp:8", X, NAMES[y], **options)
    for size in ("cnn:3", "mlp:0", "trees:0x3"):
        with pytest.raises(ValueError, match=f"student='{size}' must be an estimator"):
            distill(forest, size, X, NAMES[y], alpha=1.0)
    with pytest.raises(ValueError, match="not dict"):
        distill(forest, {}, X, NAMES[y], alpha=1.0)
    with pytest.raises(ValueError, match="empty list"):
        distill([], "mlp:8", X, NAMES[y])
    other = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="different classes"):
        distill([forest, other], "mlp:8", X, NAMES[y])
    with pytest.raises(ValueError, match="X has no samples"):
        distill(forest, "mlp:8", X[:0], y[:0])
