"""Every scikit-learn model, measured: does it convert, train with a correct gradient, predict as exported."""
