"""Checks of scikit-learn that are expected to fail, with reasons.

A check that passes unexpectedly fails its test. The number of checks is printed at the end of a test run.
"""

from __future__ import annotations

from typing import Any

import sklearn
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.fixes import parse_version

__all__ = ["ARRAY_API", "expected_failures"]

SAMPLES_IN_BATCHES = (
    "a sample of weight 2 causes one update, and a repeated sample may cause two; the check passes for full "
    "batches, see test_check_estimator.py::test_weights_equal_repeated_samples"
)
STEPS_WITHOUT_WEIGHTS = (
    "only the last step of a pipeline receives weights; the check passes for full batches with weights "
    "routed to the scaler, see test_check_estimator.py::test_weights_routed_to_a_scaler"
)
SPARSE_NOT_SUPPORTED = "scikit-learn 1.6 ignores the tag in this check, by which sparse data is not supported"

DENSE = "check_sample_weight_equivalence_on_dense_data"
SPARSE = "check_sample_weight_equivalence_on_sparse_data"

#: Check that runs in another process, see array_api.py.
ARRAY_API = "check_array_api_input"


def expected_failures(estimator: Any) -> dict[str, str]:
    """Return the checks that an estimator is expected to fail, with reasons.

    Parameters
    ----------
    estimator : estimator
        Estimator to check.

    Returns
    -------
    dict of str to str
        Reason by name of check.
    """
    failures = {DENSE: SAMPLES_IN_BATCHES}
    if isinstance(estimator.estimator, Pipeline):
        failures[DENSE] += "; " + STEPS_WITHOUT_WEIGHTS
    if get_tags(estimator).input_tags.sparse:
        failures[SPARSE] = SAMPLES_IN_BATCHES
    elif parse_version(sklearn.__version__) < parse_version("1.7"):
        failures[SPARSE] = SPARSE_NOT_SUPPORTED
    return failures
