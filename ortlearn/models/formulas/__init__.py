"""Formulas that several definitions write."""
