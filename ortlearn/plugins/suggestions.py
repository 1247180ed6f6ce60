"""Suggestions for unknown names: those of other libraries, other spellings, and similar names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from ..exceptions import UnknownPluginError
from .groups import LABELS, LEARNING_RATES, LOSSES, PENALTIES, SCHEDULES

__all__ = ["suggestion", "unknown_plugin"]

#: Text of a number.
NUMBER = r"[-+]?\d*\.?\d+(e[-+]?\d+)?"

#: Parts of the text of an expression of labels and scores.
EXPRESSION = r"[+*/()<>]|\b(label|score)\b"

#: Names in other libraries, without separators and a suffix "loss", by the names in ortlearn.
ELSEWHERE: dict[str, dict[str, str]] = {
    LOSSES: {
        "squared_error": "mse rmse sse meansquarederror rootmeansquarederror squared quadratic leastsquares "
        "ls ols regsquarederror",
        "absolute_error": "mae meanabsoluteerror absolute lad regabsoluteerror",
        "huber": "smoothl1",
        "log_loss": "bce bcewithlogits binarycrossentropy categoricalcrossentropy "
        "sparsecategoricalcrossentropy xentropy ce nll negativeloglikelihood deviance binomialdeviance "
        "logistic binarylogistic multinomial softmax multisoftmax multisoftprob sigmoid",
        "hinge": "svm",
        "focal": "binaryfocalcrossentropy sigmoidfocal",
    },
    PENALTIES: {
        "l1": "lasso",
        "l2": "ridge weightdecay tikhonov",
        "elasticnet": "enet",
    },
    LEARNING_RATES: {
        "Adam": "nadam adamax radam amsgrad",
        "LBFGS": "bfgs lbfgsb newton newtoncg newtoncholesky cg",
        "SGD": "gd asgd gradientdescent stochasticgradientdescent",
        "SGDNesterov": "nag momentum sgdmomentum nesterovmomentum",
    },
    SCHEDULES: {
        "cosine": "cosineannealing cosineannealinglr cosinedecay",
        "exponential": "exponentiallr exponentialdecay",
        "step": "steplr multisteplr",
        "plateau": "reducelronplateau",
        "one_cycle": "onecyclelr",
        "warmup": "linearwarmup linearlr",
    },
}


def unknown_plugin(key: tuple[str, str], known: Sequence[str]) -> UnknownPluginError:
    """Return the error of an unknown name, which suggests a known one."""
    group, name = key
    if group == LEARNING_RATES and re.fullmatch(NUMBER, name):
        return UnknownPluginError(f"No learning rate is named {name!r}. Pass a number: learning_rate={name}.")
    if group == LOSSES and re.search(EXPRESSION, name):
        return UnknownPluginError(
            f"No loss is named {name!r}. If it is an expression, pass learning_loss='expression: {name}'."
        )
    meant, names = suggestion(group, name, known), f"Known names: {', '.join(known) or 'none'}."
    hint = (
        f"Did you mean {meant!r}? {names}"
        if meant
        else f"{names} Install the distribution that declares it and call ortlearn.plugins.refresh()."
    )
    return UnknownPluginError(f"No {LABELS[group]} is named {name!r}. {hint}")


def suggestion(group: str, name: str, known: Sequence[str]) -> str | None:
    """Return the known name that a user probably meant, or None."""
    plain, plains = _plain(name), {_plain(own): own for own in sorted(known, key=len)}
    meant = [
        own for own, names in ELSEWHERE.get(group, {}).items() if plain in names.split() and own in known
    ]
    close = difflib.get_close_matches(plain, plains, n=1, cutoff=0.65)
    return next(iter([plains[plain]] if plain in plains else meant + [plains[text] for text in close]), None)


def _plain(name: str) -> str:
    """Return a name in lower case, without separators and a suffix "loss"."""
    letters = re.sub(r"[\W_]", "", name.casefold())
    return letters.removesuffix("loss") or letters
