"""scikit-learn's callback API, which exists from scikit-learn 1.9 on, and a replacement before."""

from __future__ import annotations

from sklearn import __version__

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Mixin whose ``set_callbacks`` raises an error."""

        def set_callbacks(self, *callbacks):
            """Raise an error: callbacks require scikit-learn 1.9.

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
                f"Callbacks require scikit-learn 1.9 or later, and {__version__} is installed: "
                "pip install 'scikit-learn>=1.9'."
            )

    def with_callbacks(method):  # type: ignore[no-redef]
        """Return the method unchanged."""
        return method


__all__ = ["CALLBACKS", "DURING_FIT", "CallbackSupportMixin", "with_callbacks"]

#: Attributes that scikit-learn sets on an estimator during ``fit``.
DURING_FIT = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")
#: Attributes with the callbacks of the estimator and of an enclosing meta-estimator.
CALLBACKS = ("_skl_callbacks", "_parent_callback_ctx")
