"""What estimators need of scikit-learn's callbacks; they begin with scikit-learn 1.9."""

from __future__ import annotations

from sklearn import __version__

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """What stands for callbacks where scikit-learn has none."""

        def set_callbacks(self, *callbacks):
            """Raise an error: the callbacks are scikit-learn's.

            Parameters
            ----------
            *callbacks : callback instances
                Callbacks.

            Raises
            ------
            ImportError
                Always.
            """
            raise ImportError(
                f"Callbacks begin with scikit-learn 1.9, and {__version__} is installed: "
                "pip install 'scikit-learn>=1.9'."
            )

    def with_callbacks(method):  # type: ignore[no-redef]
        """Return a method as it is."""
        return method


__all__ = ["CALLBACKS", "DURING_FIT", "CallbackSupportMixin", "with_callbacks"]

#: What scikit-learn keeps on an estimator while it is trained.
DURING_FIT = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")
#: What it keeps of callbacks, those set on the estimator and those around it.
CALLBACKS = ("_skl_callbacks", "_parent_callback_ctx")
