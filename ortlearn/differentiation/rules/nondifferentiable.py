"""Operators without gradient: their result is not a number, or it is piecewise constant."""

from __future__ import annotations

from ..rule_set import RuleSet

__all__ = ["RULES"]

RULES = RuleSet("nondifferentiable")

# Comparisons and logic
RULES.without_gradient("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "IsInf", "IsNaN")
RULES.without_gradient("And", "Not", "Or", "Xor", "BitShift")
RULES.without_gradient("BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "BitCast")

# Steps
RULES.without_gradient("Ceil", "Floor", "Hardmax", "Round", "Sign")

# Positions and shapes
RULES.without_gradient("ArgMax", "ArgMin", "NonMaxSuppression", "NonZero", "Shape", "Size")
RULES.without_gradient("OptionalHasElement", "SequenceLength")

# Values that do not depend on those of the inputs
RULES.without_gradient("Constant", "ConstantOfShape", "EyeLike")
RULES.without_gradient("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
RULES.without_gradient("Bernoulli", "Multinomial")
RULES.without_gradient("BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix", "SequenceEmpty")

# Text and pictures
RULES.without_gradient("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer")
RULES.without_gradient("ImageDecoder")

# Tokens, flags and hashes, in onnxruntime's domain
RULES.without_gradient(
    "BeamSearch",
    "BifurcationDetector",
    "GreedySearch",
    "IsAllFinite",
    "MurmurHash3",
    "NGramRepeatBlock",
    "Sampling",
    "Tokenizer",
    "WhisperBeamSearch",
    domain="com.microsoft",
)

# Encoders, and decision trees: piecewise constant
RULES.without_gradient(
    "Binarizer",
    "CastMap",
    "CategoryMapper",
    "DictVectorizer",
    "LabelEncoder",
    "OneHotEncoder",
    "TreeEnsemble",
    "TreeEnsembleClassifier",
    "TreeEnsembleRegressor",
    "ZipMap",
    domain="ai.onnx.ml",
)
