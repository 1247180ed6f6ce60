"""Forests with losses other than their own, and forests on streams."""
