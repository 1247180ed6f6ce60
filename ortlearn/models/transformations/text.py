"""Text vectorizers: counts of terms and of their hashes, and tf-idf weights."""

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, chain
from typing import Any

import numpy as np
from onnx import AttributeProto, TensorProto

from ..base import ModelDefinition
from ..columns import Columns
from ..formulas.kernels import unit_rows
from ..scores import Scores, transformation
from ..writer import ModelWriter

LOCALE = "C.UTF-8" if sys.platform == "linux" else None  # the only locale installed on every Linux
MICROSOFT = "com.microsoft"
#: Unicode classes of characters, as the classes of onnxruntime's regular expressions are ASCII only.
CHARACTERS = {"w": r"\pL\pN_", "d": r"\p{Nd}", "s": r"\pZ\t\n\r\f\v\x1c-\x1f\x85"}
BLANKS = f"[{CHARACTERS['s']}]{{2,}}"
#: Patterns of words, whose word boundaries are redundant, as onnxruntime takes the longest match.
WORD = re.compile(r"\\b((?:\\w)*\\w(?:\+|\{\d+,\}))\\b")
SHORT_WORD = re.compile(r" \S+ ")  # a term of char_wb that is shorter than the n-grams
#: Tokens of patterns: classes of characters, escaped characters, operators, and other characters.
PARTS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|\(\?:|[*+?}]\?|[()^$|]|.", re.DOTALL)
#: Operators that onnxruntime lacks, or interprets differently, as it takes the longest match.
UNSUPPORTED = {"(", "^", "$", "|", "*?", "+?", "??", "}?"}


class CountVectorizerDefinition(ModelDefinition):
    """CountVectorizer of words or characters: counts of terms in documents."""

    untrained = "it learns categories or words, which have no gradient"
    takes_columns = True
    continuous = False

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        check_options(op, model)
        # single words are never stop words
        if model.analyzer == "word" and model.stop_words and model.ngram_range[1] > 1:
            raise op.fail(model, "stop words with n-grams of words are not supported: use single words.")
        terms = _terms(op, model)
        padding = "##"  # after the tokens of shorter documents
        pool = terms.pop("pool_strings")
        while padding in pool:
            padding += "#"
        tokens = tokenized(op, model, x, padding)
        counts = op.TfIdfVectorizer(tokens, mode="TF", max_skip_count=0, **terms)
        texts = [token.encode() for token in pool]  # faster than onnx.helper, which looks at each one
        op.add_attribute(AttributeProto(name="pool_strings", type=AttributeProto.STRINGS, strings=texts))
        if op.float_dtype != np.float32:
            counts = op.Cast(counts, to=op.elem_type)
        if model.binary:
            counts = op.ones_where(op.Greater(counts, 0.0))
        return transformation(op, counts, len(model.vocabulary_))


def check_options(op: ModelWriter, model: Any) -> None:
    """Raise a ConversionError for unsupported options."""
    for name in ("preprocessor", "tokenizer", "strip_accents", "analyzer"):
        value = getattr(model, name)
        if value not in (("word", "char", "char_wb") if name == "analyzer" else (None,)):
            raise op.fail(model, f"{name}={value!r} is not supported: use the default.")


def tokenized(op: ModelWriter, model: Any, x: Any, padding: str) -> str:
    """Append the padded words or characters of documents, of shape (n, k)."""
    documents = op.Reshape(op.column(x, 0), [-1])
    if model.lowercase:
        lower = {"case_change_action": "LOWER", "is_case_sensitive": 0, "locale": LOCALE}
        documents = op.StringNormalizer(documents, **lower)
    if model.analyzer == "word":
        return _tokens(op, documents, _pattern(op, model), padding)
    return (_characters if model.analyzer == "char" else _characters_of_words)(op, documents, padding)


def _tokens(op: ModelWriter, texts: str, pattern: str, padding: str) -> str:
    """Append the padded matches of a pattern in texts of shape (n,), of shape (n, k)."""
    options: dict[str, Any] = {"mark": 0, "mincharnum": 1, "pad_value": padding, "tokenexp": pattern}
    found = op.node("Tokenizer", texts, domain=MICROSOFT, **options)
    return op.Cast(found, to=TensorProto.STRING)


def _equal(op: ModelWriter, texts: str, text: str) -> str:
    """Append whether texts equal a text."""
    return op.Cast(op.look_up(texts, [text], [1]), to=TensorProto.BOOL)


