"""Transforms of graphs."""
