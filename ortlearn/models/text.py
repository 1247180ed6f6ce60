"""Counts of words in documents and of their hashes, and weights of words."""

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from operator import itemgetter
from typing import Any

import numpy as np
from onnx import TensorProto

from .base import ModelDefinition
from .columns import Columns
from .kernels import unit_rows
from .scores import Scores, transformation
from .writer import ModelWriter

#: Where small and capital letters are looked up: on Linux only this one is always installed.
LOCALE = "C.UTF-8" if sys.platform == "linux" else None
MICROSOFT = "com.microsoft"
#: Classes of characters in any language: those of onnxruntime's regular expressions are of ASCII only.
CHARACTERS = {"w": r"\pL\pN_", "d": r"\p{Nd}", "s": r"\pZ\t\n\r\f\v\x1c-\x1f\x85"}
#: Blanks that follow one another.
BLANKS = f"[{CHARACTERS['s']}]{{2,}}"
#: One letter or more: the longest run, which the ends of words add nothing to.
RUN_OF_LETTERS = re.compile(r"\\b((?:\\w)*\\w(?:\+|\{\d+,\}))\\b")
#: A word that is shorter than all terms, with its blanks, is one.
SHORT_WORD = re.compile(r" \S+ ")
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
        if model.analyzer == "word" and model.stop_words and model.ngram_range[1] > 1:
            raise op.fail(model, "stop words between the words of a term have no form in ONNX.")
        terms = _terms(op, model)
        padding = "##"  # in place of a token where a document has fewer than another
        while padding in terms["pool_strings"]:
            padding += "#"
        tokens = tokenized(op, model, x, padding)
        counts = op.TfIdfVectorizer(tokens, mode="TF", max_skip_count=0, **terms)
        if op.float_dtype != np.float32:
            counts = op.Cast(counts, to=op.elem_type)
        if model.binary:
            counts = op.ones_where(op.Greater(counts, 0.0))
        return transformation(op, counts, len(model.vocabulary_))


def check_options(op: ModelWriter, model: Any) -> None:
    """Raise an error for options without a form in ONNX."""
    for name in ("preprocessor", "tokenizer", "strip_accents"):
        if getattr(model, name) is not None:
            raise op.fail(model, f"{name}={getattr(model, name)!r} has no form in ONNX.")
    if model.analyzer not in ("word", "char", "char_wb"):
        raise op.fail(model, f"analyzer={model.analyzer!r} has no form in ONNX.")


def tokenized(op: ModelWriter, model: Any, x: Any, padding: str) -> str:
    """Append the words or characters of documents, of shape (n, k), and padding after those of each."""
    documents = op.Reshape(op.column(x, 0), [-1])
    if model.lowercase:
        lower = {"case_change_action": "LOWER", "is_case_sensitive": 0, "locale": LOCALE}
        documents = op.StringNormalizer(documents, **lower)
    if model.analyzer == "word":
        return _tokens(op, documents, _pattern(op, model), padding)
    return (_characters if model.analyzer == "char" else _characters_of_words)(op, documents, padding)


def _tokens(op: ModelWriter, texts: str, pattern: str, padding: str) -> str:
    """Append what fits a pattern in texts of shape (n,), and padding after it, of shape (n, k)."""
    options: dict[str, Any] = {"mark": 0, "mincharnum": 1, "pad_value": padding, "tokenexp": pattern}
    found = op.node("Tokenizer", texts, domain=MICROSOFT, **options)
    return op.Cast(found, to=TensorProto.STRING)


def _is_text(op: ModelWriter, texts: str, text: str) -> str:
    """Append whether texts are a text."""
    return op.Cast(op.look_up(texts, [text], [1]), to=TensorProto.BOOL)


def _texts(*texts: str) -> np.ndarray:
    return np.array(texts, dtype=object)


def _characters(op: ModelWriter, documents: str, padding: str) -> str:
    """Append the characters of documents, of shape (n, k); blanks that follow one another are one."""
    tokens = _tokens(op, documents, f"(?s){BLANKS}|.", padding)
    # one more, so that there is a first column
    flat = op.Concat(op.Reshape(tokens, [-1]), _texts("  "), axis=0)
    others = _is_text(op, op.Gather(_tokens(op, flat, BLANKS, padding), 0, axis=1), padding)
    others = op.Reshape(op.Slice(others, [0], [-1], [0]), op.Shape(tokens), allowzero=1)
    return op.Where(others, tokens, _texts(" "))


def _characters_of_words(op: ModelWriter, documents: str, padding: str) -> str:
    """Append the characters of words, a blank on either side and padding after each, of shape (n, k)."""
    words = _tokens(op, documents, f"[^{CHARACTERS['s']}]+", " ")
    flat = op.Concat(op.Reshape(words, [-1]), _texts("."), axis=0)  # so that there is a first column
    characters = _tokens(op, flat, f"[^{CHARACTERS['s']}]", padding)
    gone = _is_text(op, characters, padding)
    no_word = op.Slice(gone, [0], [1], [1])
    behind = op.Or(no_word, op.Not(no_word))
    starts = op.Where(no_word, _texts(padding), _texts(" "))
    ends = op.Where(behind, _texts(padding), _texts(" "))
    spaced = op.Concat(starts, characters, ends, ends, axis=1)
    gone = op.Concat(no_word, gone, behind, behind, axis=1)
    first_gone = op.Xor(gone, op.Concat(behind, op.Slice(gone, [0], [-1], [1]), axis=1))
    spaced = op.Slice(op.Where(first_gone, _texts(" "), spaced), [0], [-1], [0])
    return op.Reshape(spaced, op.Concat(op.Shape(documents), [-1], axis=0))


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


