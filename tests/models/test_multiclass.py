"""One model per class, pair of classes or bit of a code: graphs, gradients, write-back."""

import numpy as np
import pytest
from onnx import TensorProto
from scipy.special import log_expit, softmax
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import LinearSVC

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import ConversionError
from ortlearn.graphs import TensorType, extract_model
from ortlearn.models import write_model
from ortlearn.testing import check_model
from ortlearn.trainable.conversion import to_trainable
from ortlearn.trainable.from_estimator import sklearn_to_onnx

RNG = np.random.RandomState(0)
X = RNG.normal(size=(60, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=60)
FOUR = np.array(list("dbca"))[np.digitize(Y, [-1.5, 0, 1.5])]
LABELS = np.column_stack([Y > 0, X[:, 0] > 0, np.ones(60)]).astype(int)
MEMBERS = [
    LogisticRegression(),
    LinearSVC(),
    GaussianNB(),
    RandomForestClassifier(3, max_depth=3, random_state=0),
]


def name_of(model):
    return type(model).__name__


@pytest.mark.slow
@pytest.mark.sweep(2)
@pytest.mark.parametrize("member", MEMBERS, ids=name_of)
def test_output_codes(member):
    model = OutputCodeClassifier(member, code_size=2, random_state=0).fit(X, FOUR)
    check_model(model, X, gradient_rtol=1e-4)
    assert "code_book_" in to_trainable(model).origins().values()


@pytest.mark.parametrize("member", [MEMBERS[0], MEMBERS[1], Ridge()], ids=name_of)
@pytest.mark.filterwarnings("ignore:Label 2 is present in all training examples")
def test_one_vs_rest_with_a_label_of_all_samples(member):
    model = OneVsRestClassifier(member).fit(X, LABELS)
    trained = to_trainable(model)
    assert {origin.partition(".")[0] for origin in trained.origins().values()} == {
        "estimators_[0]",
        "estimators_[1]",
    }
    check_model(model, X)


def test_regressors_do_not_vote():
    with pytest.raises(ConversionError, match="its members are regressors"):
        to_trainable(OneVsOneClassifier(Ridge()).fit(X, FOUR))


def test_self_training():
    y = np.where(X[:, 0] > 0.5, -1, np.digitize(Y, [-1.5, 0, 1.5]))
    model = SelfTrainingClassifier(LogisticRegression()).fit(X, y)
    check_model(model, X)
    options = {"max_iter": 2, "learning_rate": 0.01, "random_state": 0}
    ours = OrtGradientOptimizer(model, warm_start=True, **options).fit(X, y)
    assert set(ours.weights_to_train_.values()) == {"coef_", "intercept_"}
    np.testing.assert_array_equal(ours.to_sklearn().predict(X), ours.predict(X))
    # training ignores samples without a label
    known = OrtGradientOptimizer(model, warm_start=True, **options).fit(X[y >= 0], y[y >= 0])
    np.testing.assert_array_equal(known.trained_coef_["coef"], ours.trained_coef_["coef"])
    search = GridSearchCV(SelfTrainingClassifier(LogisticRegression()), {"threshold": [0.8]}, cv=2)
    OrtGradientOptimizer(search, **options).fit(X, y).partial_fit(X, y)


@pytest.mark.parametrize("several", [False, True])
def test_probabilities_of_very_low_scores(run_onnx, several):
    """Logarithms of sigmoids stay finite where the exponential underflows in float64."""
    model = SGDClassifier(loss="log_loss", random_state=0).fit(X, FOUR)
    model.intercept_ = model.intercept_ - 3000.0
    scores = model.decision_function(X)
    assert (scores.max(axis=1) < -1000).any()
    if several:
        several = MultiOutputClassifier(model).fit(X, np.column_stack([FOUR, FOUR]))
        several.estimators_ = [model, model]
        written = write_model(several, {"X": TensorType(TensorProto.DOUBLE, (None, 3))}, np.float64)
        graph = extract_model(written.model, [written.scores.score])
        found = softmax(run_onnx(graph, X)[0][:, 4:], axis=1)
    else:
        found = run_onnx(sklearn_to_onnx(model, dtype=np.float64), X)[1]
    np.testing.assert_allclose(found, softmax(log_expit(scores), axis=1), atol=1e-7)


@pytest.mark.filterwarnings("ignore:Label .* is present in all training examples")
@pytest.mark.parametrize("label", [0, 1])
def test_score_of_a_constant_label(label, run_onnx):
    """The score is the logit of 1e-5, the lowest probability in a loss, or of its complement."""
    model = OneVsRestClassifier(LogisticRegression()).fit(X, np.where([False, False, True], label, LABELS))
    written = write_model(model, {"X": TensorType(TensorProto.DOUBLE, (None, 3))}, np.float64)
    (score,) = run_onnx(extract_model(written.model, [written.scores.score]), X=X)
    np.testing.assert_allclose(score[:, 2], np.log(1e5 - 1) * (2 * label - 1), rtol=1e-6)