def _texts(*texts: str) -> np.ndarray:
    return np.array(texts, dtype=object)


def _characters(op: ModelWriter, documents: str, padding: str) -> str:
    """Append the characters of documents, of shape (n, k), with repeated blanks as one."""
    tokens = _tokens(op, documents, f"(?s){BLANKS}|.", padding)
    # an extra text with a match ensures a first column
    flat = op.Concat(op.Reshape(tokens, [-1]), _texts("  "), axis=0)
    others = _equal(op, op.Gather(_tokens(op, flat, BLANKS, padding), 0, axis=1), padding)
    others = op.Reshape(op.Slice(others, [0], [-1], [0]), op.Shape(tokens), allowzero=1)
    return op.Where(others, tokens, _texts(" "))


def _characters_of_words(op: ModelWriter, documents: str, padding: str) -> str:
    """Append the characters of words surrounded by blanks, each word padded, of shape (n, k)."""
    words = _tokens(op, documents, f"[^{CHARACTERS['s']}]+", " ")
    flat = op.Concat(op.Reshape(words, [-1]), _texts("."), axis=0)  # the extra text ensures a first column
    characters = _tokens(op, flat, f"[^{CHARACTERS['s']}]", padding)
    padded = _equal(op, characters, padding)
    no_word = op.Slice(padded, [0], [1], [1])
    always = op.Or(no_word, op.Not(no_word))
    starts = op.Where(no_word, _texts(padding), _texts(" "))
    ends = op.Where(always, _texts(padding), _texts(" "))
    spaced = op.Concat(starts, characters, ends, ends, axis=1)
    padded = op.Concat(no_word, padded, always, always, axis=1)
    first_padded = op.Xor(padded, op.Concat(always, op.Slice(padded, [0], [-1], [1]), axis=1))
    spaced = op.Slice(op.Where(first_padded, _texts(" "), spaced), [0], [-1], [0])
    return op.Reshape(spaced, op.Concat(op.Shape(documents), [-1], axis=0))


def _pattern(op: ModelWriter, model: Any) -> str:
    """Return the pattern of words for the regular expressions of onnxruntime."""
    pattern = model.token_pattern.removeprefix("(?u)")
    word = WORD.fullmatch(pattern)
    parts = [_part(part) for part in PARTS.findall(word[1] if word else pattern)]
    if None in parts or re.fullmatch(model.token_pattern, ""):
        raise op.fail(model, f"token_pattern={model.token_pattern!r} is not supported: use the default.")
    return "".join(filter(None, parts))


def _part(part: str) -> str | None:
    """Return a part of a pattern for onnxruntime, None if it is not supported."""
    if part in UNSUPPORTED:
        return None
    if len(part) > 2 and part[0] == "[":
        characters = re.findall(r"\\.|[^\\]", part[1:-1], re.DOTALL)
        inner = [_escaped(c, in_class=True) if c[0] == "\\" else c for c in characters]
        return None if None in inner else f"[{''.join(filter(None, inner))}]"
    return _escaped(part) if part[0] == "\\" else part


def _escaped(part: str, in_class: bool = False) -> str | None:
    """Return an escaped character of a pattern, or in a class of characters, for onnxruntime."""
    kind = part[1]
    if kind.lower() in CHARACTERS and (kind.islower() or not in_class):
        characters = CHARACTERS[kind.lower()]
        return characters if in_class else f"[{'' if kind.islower() else '^'}{characters}]"
    return part if kind in "nrtfv" or not (kind.isalnum() or kind == "_") else None


