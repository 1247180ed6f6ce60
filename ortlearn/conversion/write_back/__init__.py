"""Trained weights back into the attributes of scikit-learn estimators."""
