"""Constraints of parameters, as functions of unconstrained values."""