def _terms(op: ModelWriter, model: Any) -> dict[str, Any]:
    """Return the vocabulary as attributes: terms in the order of their number of tokens and their column."""
    first, last = model.ngram_range
    words = model.analyzer == "word"
    columns, terms = np.fromiter(model.vocabulary_.values(), dtype=np.int64), list(model.vocabulary_)
    order = np.argsort(columns)
    columns, terms = columns[order], [terms[number] for number in order.tolist()]
    if words and last == 1:  # a single word may contain blanks, which join n-grams
        lengths = np.ones_like(columns)
    else:
        lengths = np.fromiter((term.count(" ") + 1 for term in terms) if words else map(len, terms), np.int64)
    others = np.flatnonzero((lengths < first) | (lengths > last))
    for term in (terms[number] for number in others.tolist()):
        if model.analyzer != "char_wb" or len(term) > last or not SHORT_WORD.fullmatch(term):
            reason = f"its term {term!r} does not have {first} to {last} words or characters"
            raise op.fail(model, f"{reason}: change the vocabulary.")
    by_length = [np.flatnonzero(lengths == length) for length in range(1, last + 1)]
    counts = [length * len(numbers) for length, numbers in enumerate(by_length, start=1)]
    split = (lambda group: " ".join(group).split(" ")) if words else "".join
    groups = [[terms[number] for number in numbers.tolist()] for numbers in by_length if len(numbers)]
    return {
        "min_gram_length": int(min(first, lengths.min())),
        "max_gram_length": last,
        "ngram_counts": [0, *accumulate(counts[:-1])],
        "ngram_indexes": columns[np.concatenate(by_length)].tolist(),
        "pool_strings": terms if last == 1 else list(chain(*(split(group) for group in groups))),
    }


class TfidfTransformerDefinition(ModelDefinition):
    """TfidfTransformer: weighted counts, normalized."""

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


MAX_COLUMNS = 2**14  # of hashes, as matrices are dense
PADDING = " \ue000 no token \ue000 "  # after the tokens of shorter documents


class FeatureHasherDefinition(ModelDefinition):
    """FeatureHasher of texts: counts of signed 32-bit MurmurHash3 hashes (Weinberger et al., ICML 2009)."""

    untrained = "it counts hashes of texts, and learns no parameters"
    takes_columns = True
    continuous = False

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        if model.input_type != "string":
            raise op.fail(model, f"input_type={model.input_type!r} is not an ONNX type: use 'string'.")
        columns = [name for name in x.tensors if name] if isinstance(x, Columns) else [x]
        if not all(map(op.has_text, columns)):
            raise op.fail(model, "X has columns without text: pass an array with text in all columns.")
        return transformation(op, hash_counts(op, model, op.joined(columns)), model.n_features)


class HashingVectorizerDefinition(FeatureHasherDefinition):
    """HashingVectorizer of single words: counts of the hashes of words in documents."""

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        check_options(op, model)
        if model.analyzer != "word" or tuple(model.ngram_range) != (1, 1):
            raise op.fail(model, "it hashes n-grams, which are not supported: use single words.")
        if re.fullmatch(model.token_pattern, PADDING):
            raise op.fail(model, f"token_pattern={model.token_pattern!r} matches any text: use the default.")
        words = op.Cast(tokenized(op, model, x, PADDING), to=TensorProto.STRING)
        ignored = [PADDING, *sorted(model.get_stop_words() or ())]
        counted = op.look_up(words, ignored, [0] * len(ignored), default=1)
        counts = hash_counts(op, model, words, counted, signed=not model.binary)
        if model.binary:
            counts = op.ones_where(op.Greater(counts, 0.0))
        if model.norm is not None:
            counts = unit_rows(op, counts, model.norm)
        return transformation(op, counts, model.n_features)


def hash_counts(op: ModelWriter, model: Any, texts: str, times: Any = 1, signed: bool = True) -> str:
    """Append the sums of ``times``, of int64, over texts with the same hash, with the sign of the hash."""
    if model.n_features > MAX_COLUMNS:
        reason = f"{model.n_features} columns are too many for a dense matrix"
        raise op.fail(model, f"{reason}: set n_features to {MAX_COLUMNS} at most.")
    hashes = op.node("MurmurHash3", texts, domain=MICROSOFT, seed=0, positive=0)
    hashes = op.Cast(hashes, to=TensorProto.INT64)
    column = op.Mod(op.Abs(hashes), model.n_features)
    if signed and model.alternate_sign:
        negative = op.Cast(op.Less(hashes, 0), to=TensorProto.INT64)
        times = op.Mul(op.Sub(1, op.Mul(negative, 2)), times)
    else:
        times = op.Add(op.Mul(column, 0), times)
    zeros = op.Cast(op.ReduceSum(op.Mul(column, 0), [1], keepdims=1), to=op.elem_type)
    zeros = op.Add(zeros, np.zeros((1, model.n_features), dtype=op.float_dtype))
    return op.ScatterElements(zeros, column, op.Cast(times, to=op.elem_type), axis=1, reduction="add")
