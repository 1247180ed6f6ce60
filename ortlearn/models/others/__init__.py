"""Definitions of estimators of other packages, a file for each package; none of them imports its package."""
