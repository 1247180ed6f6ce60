"""Graphs of a training: scores, objective, gradient and update."""
