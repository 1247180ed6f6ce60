"""HashingVectorizer and FeatureHasher: columns equal those of scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import DictVectorizer, FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline, make_union
from sklearn.utils import murmurhash3_32

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import FallbackWarning, NoTrainableWeightError
from ortlearn.models.transformations.text import MAX_COLUMNS
from ortlearn.trainable.conversion import to_trainable
from tests.models.test_text import DOCUMENTS, OTHERS, WORDS, Y

RNG = np.random.RandomState(0)
TEXTS = RNG.choice([*WORDS, "", "x" * 300], (60, 3)).astype(object)
VECTORIZERS = {
    "default": {},
    "sums": {"norm": None},
    "shares": {"norm": "l1", "alternate_sign": False},
    "presence": {"norm": None, "binary": True, "n_features": 3},  # one column has hashes of both signs
    "capitals": {"lowercase": False, "token_pattern": r"\S+"},
    "without some": {"stop_words": ["the", "fox"]},
    "without English words": {"stop_words": "english"},
}


@pytest.mark.parametrize("name", VECTORIZERS)
def test_words(name, check_graph, check_transformers):
    vectorizer = HashingVectorizer(**{"n_features": 32, **VECTORIZERS[name]})
    model = make_pipeline(vectorizer, Ridge()).fit(DOCUMENTS, Y)
    trainable = check_graph(model, DOCUMENTS, OTHERS, [""], ["the the fox"])
    check_transformers(model, trainable, OTHERS)


@pytest.mark.parametrize("signs", [True, False])
@pytest.mark.parametrize("columns", [1, 3])
def test_columns_of_texts(columns, signs, check_graph):
    hasher = FeatureHasher(8, input_type="string", alternate_sign=signs)
    X = TEXTS[:, :columns]
    model = make_pipeline(hasher, Ridge()).fit(X, Y)
    check_graph(model, X, X[:1], np.full((2, columns), "never seen"))


def test_the_largest_negative_hash(check_graph):
    # its absolute value exceeds 32 bits
    X = TEXTS.copy()
    X[0, 0] = "aaaiTBFZ"
    assert murmurhash3_32(X[0, 0]) == -(2**31)
    check_graph(make_pipeline(FeatureHasher(7, input_type="string"), Ridge()).fit(X, Y), X)


def test_words_of_a_union(check_graph):
    union = make_union(HashingVectorizer(n_features=8), HashingVectorizer(n_features=5, lowercase=False))
    check_graph(make_pipeline(union, Ridge()).fit(DOCUMENTS, Y), DOCUMENTS, OTHERS)


def test_hashing_has_no_parameters():
    with pytest.raises(NoTrainableWeightError):
        to_trainable(HashingVectorizer(n_features=8).fit(DOCUMENTS), X=DOCUMENTS)


DICTIONARIES = [{"length": len(text) / 50, "kind": text[:1]} for text in DOCUMENTS]
UNSUPPORTED = {
    "pairs of words": (HashingVectorizer(n_features=8, ngram_range=(1, 2)), DOCUMENTS, "hashes n-grams"),
    "characters": (HashingVectorizer(n_features=8, analyzer="char"), DOCUMENTS, "hashes n-grams"),
    "any text": (HashingVectorizer(n_features=8, token_pattern=r".+"), DOCUMENTS, "matches any text"),
    "many columns": (HashingVectorizer(n_features=2 * MAX_COLUMNS), DOCUMENTS, f"to {MAX_COLUMNS} at most"),
    "hashes of dictionaries": (FeatureHasher(8), DICTIONARIES, "is not an ONNX type"),
    "dictionaries": (DictVectorizer(), DICTIONARIES, "'dictvectorizer' .DictVectorizer. stays"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_hashing_steps_that_stay_in_scikit_learn(name):
    step, X, reason = UNSUPPORTED[name]
    model = make_pipeline(step, Ridge()).fit(X, Y)
    with pytest.warns(FallbackWarning, match=reason):
        trained = OrtGradientOptimizer(model, warm_start=True, max_iter=3, random_state=0).fit(X, Y)
    np.testing.assert_allclose(trained.predict(X), trained.to_sklearn().predict(X), atol=1e-4)


def test_words_of_a_frame():
    X = pd.DataFrame({"note": DOCUMENTS, "length": [float(len(text)) for text in DOCUMENTS]})
    columns = ColumnTransformer([("words", HashingVectorizer(n_features=8), "note")], remainder="passthrough")
    assert to_trainable(make_pipeline(columns, Ridge()).fit(X, Y), X=X).entry.sklearn_steps is None
