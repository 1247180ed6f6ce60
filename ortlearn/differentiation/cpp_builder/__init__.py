"""onnxruntime-training's C++ gradient builder, for the graphs that it is known to be right on.

The builder ended upstream with onnxruntime-training 1.19.2. No other module knows it.
"""

from .agent import Agent
from .gradient import gradient_graph
from .refusal import refusal
from .runtime import is_available
from .yield_graph import yield_graph

__all__ = ["Agent", "gradient_graph", "is_available", "refusal", "yield_graph"]
