"""Text vectorizers: terms of all kinds, and the training of their weights."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ortlearn import OrtGradientOptimizer
from ortlearn.exceptions import FallbackWarning
from ortlearn.testing import check_gradient_rule
from ortlearn.trainable.conversion import to_trainable

WORDS = [
    "the",
    "quick",
    "Brown",
    "fox",
    "don't",
    "x-ray",
    "a",
    "Été",
    "99",
    "o_o",
    "#",
    "été",
    "ПРИВЕТ",
    "中文",
    "fox.",
]
RNG = np.random.RandomState(0)
DOCUMENTS = ["", *(" ".join(RNG.choice(WORDS, RNG.randint(1, 8))) for _ in range(59))]
#: Empty documents, unknown words, and spaces and letters that are not ASCII.
OTHERS = [
    "",
    " ",
    "zzz",
    "THE the\nthe\tfox",
    "été\u00a0fox\u200bfox",
    "e\u0301te\u0301",
    "# ##",
    "x² Ⅷ ٣",
    "a" * 50,
    "  the \t\n fox  ##\u3000\u2003a ",
    "fox\x85\x1cthe",
]
Y = np.array([text.lower().count("fox") + 0.1 * len(text) for text in DOCUMENTS])

VECTORIZERS = {
    "counts": CountVectorizer(),
    "presence": CountVectorizer(binary=True),
    "capitals": CountVectorizer(lowercase=False),
    "pairs": CountVectorizer(ngram_range=(1, 2)),
    "two and three": TfidfVectorizer(ngram_range=(2, 3)),
    "given": CountVectorizer(vocabulary=["fox", "the", "lost"]),
    "few": TfidfVectorizer(max_features=4, min_df=2, max_df=0.9),
    "without some": TfidfVectorizer(stop_words=["the", "fox"]),
    "letters": CountVectorizer(analyzer="char"),
    "runs of letters": TfidfVectorizer(analyzer="char", ngram_range=(1, 3), lowercase=False),
    "within words": CountVectorizer(analyzer="char_wb", ngram_range=(2, 4)),
    "whole short words": TfidfVectorizer(analyzer="char_wb", ngram_range=(5, 6), lowercase=False),
    "characters within words": CountVectorizer(analyzer="char_wb", binary=True),
    "short words": CountVectorizer(token_pattern=r"(?u)\b\w+\b"),
    "long words": CountVectorizer(token_pattern=r"\b\w{3,}\b"),
    "between spaces": TfidfVectorizer(token_pattern=r"\S+", ngram_range=(1, 2)),
    "joined words": CountVectorizer(token_pattern=r"[\w'-]+"),
    "logarithms": TfidfVectorizer(sublinear_tf=True),
    "sums of one": TfidfVectorizer(norm="l1"),
    "no norm": TfidfVectorizer(norm=None, smooth_idf=False),
    "no frequencies": TfidfVectorizer(use_idf=False, binary=True),
    "one after the other": make_pipeline(CountVectorizer(), TfidfTransformer(sublinear_tf=True)),
    "side by side": make_union(
        TfidfVectorizer(), make_pipeline(CountVectorizer(max_features=3), TfidfTransformer())
    ),
    "after nothing": make_pipeline(FunctionTransformer(), FrozenEstimator(TfidfVectorizer().fit(DOCUMENTS))),
}


@pytest.mark.sweep(20)
@pytest.mark.parametrize("name", VECTORIZERS)
def test_documents(name, check_graph, check_transformers):
    model = make_pipeline(VECTORIZERS[name], StandardScaler(with_mean=False), Ridge()).fit(DOCUMENTS, Y)
    if list(VECTORIZERS).index(name) % 2:
        trainable = check_graph(model, DOCUMENTS, OTHERS)
    else:
        other_kinds = np.array(OTHERS, dtype=object), OTHERS[:1], OTHERS[1:2]
        trainable = check_graph(model, pd.Series(DOCUMENTS), *other_kinds, dtype=np.float32)
    check_transformers(model, trainable, OTHERS)


@pytest.mark.parametrize("term", ["the", " the", " a b ", " theory "])
def test_terms_that_are_never_counted(term):
    vectorizer = CountVectorizer(analyzer="char_wb", ngram_range=(6, 6), vocabulary=[term])
    model = make_pipeline(vectorizer, Ridge()).fit(DOCUMENTS, Y)
    with pytest.warns(FallbackWarning, match=f"its term '{term}' does not have 6 to 6 words or characters"):
        to_trainable(model, X=DOCUMENTS)


@pytest.mark.parametrize(
    "pattern",
    [r"(\w\w)\w*", r"\b[a-z]+\b", "fox|foxes", "[a-z]+?", r"\w*", r"[^\W\d]+", "(?i)fox", r"fox(?=\.)"],
)
def test_unsupported_token_patterns_stay_in_scikit_learn(pattern):
    model = make_pipeline(CountVectorizer(token_pattern=pattern, min_df=1), Ridge()).fit(DOCUMENTS, Y)
    with pytest.warns(FallbackWarning, match="token_pattern=.* is not supported"):
        assert to_trainable(model, X=DOCUMENTS).entry.sklearn_steps is not None


@pytest.mark.parametrize("options", [{}, {"norm": "l1"}, {"norm": None}, {"sublinear_tf": True}], ids=str)
def test_gradients_of_the_weights_of_terms(options, run):
    counts = RNG.poisson(1.0, size=(12, 4)).astype(float)
    model = make_pipeline(TfidfTransformer(**options), Ridge()).fit(counts, counts[:, 0])
    trainable = to_trainable(model, "tfidftransformer.idf_", X=counts, dtype=np.float64)
    (idf,) = trainable.initial_weights().values()
    check_gradient_rule(trainable.score_graph(), counts, idf, wrt=[1], run=run)


def test_selected_term_weights_are_trained():
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(DOCUMENTS, Y > 2)
    trained = OrtGradientOptimizer(
        model, "tfidfvectorizer._tfidf.idf_", warm_start=True, learning_rate=1.0, max_iter=5, random_state=0
    ).fit(DOCUMENTS, Y > 2)
    assert trained.train_losses_[-1] < trained.train_losses_[0]
    back = trained.to_sklearn()
    assert np.abs(back[0].idf_ - model[0].idf_).max() > 0.05
    np.testing.assert_allclose(back.predict_proba(OTHERS), trained.predict_proba(OTHERS), atol=1e-6)