def _terms(op: ModelWriter, model: Any) -> dict[str, Any]:
    """Return the vocabulary as attributes: terms by their number of tokens, then by their column."""
    first, last = model.ngram_range
    words = model.analyzer == "word"
    by_column = sorted(model.vocabulary_.items(), key=itemgetter(1))
    if words and last == 1:  # as below, for the usual case of many terms
        pool, columns = ([entry[part] for entry in by_column] for part in (0, 1))
        lengths = {"min_gram_length": 1, "max_gram_length": 1, "ngram_counts": [0]}
        return {**lengths, "ngram_indexes": list(map(int, columns)), "pool_strings": pool}
    shortest = first
    by_length: list[list[tuple[int, list[str]]]] = [[] for _ in range(last)]
    for term, column in by_column:
        # several words are joined by blanks, which words themselves do not have
        tokens = term.split(" ") if words else list(term)
        if not first <= len(tokens) <= last:
            if model.analyzer != "char_wb" or not SHORT_WORD.fullmatch(term):
                raise op.fail(model, f"its term {term!r} has not {first} to {last} words or characters.")
            shortest = min(shortest, len(tokens))
        by_length[len(tokens) - 1].append((int(column), tokens))
    counts = [length * len(terms) for length, terms in enumerate(by_length, start=1)]
    return {
        "min_gram_length": shortest,
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


#: Columns up to which hashes are counted in the graph, whose matrices are dense.
MOST = 2**14
#: Stands for the tokens that a document has fewer of than another.
PADDING = " \ue000 no token \ue000 "


class FeatureHasherDefinition(ModelDefinition):
    """FeatureHasher of texts: counts of signed 32-bit MurmurHash3 hashes (Weinberger et al., ICML 2009)."""

    untrained = "it counts hashes of texts, and learns no numbers"
    takes_columns = True
    continuous = False

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        if model.input_type != "string":
            raise op.fail(model, f"input_type={model.input_type!r} is of pairs, which no ONNX input holds.")
        columns = [own for own in x.tensors if own] if isinstance(x, Columns) else [x]
        if not all(map(op.has_text, columns)):
            raise op.fail(model, "it takes texts: pass an array of which every column has text.")
        counts = hash_counts(op, model, op.joined(columns))
        return transformation(op, counts, model.n_features)


class HashingVectorizerDefinition(FeatureHasherDefinition):
    """HashingVectorizer of single words: a FeatureHasher of the words of a document."""

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        check_options(op, model)
        if model.analyzer != "word" or tuple(model.ngram_range) != (1, 1):
            raise op.fail(model, "ONNX has hashes of words, not of several words or characters joined.")
        if re.fullmatch(model.token_pattern, PADDING):
            raise op.fail(model, f"token_pattern={model.token_pattern!r} takes any text for a word.")
        words = op.Cast(tokenized(op, model, x, PADDING), to=TensorProto.STRING)
        left_out = [PADDING, *sorted(model.get_stop_words() or ())]
        counted = op.look_up(words, left_out, [0] * len(left_out), default=1)
        if model.binary:
            times = hash_counts(op, model, words, counted, signed=False)
            counts = op.ones_where(op.Greater(times, 0.0))
        else:
            counts = hash_counts(op, model, words, counted)
        if model.norm is not None:
            counts = unit_rows(op, counts, model.norm)
        return transformation(op, counts, model.n_features)


def hash_counts(op: ModelWriter, model: Any, texts: str, times: Any = 1, signed: bool = True) -> str:
    """Append the sums of ``times``, of int64, by the columns of the hashes of texts, with their signs."""
    if model.n_features > MOST:
        what = f"{model.n_features} columns are too many for a dense matrix"
        raise op.fail(model, f"{what}: set n_features to {MOST} at most.")
    found = op.node("MurmurHash3", texts, domain=MICROSOFT, seed=0, positive=0)
    found = op.Cast(found, to=TensorProto.INT64)
    column = op.Mod(op.Abs(found), model.n_features)
    if signed and model.alternate_sign:
        negative = op.Cast(op.Less(found, 0), to=TensorProto.INT64)
        times = op.Mul(op.Sub(1, op.Mul(negative, 2)), times)
    else:
        times = op.Add(op.Mul(column, 0), times)
    nothing = op.Cast(op.ReduceSum(op.Mul(column, 0), [1], keepdims=1), to=op.elem_type)
    nothing = op.Add(nothing, np.zeros((1, model.n_features), dtype=op.float_dtype))
    return op.ScatterElements(nothing, column, op.Cast(times, to=op.elem_type), axis=1, reduction="add")
