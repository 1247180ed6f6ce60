"""category_encoders: a row of numbers for each category of a column.

What is read are the attributes ``mapping`` and ``ordinal_encoder`` of fitted encoders. ``transform`` without
y is a table for each column; what ``fit_transform`` makes of the samples of the fit may be something else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import Access, ModelDefinition, ModelWriter, Scores, category_numbers
from ..scores import transformation

#: Codes of unknown and missing values in tables by codes.
UNKNOWN, MISSING = -1, -2
#: Parameters under which columns are more than tables of their own.
OTHERWISE = ("composite_cols", "drop_invariant", "hierarchy", "min_group_size")


def _is_missing(value: Any) -> bool:
    return value is None or value != value


class EncoderDefinition(ModelDefinition):
    """Base class: columns that are encoded, and columns that pass as they are."""

    takes_columns = True
    continuous = False

    def covers(self, model: Any) -> bool:
        """Return whether each column has a table of its own; others are left to the package itself."""
        handled = [getattr(model, name, None) for name in ("handle_unknown", "handle_missing")]
        plain = all(isinstance(own, str) and own != "error" for own in handled)
        return plain and not any(getattr(model, name, None) for name in OTHERWISE)

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        found, encoded = [], list(model.cols)
        for position, name in enumerate(model.feature_names_in_):
            if name in encoded:
                found.append(self.encode(op, model, name, op.column(x, position)))
            else:
                found.append((op.matrix(op.columns(x, [position]), type(model).__name__), 1))
        parts, widths = zip(*(own for own in found if own[1]), strict=True)
        return transformation(op, op.joined(parts), sum(widths))

    def encode(self, op: ModelWriter, model: Any, name: Any, column: str) -> tuple[str, int]:
        """Append the columns that an encoded one becomes, and return how many these are."""
        raise NotImplementedError


def _mapping(encoder: Any, name: Any) -> Any:
    """Return the table of a column."""
    return next(own["mapping"] for own in encoder.mapping if own["col"] == name)


def _entries(values: Any, default: Any) -> tuple[list[Any], list[Any], Any]:
    """Return the categories of a series, their values, and that of missing values."""
    pairs = list(zip(values.index.tolist(), values.tolist(), strict=True))
    known = [pair for pair in pairs if not _is_missing(pair[0])]
    missing = next((value for category, value in pairs if _is_missing(category)), default)
    return [category for category, _ in known], [value for _, value in known], missing


def _codes(model: Any, name: Any) -> tuple[list[Any], list[Any], Any]:
    """Return the categories of a column, their codes, and the code of missing values."""
    return _entries(_mapping(model.ordinal_encoder, name).astype(int), MISSING)


class Targets(Access):
    """What categories of a column become, numbers that the fit made of labels."""

    def __init__(self, definition: TargetDefinition, name: Any):
        self.definition, self.name = definition, name

    def read(self, owner: Any) -> np.ndarray:
        return self.definition.targets(owner, self.name)

    def write(self, owner: Any, value: np.ndarray) -> None:
        self.definition.set_targets(owner, self.name, value)


class TargetDefinition(EncoderDefinition):
    """TargetEncoder, JamesSteinEncoder, MEstimateEncoder, QuantileEncoder and WOEEncoder.

    What a category becomes is a parameter; what unknown and missing values become is not.
    """

    def encode(self, op: ModelWriter, model: Any, name: Any, column: str) -> tuple[str, int]:
        options: Any = {"name": f"mapping_{name}", "access": Targets(self, name)}
        table = op.parameter(model, f"mapping['{name}']", role="table", **options)
        unknown, missing = (np.array([own], dtype=op.float_dtype) for own in self.others(model, name))
        numbers = category_numbers(op, column, [*self.categories(model, name), np.nan])
        return op.Gather(op.Concat(unknown, table, missing, axis=0), numbers, axis=0), 1

    def categories(self, model: Any, name: Any) -> list[Any]:
        """Return the categories of a column."""
        return _codes(model, name)[0]

    def others(self, model: Any, name: Any) -> tuple[float, float]:
        """Return what unknown and missing values become."""
        values, code = model.mapping[name], _codes(model, name)[2]
        return float(values.get(UNKNOWN, np.nan)), float(values.get(code, np.nan))

    def targets(self, model: Any, name: Any) -> np.ndarray:
        """Return what the categories of a column become."""
        return model.mapping[name].loc[_codes(model, name)[1]].to_numpy(dtype=np.float64)

    def set_targets(self, model: Any, name: Any, value: np.ndarray) -> None:
        """Set what the categories of a column become."""
        model.mapping[name].loc[_codes(model, name)[1]] = value


class LeaveOneOutDefinition(TargetDefinition):
    """LeaveOneOutEncoder and CatBoostEncoder: sums of labels over counts, with ``a`` labels of the mean.

    A category of one sample becomes the mean.
    """

    def _rows(self, model: Any, name: Any) -> np.ndarray:
        """Return which rows of the table are categories, not missing values."""
        return np.array([not _is_missing(category) for category in model.mapping[name].index.tolist()])

    def _means(self, model: Any, name: Any) -> np.ndarray:
        sums, counts = (model.mapping[name][own].to_numpy(dtype=np.float64) for own in ("sum", "count"))
        added = float(getattr(model, "a", 0.0))
        return np.where(counts > 1, (sums + model._mean * added) / (counts + added), model._mean)

    def categories(self, model: Any, name: Any) -> list[Any]:
        return [category for category in model.mapping[name].index.tolist() if not _is_missing(category)]

    def others(self, model: Any, name: Any) -> tuple[float, float]:
        mean, rows = float(model._mean), self._rows(model, name)
        unknown = np.nan if model.handle_unknown == "return_nan" else mean
        if model.handle_missing == "return_nan":
            return unknown, np.nan
        return unknown, mean if rows.all() else float(self._means(model, name)[~rows][0])

    def targets(self, model: Any, name: Any) -> np.ndarray:
        return self._means(model, name)[self._rows(model, name)]

    def set_targets(self, model: Any, name: Any, value: np.ndarray) -> None:
        rows = self._rows(model, name)
        table = model.mapping[name].astype(float)
        counts = np.maximum(table["count"].to_numpy(copy=True), np.where(rows, 2.0, 0.0))
        sums, added = table["sum"].to_numpy(copy=True), float(getattr(model, "a", 0.0))
        sums[rows] = value * (counts[rows] + added) - model._mean * added
        table["sum"], table["count"] = sums, counts
        model.mapping[name] = table


class FixedDefinition(EncoderDefinition):
    """Base class of encoders that learn categories, no numbers."""

    untrained = "it learns categories or words, no numbers"

    def encode(self, op: ModelWriter, model: Any, name: Any, column: str) -> tuple[str, int]:
        categories, rows = self.table(model, name)
        numbers = category_numbers(op, column, [*categories, np.nan])
        table = np.asarray(rows, dtype=op.float_dtype)
        return op.Gather(table, op.Reshape(numbers, [-1]), axis=0), table.shape[1]

    def table(self, model: Any, name: Any) -> tuple[list[Any], list[Any]]:
        """Return the categories of a column, and the rows of unknown values, of these and of missing ones."""
        raise NotImplementedError


class OrdinalDefinition(FixedDefinition):
    """OrdinalEncoder: the code of the category."""

    def table(self, model: Any, name: Any) -> tuple[list[Any], list[Any]]:
        categories, codes, missing = _entries(_mapping(model, name), UNKNOWN)
        unknown = np.nan if model.handle_unknown == "return_nan" else UNKNOWN
        missing = np.nan if model.handle_missing == "return_nan" else missing
        return categories, [[code] for code in (unknown, *codes, missing)]


class OneHotDefinition(FixedDefinition):
    """OneHotEncoder: a row of the table of each column, by the code of the category."""

    def table(self, model: Any, name: Any) -> tuple[list[Any], list[Any]]:
        table, (categories, codes, missing) = _mapping(model, name), _codes(model, name)
        return categories, [table.loc[code].tolist() for code in (UNKNOWN, *codes, missing)]


class CountDefinition(FixedDefinition):
    """CountEncoder: how often the fit saw the category."""

    def covers(self, model: Any) -> bool:
        return super().covers(model) and not getattr(model, "min_group_name", None)

    def table(self, model: Any, name: Any) -> tuple[list[Any], list[Any]]:
        unknown = np.nan if "return_nan" in (model.handle_unknown, model.handle_missing) else 0.0
        categories, counts, missing = _entries(model.mapping[name], unknown)
        return categories, [[count] for count in (unknown, *counts, missing)]
