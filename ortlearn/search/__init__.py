"""Searches that train many candidates in one graph.

:class:`OrtGridSearchCV`, :class:`OrtHalvingGridSearchCV` and :class:`OrtRandomizedSearchCV` replace
scikit-learn's searches.
"""

from .searches import OrtGridSearchCV, OrtHalvingGridSearchCV, OrtRandomizedSearchCV
from .suggestions import suggest

__all__ = ["OrtGridSearchCV", "OrtHalvingGridSearchCV", "OrtRandomizedSearchCV", "suggest"]
