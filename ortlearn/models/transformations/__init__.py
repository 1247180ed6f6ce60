"""Definitions of transformers and pipelines."""
