"""Run scikit-learn's check of array API dispatch, which must be enabled before scipy is imported.

``SCIPY_ARRAY_API=1 python -m tests.estimators.common.array_api`` prints the number of checked estimators.
"""

from __future__ import annotations

from .expected_failures import ARRAY_API
from .models import checks_of, estimators

__all__ = ["main"]


def main() -> None:
    """Check the estimators with the first and the last models."""
    count = 0
    for _, model, estimator in estimators():
        if model in ("LinearRegression", "pipeline_LogisticRegression"):
            for name, instance, check in checks_of(estimator):
                if name == ARRAY_API:
                    check(instance)
                    count += 1
    print(count)


if __name__ == "__main__":
    main()
