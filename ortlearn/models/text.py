"""Counts of words in documents, and their weights."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .base import ModelDefinition
from .scores import Scores, transformation
from .writer import ModelWriter

__all__ = ["CountVectorizerDefinition", "TfidfTransformerDefinition", "TfidfVectorizerDefinition"]

#: scikit-learn's pattern of words, and the same for the regular expressions of onnxruntime.
WORDS = r"(?u)\b\w\w+\b"
WORDS_IN_ONNX = r"[\pL\pN_][\pL\pN_]+"
#: Where small and capital letters are looked up: on Linux only this one is always installed.
LOCALE = "C.UTF-8" if sys.platform == "linux" else None
#: What onnxruntime puts in the place of a token where a document has fewer than another.
PADDING = "#"
MICROSOFT = "com.microsoft"


class CountVectorizerDefinition(ModelDefinition):
    """CountVectorizer of words or characters: how often each term of the vocabulary is in a document."""

    untrained = "it learns categories or words, no numbers"

    takes_columns = True
    takes_documents = True
    continuous = False

    def covers(self, model: Any) -> bool:
        """Return whether documents are split by a pattern, or into characters, and no word is left out."""
        own = (model.preprocessor, model.tokenizer, model.strip_accents)
        # stop words are in no term where terms are single words
        whole = not model.stop_words or model.ngram_range[1] == 1
        return model.analyzer in ("word", "char") and own == (None, None, None) and whole

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        """Append the counts."""
        words = model.analyzer == "word"
        documents = op.column(x, 0)
        if model.lowercase:
            flat = op.Reshape(documents, [-1])
            documents = op.StringNormalizer(
                flat, case_change_action="LOWER", is_case_sensitive=0, locale=LOCALE
            )
        pattern = (
            (WORDS_IN_ONNX if model.token_pattern == WORDS else model.token_pattern) if words else "(?s)."
        )
        tokens = op.node(
            "Tokenizer",
            op.Reshape(documents, [-1]),
            domain=MICROSOFT,
            mark=0,
            mincharnum=1,
            pad_value=PADDING,
            tokenexp=pattern,
        )
        counts = op.TfIdfVectorizer(tokens, mode="TF", max_skip_count=0, **_terms(op, model, words))
        if op.float_dtype != np.float32:
            counts = op.Cast(counts, to=op.elem_type)
        if model.binary:
            counts = op.Cast(op.Greater(counts, 0.0), to=op.elem_type)
        return transformation(op, counts, len(model.vocabulary_))


def _terms(op: ModelWriter, model: Any, words: bool) -> dict[str, Any]:
    """Return the vocabulary as attributes: terms by their number of tokens, then by their column."""
    first, last = model.ngram_range
    by_length: list[list[tuple[int, list[str]]]] = [[] for _ in range(last)]
    for term, column in model.vocabulary_.items():
        # several words are joined by blanks, which words themselves do not have
        tokens = [term] if words and last == 1 else term.split(" ") if words else list(term)
        if not first <= len(tokens) <= last:
            raise op.fail(model, f"the words of its term {term!r} cannot be told apart.")
        by_length[len(tokens) - 1].append((int(column), tokens))
    pool: list[str] = []
    starts, columns = [], []
    for terms in by_length:
        starts.append(len(pool))
        for column, tokens in sorted(terms):
            pool += tokens
            columns.append(column)
    return {
        "min_gram_length": first,
        "max_gram_length": last,
        "ngram_counts": starts,
        "ngram_indexes": columns,
        "pool_strings": pool,
    }


class TfidfTransformerDefinition(ModelDefinition):
    """TfidfTransformer: counts by how rare terms are, of unit norm."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        """Append the weights of the terms."""
        if model.sublinear_tf:
            logarithms = op.Add(op.Log(op.Max(x, 1.0)), 1.0)
            x = op.Where(op.Greater(x, 0.0), logarithms, x)
        if model.use_idf:
            x = op.Mul(x, op.parameter(model, "idf_", role="scale"))
        if model.norm == "l1":
            x = op.Div(x, _or_one(op, op.ReduceSum(op.Abs(x), [1], keepdims=1)))
        elif model.norm == "l2":
            x = op.Div(x, op.Sqrt(_or_one(op, op.ReduceSum(op.Mul(x, x), [1], keepdims=1))))
        return transformation(op, x, model.n_features_in_)


def _or_one(op: ModelWriter, total: str) -> str:
    """Return a sum, 1 where it is zero: samples without a term stay zero."""
    return op.Where(op.Greater(total, 0.0), total, op.constant(1.0))


class TfidfVectorizerDefinition(CountVectorizerDefinition):
    """TfidfVectorizer: a CountVectorizer followed by a TfidfTransformer."""

    def children(self, model: Any) -> Iterator[Any]:
        """Yield the transformer of the counts."""
        yield model._tfidf

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        """Append counts and weights."""
        counts = super().write(op, model, x)
        scores = op.write(model._tfidf, counts.score, "_tfidf")
        return replace(scores, n_outputs=counts.n_outputs)
