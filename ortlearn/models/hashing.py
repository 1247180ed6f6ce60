"""Hashes of texts, counted by column."""

import re
from typing import Any

import numpy as np
from onnx import TensorProto

from .base import ModelDefinition
from .columns import Columns
from .encoders import ML
from .kernels import unit_rows
from .scores import Scores, joined, transformation
from .text import MICROSOFT, check_options, tokenized
from .writer import ModelWriter

#: Columns up to which hashes are counted in the graph, whose matrices are dense.
MOST = 2**14
#: Stands for the tokens that a document has fewer of than another.
PADDING = " \ue000 no token \ue000 "


class FeatureHasherDefinition(ModelDefinition):
    """FeatureHasher of texts: how often each hash is in a sample, less those of a negative hash.

    Weinberger, K. et al., "Feature hashing for large scale multitask learning", ICML 2009; the hash is the
    signed 32-bit MurmurHash3 of the text in UTF-8.
    """

    untrained = "it counts hashes of texts, and learns no numbers"
    takes_columns = True
    continuous = False

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        if model.input_type != "string":
            raise op.fail(model, f"input_type={model.input_type!r} is of pairs, which no ONNX input holds.")
        columns = [own for own in x.tensors if own] if isinstance(x, Columns) else [x]
        if not all(map(op.has_text, columns)):
            raise op.fail(model, "it takes texts: pass an array of which every column has text.")
        counts = hash_counts(op, model, joined(op, columns))
        return transformation(op, counts, model.n_features)


class HashingVectorizerDefinition(FeatureHasherDefinition):
    """HashingVectorizer of single words: a FeatureHasher of the words of a document."""

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        check_options(op, model)
        if model.analyzer != "word" or tuple(model.ngram_range) != (1, 1):
            raise op.fail(model, "ONNX has hashes of words, not of several words or characters joined.")
        if re.fullmatch(model.token_pattern, PADDING):
            raise op.fail(model, f"token_pattern={model.token_pattern!r} takes any text for a word.")
        # onnx crashes on a LabelEncoder of a tensor whose type it does not know
        words = op.Cast(tokenized(op, model, x, PADDING), to=TensorProto.STRING)
        left_out = [PADDING, *sorted(model.get_stop_words() or ())]
        zeros: dict[str, Any] = {"keys_strings": left_out, "values_int64s": [0] * len(left_out)}
        counted = op.node("LabelEncoder", words, domain=ML, default_int64=1, **zeros)
        if model.binary:
            times = hash_counts(op, model, words, counted, signed=False)
            counts = op.ones_where(op.Greater(times, 0.0))
        else:
            counts = hash_counts(op, model, words, counted)
        if model.norm is not None:
            counts = unit_rows(op, counts, model.norm)
        return transformation(op, counts, model.n_features)


def hash_counts(op: ModelWriter, model: Any, texts: str, times: Any = 1, signed: bool = True) -> str:
    """Append the sum of what each text of a sample adds to the column of its hash.

    That is ``times``, of int64, with the sign of the hash where the model alternates signs.
    """
    if model.n_features > MOST:
        raise op.fail(
            model,
            f"{model.n_features} columns are too many for a dense matrix: set n_features to {MOST} at most.",
        )
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
