"""Results with default parameters: common models on common data sets."""
