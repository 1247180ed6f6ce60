"""Rewrite subgraphs of converters to equivalent ones with correct gradients."""

from .forms import rewrite_forms

__all__ = ["rewrite_forms"]
