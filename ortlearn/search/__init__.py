"""Searches that train many candidates in one graph.

:class:`OrtGridSearchCV` and :class:`OrtRandomizedSearchCV` replace scikit-learn's searches.
"""

from .searches import OrtGridSearchCV, OrtRandomizedSearchCV

__all__ = ["OrtGridSearchCV", "OrtRandomizedSearchCV"]
