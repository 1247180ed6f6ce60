"""Counts of words in documents, and their weights."""

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from operator import itemgetter
from typing import Any

import numpy as np

from .base import ModelDefinition
from .kernels import unit_rows
from .scores import Scores, transformation
from .writer import ModelWriter

#: Where small and capital letters are looked up: on Linux only this one is always installed.
LOCALE = "C.UTF-8" if sys.platform == "linux" else None
MICROSOFT = "com.microsoft"
#: Classes of characters in any language: those of onnxruntime's regular expressions are of ASCII only.
CHARACTERS = {"w": r"\pL\pN_", "d": r"\p{Nd}", "s": r"\pZ\t\n\r\f\v\x1c-\x1f\x85"}
#: One or more of them: the longest run, which the ends of words add nothing to.
RUN_OF_LETTERS = re.compile(r"\\b((?:\\w)*\\w(?:\+|\{\d+,\}))\\b")
#: Parts of patterns: a class of characters, an escaped character, what both kinds of expressions
#: read alike, and what onnxruntime lacks or reads otherwise (it takes the longest match).
PARTS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|\(\?:|[*+?}]\?|[()^$|]|.", re.DOTALL)
ELSEWHERE = {"(", "^", "$", "|", "*?", "+?", "??", "}?"}


class CountVectorizerDefinition(ModelDefinition):
    """CountVectorizer of words or characters: how often each term of the vocabulary is in a document."""

    untrained = "it learns categories or words, no numbers"
    takes_columns = True
    continuous = False

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        check_options(op, model)
        # they are in no term where terms are single words
        if model.stop_words and model.ngram_range[1] > 1:
            raise op.fail(model, "stop words between the words of a term have no form in ONNX.")
        terms = _terms(op, model, model.analyzer == "word")
        padding = "#"  # in place of a token where a document has fewer than another
        while padding in terms["pool_strings"]:
            padding += "#"
        tokens = tokenized(op, model, x, padding)
        counts = op.TfIdfVectorizer(tokens, mode="TF", max_skip_count=0, **terms)
        if op.float_dtype != np.float32:
            counts = op.Cast(counts, to=op.elem_type)
        if model.binary:
            counts = op.Cast(op.Greater(counts, 0.0), to=op.elem_type)
        return transformation(op, counts, len(model.vocabulary_))


def check_options(op: ModelWriter, model: Any) -> None:
    """Raise an error for options without a form in ONNX."""
    for name in ("preprocessor", "tokenizer", "strip_accents"):
        if getattr(model, name) is not None:
            raise op.fail(model, f"{name}={getattr(model, name)!r} has no form in ONNX.")
    if model.analyzer not in ("word", "char"):
        raise op.fail(model, f"analyzer={model.analyzer!r} has no form in ONNX.")


def tokenized(op: ModelWriter, model: Any, x: Any, padding: str) -> str:
    """Append the words or characters of documents, of shape (n, k), and padding after those of each."""
    documents = op.Reshape(op.column(x, 0), [-1])
    if model.lowercase:
        lower = {"case_change_action": "LOWER", "is_case_sensitive": 0, "locale": LOCALE}
        documents = op.StringNormalizer(documents, **lower)
    pattern = _pattern(op, model) if model.analyzer == "word" else "(?s)."
    options: dict[str, Any] = {"mark": 0, "mincharnum": 1, "pad_value": padding, "tokenexp": pattern}
    return op.node("Tokenizer", documents, domain=MICROSOFT, **options)


def _pattern(op: ModelWriter, model: Any) -> str:
    """Return the pattern of words for the regular expressions of onnxruntime."""
    pattern = model.token_pattern.removeprefix("(?u)")
    whole = RUN_OF_LETTERS.fullmatch(pattern)
    parts = PARTS.findall(whole[1] if whole else pattern)
    found = [_part(part) for part in parts]
    if None in found or re.fullmatch(model.token_pattern, ""):
        raise op.fail(model, f"token_pattern={model.token_pattern!r} has no form in ONNX.")
    return "".join(part for part in found if part is not None)


def _part(part: str) -> str | None:
    """Return a part of a pattern for onnxruntime, None where it has no such part."""
    if part in ELSEWHERE:
        return None
    if len(part) > 2 and part[0] == "[":
        inner = re.findall(r"\\.|[^\\]", part[1:-1], re.DOTALL)
        found = [_escaped(own, "") if own[0] == "\\" else own for own in inner]
        return None if None in found else f"[{''.join(own for own in found if own is not None)}]"
    return _escaped(part, "[]") if part[0] == "\\" else part


def _escaped(part: str, brackets: str) -> str | None:
    """Return an escaped character for onnxruntime, a class of characters within brackets."""
    kind = part[1]
    if kind.lower() in CHARACTERS and (brackets or kind.islower()):
        own = CHARACTERS[kind.lower()]
        return f"[{'' if kind.islower() else '^'}{own}]" if brackets else own
    return part if kind in "nrtfv" or not (kind.isalnum() or kind == "_") else None


def _terms(op: ModelWriter, model: Any, words: bool) -> dict[str, Any]:
    """Return the vocabulary as attributes: terms by their number of tokens, then by their column."""
    first, last = model.ngram_range
    by_column = sorted(model.vocabulary_.items(), key=itemgetter(1))
    if words and last == 1:  # as below, for the usual case of many terms
        pool, columns = ([entry[part] for entry in by_column] for part in (0, 1))
        lengths = {"min_gram_length": 1, "max_gram_length": 1, "ngram_counts": [0]}
        return {**lengths, "ngram_indexes": list(map(int, columns)), "pool_strings": pool}
    by_length: list[list[tuple[int, list[str]]]] = [[] for _ in range(last)]
    for term, column in by_column:
        # several words are joined by blanks, which words themselves do not have
        tokens = term.split(" ") if words else list(term)
        if not first <= len(tokens) <= last:
            raise op.fail(model, f"the words of its term {term!r} cannot be told apart.")
        by_length[len(tokens) - 1].append((int(column), tokens))
    counts = [length * len(terms) for length, terms in enumerate(by_length, start=1)]
    return {
        "min_gram_length": first,
        "max_gram_length": last,
        "ngram_counts": [0, *accumulate(counts[:-1])],
        "ngram_indexes": [column for terms in by_length for column, _ in terms],
        "pool_strings": [token for terms in by_length for _, tokens in terms for token in tokens],
    }


class TfidfTransformerDefinition(ModelDefinition):
    """TfidfTransformer: counts by how rare terms are, of unit norm."""

    def write(self, op: ModelWriter, model: Any, x: str) -> Scores:
        if model.sublinear_tf:
            logarithms = op.Add(op.Log(op.Max(x, 1.0)), 1.0)
            x = op.Where(op.Greater(x, 0.0), logarithms, x)
        if model.use_idf:
            x = op.Mul(x, op.parameter(model, "idf_", role="scale"))
        if model.norm is not None:
            x = unit_rows(op, x, model.norm)
        return transformation(op, x, model.n_features_in_)


class TfidfVectorizerDefinition(CountVectorizerDefinition):
    """TfidfVectorizer: a CountVectorizer followed by a TfidfTransformer."""

    def children(self, model: Any) -> Iterator[Any]:
        yield model._tfidf

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        counts = super().write(op, model, x)
        scores = op.write(model._tfidf, counts.score, "_tfidf")
        return replace(scores, n_outputs=counts.n_outputs)
