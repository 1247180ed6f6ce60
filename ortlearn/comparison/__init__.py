"""Decide by losses of samples which of several trainings is kept.

Candidates train themselves, and the start is the first of them. A measure gives losses of samples, and one
rule of evidence says which candidate is kept.
"""
