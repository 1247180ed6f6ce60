"""What is known of a scikit-learn estimator before it is converted, and how it is made ready."""
