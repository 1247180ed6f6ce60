"""scikit-learn's callback API, which exists from scikit-learn 1.9 on, and a replacement before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sklearn import __version__

from ..exceptions import limit_address

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Mixin whose ``set_callbacks`` raises an error."""

        def set_callbacks(self, *callbacks: Any) -> Any:
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
                f"pip install 'scikit-learn>=1.9'.{limit_address('callbacks')}"
            )

    def with_callbacks(method: Callable) -> Callable:  # type: ignore[no-redef]
        """Return the method unchanged."""
        return method


__all__ = ["CALLBACKS", "CallbackMethods", "DURING_FIT", "CallbackSupportMixin", "with_callbacks"]

#: Attributes that scikit-learn sets on an estimator during ``fit``.
DURING_FIT = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")
#: Attributes with the callbacks of the estimator and of an enclosing meta-estimator.
CALLBACKS = ("_skl_callbacks", "_parent_callback_ctx")


class CallbackMethods(CallbackSupportMixin):
    """scikit-learn's methods for callbacks."""

    def set_callbacks(self, *callbacks: Any) -> Any:
        """Set the callbacks of the training, or remove them.

        Parameters
        ----------
        *callbacks : callback instances
            Objects with the methods of scikit-learn's ``FitCallback``, such as
            :class:`~ortlearn.callbacks.ModelCheckpoint`; none to remove all.

        Returns
        -------
        OrtGradientOptimizer or OrtGradientForwardBackwardOptimizer
            This object.

        Raises
        ------
        TypeError
            If one is not a callback. The object is not changed.
        ImportError
            If scikit-learn is older than 1.9, which introduced callbacks.
        """
        try:
            return super().set_callbacks(*callbacks)
        except TypeError as error:
            raise TypeError(_about_callbacks(callbacks)) from error


def _about_callbacks(callbacks: Sequence[Any]) -> str:
    """Return the message about arguments that are not callbacks."""
    if len(callbacks) == 1 and isinstance(callbacks[0], list | tuple):
        return "set_callbacks takes the callbacks one by one, not as a list: set_callbacks(*callbacks)."
    classes = [value for value in callbacks if isinstance(value, type)]
    if classes:
        return (
            f"{classes[0].__name__} is a class: pass an instance, set_callbacks({classes[0].__name__}(...))."
        )
    return (
        f"set_callbacks({', '.join(map(repr, callbacks))}): a callback is an object with the methods setup, "
        "teardown, on_fit_task_begin and on_fit_task_end of scikit-learn's FitCallback, such as "
        "ModelCheckpoint(folder)."
    )
