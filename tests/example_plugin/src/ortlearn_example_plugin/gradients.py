"""The gradient rule of an ONNX operator that has no rule in ortlearn."""

from ortlearn.differentiation.registry import RuleSet

__all__ = ["RULES"]

RULES = RuleSet("example rules")


@RULES.rule("ReverseSequence")
def reverse_sequence(op, node, grad):
    # y is x with the first elements of each sequence reversed, dx is dy with the same elements reversed
    axes = {name: node.attribute(name, default) for name, default in (("batch_axis", 1), ("time_axis", 0))}
    return op.ReverseSequence(grad, node.I(1), **axes), None
