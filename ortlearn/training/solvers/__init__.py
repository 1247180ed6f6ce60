"""Objectives of all samples for solvers."""
