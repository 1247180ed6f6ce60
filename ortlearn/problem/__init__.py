"""The problem to solve: the configuration of an estimator, and the model with its objective."""
