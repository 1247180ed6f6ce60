"""Searches that train many candidates in one graph.

:class:`OrtGridSearchCV` and :class:`OrtRandomizedSearchCV` replace scikit-learn's searches.
"""

from .searches import OrtGridSearchCV, OrtRandomizedSearchCV
from .suggestions import suggest

__all__ = ["OrtGridSearchCV", "OrtRandomizedSearchCV", "suggest"]
