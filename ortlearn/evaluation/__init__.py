"""How well the model of a file, or a fitted one, predicts the samples of a table."""
