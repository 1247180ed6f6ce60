"""Selection of the weights to train."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..differentiation import gradient_reach
from ..exceptions import ConversionError, NoTrainableWeightError, limit_address
from ..graphs.name_patterns import matches_pattern
from ..models.parameters import CONSTANT, STATISTIC, Parameter
from .facts import explained_rows, rows_table
from .trainable_model import TrainableModel

__all__ = ["match_patterns", "matches_location", "reached_weights", "select_weights", "with_trained_weights"]

#: Kinds of weights that are trained only if named exactly, by their reason.
BY_NAME = {CONSTANT: "constants of formulas", STATISTIC: "running statistics"}


@dataclass(frozen=True)
class PatternMatch:
    """Weights that match a pattern."""

    exact: frozenset[str]  # their name is the pattern
    #: They match its wildcards, or are of the step with this name, except constants of formulas and running
    #: statistics. Those that a gradient reaches are trained.
    matched: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        """All matching weights."""
        return self.exact | self.matched


def match_patterns(
    weights: dict[str, Parameter], patterns: Sequence[str] | str, original_names: dict[str, str]
) -> list[PatternMatch]:
    """Return the weights that match each pattern, see :func:`select_weights`."""
    found = []
    known = {name: weight.names(original_names.get(name, name)) for name, weight in weights.items()}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        if not isinstance(pattern, str):
            raise TypeError(
                f"weights_to_train has the entry {pattern!r}: names and patterns must be strings."
            )
        exact = frozenset(name for name, names in known.items() if pattern in names)
        wild = {name for name, names in known.items() if any(matches_pattern(n, pattern) for n in names)}
        if not exact:
            for name, weight in weights.items():
                original = original_names.get(name, name)
                if pattern in weight.steps or matches_location(weight, original, pattern):
                    wild.add(name)
        matched = frozenset(name for name in wild - exact if weights[name].reason not in BY_NAME)
        if not exact and not matched:
            raise _no_match(pattern, wild, weights, original_names, known)
        found.append(PatternMatch(exact, matched))
    return found


def _no_match(
    pattern: str,
    wild: set[str],
    weights: dict[str, Parameter],
    original_names: dict[str, str],
    known: dict[str, list[str]],
) -> NoTrainableWeightError:
    """Return the error for a pattern whose matches are at most weights to name exactly."""
    reasons = {weights[name].reason for name in wild}
    kinds = " and ".join(kind for reason, kind in BY_NAME.items() if reason in reasons)
    matches = (
        f"only {kinds}, which are trained if named exactly," if wild else "no floating-point initializer"
    )
    return NoTrainableWeightError(
        f"weights_to_train: {pattern!r} matches {matches} among {_known(weights, original_names)}"
        f"{_steps(weights)}.{'' if wild else _suggestion(pattern, known)}"
    )


def matches_location(weight: Parameter, original: str, pattern: str) -> bool:
    """Return whether a node, operator or layer of a learned weight of an ONNX file matches a pattern."""
    layer = pattern.strip("/")
    return weight.learned and any(
        matches_pattern(name, pattern) or name == layer for name in weight.locations(original)
    )


def select_weights(
    weights: dict[str, Parameter],
    patterns: Sequence[str] | str | None,
    original_names: dict[str, str],
) -> list[str]:
    """Return the stable names of the weights to train, sorted; None selects the learned weights."""
    if patterns is None:
        chosen = {name for name, weight in weights.items() if weight.learned}
    else:
        matches = match_patterns(weights, patterns, original_names)
        chosen = {name for match in matches for name in match.names}
    if not chosen and patterns is not None:
        raise NoTrainableWeightError(
            f"weights_to_train is empty: name weights from {_known(weights, original_names)}, or pass None, "
            "which selects the learned ones."
        )
    if not chosen:
        hint = f" Select weights by weights_to_train, from {_known(weights, original_names)}."
        raise NoTrainableWeightError(
            "The model has no weight to train: no initializer is a factor of a product, an intercept, a "
            f"table or a fitted attribute.{hint if weights else ''}{limit_address('no-weight')}"
        )
    return sorted(chosen)


def with_trained_weights(model: TrainableModel, weights_to_train: Any, fitted: Any = None) -> TrainableModel:
    """Return a model with the selected weights to train."""
    weights, names = model.parameters, model.original_names
    if weights_to_train is not None:
        select_weights(weights, weights_to_train, names)  # raises an error for an empty list
        trained = _reached_matches(model, match_patterns(weights, weights_to_train, names))
    else:
        try:
            trained = _reached(model)
        except NoTrainableWeightError as error:
            rows = explained_rows(model, fitted)
            message = f"{error}\n{rows_table(rows)}" if rows else str(error)
            raise NoTrainableWeightError(message, rows) from None
    weights = {name: replace(w, learned=name in trained or w.learned) for name, w in weights.items()}
    return replace(model, parameters=weights, trained=trained)


def _reached(model: TrainableModel) -> list[str]:
    """Return the learned weights that a gradient reaches."""
    part, output = model.objective_graph(), model.objective_tensor
    reached, blockers = gradient_reach(part, output)
    has_origins = any(weight.origin for weight in model.parameters.values())
    offered = {
        name: weight
        for name, weight in model.parameters.items()
        if weight.learned or (name in reached and bool(weight.origin) == has_origins)
    }
    learned = select_weights(offered, None, model.original_names)
    found = [name for name in learned if name in reached]
    if found:
        return found
    present = {tensor.name for tensor in part.graph.initializer}
    lost = [model.original_names.get(name, name) for name in learned if name not in present]
    reason = (
        "learned weights affect the trained output only through "
        f"{', '.join(sorted({node.op_type for node in blockers}))}, without a gradient."
        if len(lost) < len(learned)
        else f"{lost} do not affect the trained output ({output!r})."
    )
    raise NoTrainableWeightError(f"The model has no weight to train: {reason}{limit_address('no-weight')}")


def _reached_matches(model: TrainableModel, matches: Sequence[PatternMatch]) -> list[str]:
    """Return the matching weights that a gradient reaches; for patterns without any, all matching weights."""
    part, output = model.objective_graph(), model.objective_tensor
    present = {tensor.name for tensor in part.graph.initializer}
    reached, _ = gradient_reach(part, output)
    chosen: set[str] = set()
    for match in matches:
        matched = match.matched & present
        lost = match.exact - present or (not matched and not match.exact and match.matched)
        if lost:
            raise ConversionError(
                f"Weights {sorted(model.original_names.get(name, name) for name in lost)} come after the "
                f"trained scores ({output!r}): remove them from weights_to_train."
            )
        chosen |= match.exact | (matched & {*reached} or matched)
    return sorted(chosen)


def reached_weights(model: TrainableModel, names: Sequence[str]) -> list[str]:
    """Return the weights that a gradient reaches, sorted; all if it reaches none."""
    return _reached_matches(model, [PatternMatch(frozenset(), frozenset(names))])


def _known(weights: dict[str, Parameter], original_names: dict[str, str]) -> str:
    """Return the names and origins of weights, for an error."""
    texts = []
    for name, weight in weights.items():
        original = repr(original_names.get(name, name))
        texts.append(f"{original} ({weight.origin})" if weight.origin else original)
    return f"[{', '.join(texts)}]"


def _suggestion(pattern: str, known: dict[str, list[str]]) -> str:
    """Return a similar name for a pattern without matches, for its error."""
    names = [name for aliases in known.values() for name in aliases]
    dotted = ".".join(pattern.rsplit("__", 1))  # from the notation of set_params
    for likely in (dotted, f"{dotted}_", f"{dotted}_*"):
        if any(matches_pattern(name, likely) for name in names):
            return f" Did you mean {likely!r}?"
    close = difflib.get_close_matches(pattern, names, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _steps(weights: dict[str, Parameter]) -> str:
    """Return the names of steps, for an error."""
    names = sorted({name for weight in weights.values() for name in weight.steps})
    return f", and no step among {names}" if names else ""
