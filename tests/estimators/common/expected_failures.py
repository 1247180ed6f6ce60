"""The checks of scikit-learn that do not hold, each with its reason; one that comes to hold fails its test.

How many they are is printed at the end of a test run.
"""

from __future__ import annotations

from typing import Any

__all__ = ["ARRAY_API", "expected_failures"]

ROWS_COME_IN_BATCHES = (
    "a row of weight 2 moves the weights once, the same row given twice moves them in two batches; with all "
    "rows in one batch it holds, see test_check_estimator.py::test_weights_count_as_repeated_rows"
)

#: Checks for every estimator that trains in batches.
IN_BATCHES = {
    "check_sample_weight_equivalence_on_dense_data": ROWS_COME_IN_BATCHES,
    "check_sample_weight_equivalence_on_sparse_data": ROWS_COME_IN_BATCHES,
}

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
    failures = dict(IN_BATCHES)
    if not estimator.__sklearn_tags__().input_tags.sparse:
        del failures["check_sample_weight_equivalence_on_sparse_data"]  # there is no such check then
    return failures
