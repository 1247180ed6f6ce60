"""Definitions of classifiers, regressors, clusterings, densities and outlier detectors."""
