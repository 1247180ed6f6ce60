"""The checks of scikit-learn that do not hold, each with its reason; one that comes to hold fails its test.

How many they are is printed at the end of a test run.
"""

from __future__ import annotations

from typing import Any

import sklearn
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.fixes import parse_version

__all__ = ["ARRAY_API", "expected_failures"]

ROWS_COME_IN_BATCHES = (
    "a row of weight 2 moves the weights once, the same row given twice moves them in two batches; with all "
    "rows in one batch it holds, see test_check_estimator.py::test_weights_count_as_repeated_rows"
)
STEPS_WITHOUT_WEIGHTS = (
    "only the last step of a pipeline gets weights; with weights routed to the scaler, in one batch, "
    "it holds, see test_check_estimator.py::test_weights_routed_to_a_scaler"
)
REFUSES_SPARSE = (
    "scikit-learn 1.6 makes this check without a look at the tag, which says that sparse rows are refused"
)

DENSE = "check_sample_weight_equivalence_on_dense_data"
SPARSE = "check_sample_weight_equivalence_on_sparse_data"

#: The check that another process makes, see array_api.py: it must know of it before scipy is imported.
ARRAY_API = "check_array_api_input"


def expected_failures(estimator: Any) -> dict[str, str]:
    """Return the checks that an estimator does not pass, and why.

    Parameters
    ----------
    estimator : estimator
        What is checked.

    Returns
    -------
    dict of str to str
        Reason by name of check.
    """
    failures = {DENSE: ROWS_COME_IN_BATCHES}
    if isinstance(estimator.estimator, Pipeline):
        failures[DENSE] += "; " + STEPS_WITHOUT_WEIGHTS
    if get_tags(estimator).input_tags.sparse:
        failures[SPARSE] = ROWS_COME_IN_BATCHES
    elif parse_version(sklearn.__version__) < parse_version("1.7"):
        failures[SPARSE] = REFUSES_SPARSE
    return failures
