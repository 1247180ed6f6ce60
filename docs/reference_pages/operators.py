"""The page of operators: which have a gradient, from the rules of ortlearn and the schemas of onnx."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from onnx import defs

from ortlearn import plugins
from ortlearn.differentiation.registry import RuleTable

__all__ = ["CONTRIBUTED", "LAST_OPSET", "STATES", "operator_states", "operators_page", "write_operators_page"]

#: Names in the longest list of a domain from which on it is "all others".
LONG = 20
#: The last version of the default operator set on the page.
LAST_OPSET = 28
RULE, BODY, NONE, MISSING = STATES = ("rule", "definition", "no gradient", "missing")
_DOMAINS = {"": "ai.onnx", "ai.onnx.ml": "ai.onnx.ml", "com.microsoft": "com.microsoft"}

#: Operators of com.microsoft, which onnx has no schemas of: docs/ContribOperators.md of onnxruntime 1.31.
CONTRIBUTED = """
    Attention AttnLSTM BeamSearch BiasAdd BiasDropout BiasGelu BiasSoftmax BiasSplitGelu BifurcationDetector
    BitmaskBiasDropout BitmaskDropout CDist CausalConvWithState ComplexMul ComplexMulConj
    ConvTransposeWithDynamicPads CropAndResize DecoderAttention DecoderMaskedMultiHeadAttention
    DecoderMaskedSelfAttention DequantizeBFP DequantizeLinear DequantizeWithOrder DynamicQuantizeLSTM
    DynamicQuantizeMatMul DynamicTimeWarping EPContext EmbedLayerNormalization EngramGate ExpandDims FastGelu
    FusedConv FusedGemm FusedMatMul FusedMatMulActivation GatedAdd GatedDeltaNet GatedRMSNorm
    GatedRelativePositionBias GatherBlockQuantized GatherND Gelu GemmFastGelu GemmFloat8 GemmaRotaryEmbedding
    GreedySearch GridSample GroupNorm GroupQueryAttention Inverse Irfft IsAllFinite LinearAttention
    LinearAttentionGate LongformerAttention MRotaryEmbedding MatMulBlockQuantizedFp4Weight
    MatMulBlockQuantizedFp8Weight MatMulBnb4 MatMulFpQ4 MatMulInteger16 MatMulIntegerToFloat MatMulNBits
    MatMulNBitsMlp MatMulNBitsQkv MaxpoolWithMask MoE MulInteger MultiHeadAttention MurmurHash3
    NGramHashMapping NGramRepeatBlock NhwcConv NhwcFusedConv NhwcMaxPool PackedAttention
    PackedMultiHeadAttention Pad PagedAttention QAttention QEmbedLayerNormalization QGemm QLinearAdd
    QLinearAveragePool QLinearConcat QLinearConv QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul
    QLinearReduceMean QLinearSigmoid QLinearSoftmax QLinearWhere QMoE QOrderedAttention QOrderedGelu
    QOrderedLayerNormalization QOrderedLongformerAttention QOrderedMatMul QuantizeBFP QuantizeLinear
    QuantizeWithOrder QuickGelu Range ReduceSumInteger RelativePositionBias RemovePadding RestorePadding Rfft
    RotaryEmbedding SampleOp Sampling SkipGroupNorm SkipLayerNormalization SkipSimplifiedLayerNormalization
    Snpe SparseAttention SparseToDenseMatMul Tokenizer TorchEmbedding TransposeMatMul Trilu UnfoldTensor
    Unique VarlenCausalConvWithState VarlenNGramHashMapping WhisperBeamSearch WordConvEmbedding
""".split()

_INTRODUCTION = f"""# Operators and their gradients

The state of every operator of ai.onnx up to opset {LAST_OPSET}, of ai.onnx.ml, and of com.microsoft, the
domain of onnxruntime.

- **rule**: ortlearn has a gradient rule.
- **definition**: the ONNX specification defines it by other operators, which replace it and are
  differentiated.
- **no gradient**: declared without gradient, as its derivative is zero or undefined. Its results are
  constants.
- **missing**: differentiating it raises an error that names the operator, the node and its origin.
  [Add a gradient rule](../tutorials/add-a-gradient-rule.md) for one process, or in a package.

A rule may not support all forms of its operator; the error gives the reason. Operators that round, such as
`QuantizeLinear`, only have a gradient with `straight_through=True` ([limits](../limits.md)). Before
an ONNX file is trained, its operators of ai.onnx.ml are replaced by standard ones with named weights.
"""


def operator_states(distributions: Collection[str]) -> dict[tuple[str, str], str]:
    """Return the state of every operator, by domain and name.

    Parameters
    ----------
    distributions : collection of str
        Whose gradient rules count.

    Returns
    -------
    dict of (str, str) to str
        One of ``STATES`` each, sorted by domain and name.
    """
    infos = [info for info in plugins.list_plugins(plugins.GRADIENTS) if info.distribution in distributions]
    table = RuleTable([plugins.get(plugins.GRADIENTS, info.name) for info in infos])
    schemas: dict[tuple[str, str], list] = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain in _DOMAINS and (schema.domain or schema.since_version <= LAST_OPSET):
            schemas.setdefault((schema.domain, schema.name), []).append(schema)
    keys = {*schemas, *(("com.microsoft", name) for name in CONTRIBUTED), *table.keys()}
    return {key: _state(table.find(*key), schemas.get(key, [])) for key in sorted(keys)}


def _state(rule, schemas: list) -> str:
    if rule is not None:
        return NONE if isinstance(rule, str) else RULE
    defined = any(s.has_function or s.has_context_dependent_function for s in schemas)
    sequences = any("seq(" in kind for s in schemas for output in s.outputs for kind in output.types)
    return BODY if defined and not sequences else MISSING


def operators_page(states: dict[tuple[str, str], str]) -> str:
    """Return the page of some operators and their states."""
    parts = [_INTRODUCTION]
    for domain, title in _DOMAINS.items():
        own = {name: state for (other, name), state in states.items() if other == domain}
        counts = ", ".join(f"{list(own.values()).count(state)} {state}" for state in STATES)
        lines = [f"## {title}", "", f"{len(own)} operators: {counts}."]
        lists = {state: [name for name, found in own.items() if found == state] for state in STATES}
        longest = max(map(len, lists.values()))
        for state, names in lists.items():
            others = len(names) == longest >= LONG
            if names:
                lines += ["", f"**{state}**: {'all others' if others else ', '.join(names)}."]
        parts.append("\n".join(lines) + "\n")
    parts.append(
        "---\n\n`make docs` generates this page from the registry of rules and the schemas of onnx.\n"
    )
    return "\n".join(parts)


def write_operators_page(folder: Path, distributions: Collection[str]) -> Path:
    """Write the page into a folder of documentation, and return its path."""
    path = folder / "reference" / "operators.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(operators_page(operator_states(distributions)), encoding="utf-8")
    return path
