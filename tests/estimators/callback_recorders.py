"""Callbacks that record their calls, and helpers of their tests."""

import numpy as np
from sklearn.linear_model import Ridge

from ortlearn.estimators import OrtGradientOptimizer

MACHINERY = {"_callback_fit_ctx", "_skl_callbacks_to_teardown", "_parent_callback_ctx"}


class Recorder:
    """Callback that records its calls, and optionally fails or stops at one of them."""

    def __init__(self, fail_at=None, stop_at=None, keep=False):
        self.fail_at, self.stop_at, self.keep = fail_at, stop_at, keep
        self.calls, self.fitted, self.arguments = [], [], []

    def _note(self, hook, context):
        self.calls.append((hook, context.task_name, context.task_id))
        if self.fail_at in (hook, (hook, context.task_name)):
            raise RuntimeError(f"failed at {hook}")

    def setup(self, estimator, context):
        self.max_subtasks = context.max_subtasks
        self._note("setup", context)

    def teardown(self, estimator, context):
        self._note("teardown", context)

    def on_fit_task_begin(self, estimator, context):
        self._note("begin", context)

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self._note("end", context)
        self.arguments.append((X, y, metadata))
        self.history = list(estimator.history_)
        if self.keep:
            self.fitted.append(fitted_estimator)
        return (context.task_name, context.task_id) == self.stop_at


class Lister(Recorder):
    """Recorder whose hooks have no optional arguments."""

    def on_fit_task_end(self, estimator, context):
        self._note("end", context)


def rounds(n, name="epoch"):
    return [(hook, name, i) for i in range(n) for hook in ("begin", "end")]


def same_model(one, other, X):
    assert one.trained_coef_.keys() == other.trained_coef_.keys()
    for name, array in other.trained_coef_.items():
        np.testing.assert_array_equal(one.trained_coef_[name], array)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-5, atol=1e-6)


def ridge(kind=OrtGradientOptimizer, **options):
    return kind(Ridge(), **{"max_iter": 3, "random_state": 0, "batch_size": 20, **options})
