"""Costs and gains of compression: distillation, quantisation and pruning."""
