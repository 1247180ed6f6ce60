"""What compression costs and gains: distillation, quantisation and pruning."""
