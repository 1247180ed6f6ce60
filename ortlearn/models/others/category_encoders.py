"""category_encoders: a table of encoded categories for each column, as ``transform`` without y."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import Access, ModelDefinition, ModelWriter, Scores, category_numbers, definition_of
from ..scores import transformation

UNKNOWN, MISSING = -1, -2  # codes of unknown and missing values
#: Unsupported parameters, as the output is then not a table of one column.
UNSUPPORTED = ("composite_cols", "drop_invariant", "hierarchy", "min_group_size")


def _is_missing(value: Any) -> bool:
    return value is None or value != value


class EncoderDefinition(ModelDefinition):
    """Base class of encoders of some columns, which leave the other columns unchanged."""

    takes_columns = True
    continuous = False

    def covers(self, model: Any) -> bool:
        """Return whether the encoding is one table for each column."""
        handled = [getattr(model, name, None) for name in ("handle_unknown", "handle_missing")]
        plain = all(isinstance(value, str) and value != "error" for value in handled)
        return plain and not any(getattr(model, name, None) for name in UNSUPPORTED)

    def write(self, op: ModelWriter, model: Any, x: Any) -> Scores:
        parts, encoded = [], list(model.cols)
        for position, name in enumerate(model.feature_names_in_):
            if name in encoded:
                parts.append(self.encode(op, model, name, op.column(x, position)))
            else:
                parts.append((op.matrix(op.columns(x, [position]), type(model).__name__), 1))
        columns, widths = zip(*(part for part in parts if part[1]), strict=True)
        return transformation(op, op.joined(columns), sum(widths))

    def encode(self, op: ModelWriter, model: Any, name: Any, column: str) -> tuple[str, int]:
        """Append the encoding of a column, and return it with its number of columns."""
        raise NotImplementedError


def _mapping(encoder: Any, name: Any) -> Any:
    """Return the table of a column."""
    return next(entry["mapping"] for entry in encoder.mapping if entry["col"] == name)


def _entries(values: Any, default: Any) -> tuple[list[Any], list[Any], Any]:
    """Return the categories of a series, their values, and the value of missing values."""
    pairs = list(zip(values.index.tolist(), values.tolist(), strict=True))
    known = [pair for pair in pairs if not _is_missing(pair[0])]
    missing = next((value for category, value in pairs if _is_missing(category)), default)
    return [category for category, _ in known], [value for _, value in known], missing


def _codes(model: Any, name: Any) -> tuple[list[Any], list[Any], Any]:
    """Return the categories of a column, their codes, and the code of missing values."""
    return _entries(_mapping(model.ordinal_encoder, name).astype(int), MISSING)


@dataclass(frozen=True)
class EncodedCategories(Access):
    """Encoded values of the categories of a column."""

    name: Any

    def read(self, owner: Any) -> np.ndarray:
        definition: Any = definition_of(owner)
        return definition.targets(owner, self.name)

    def write(self, owner: Any, value: np.ndarray) -> None:
        definition: Any = definition_of(owner)
        definition.set_targets(owner, self.name, value)


class TargetDefinition(EncoderDefinition):
    """TargetEncoder, JamesSteinEncoder, MEstimateEncoder, QuantileEncoder and WOEEncoder."""

    def encode(self, op: ModelWriter, model: Any, name: Any, column: str) -> tuple[str, int]:
        options: Any = {"name": f"mapping_{name}", "access": EncodedCategories(name)}
        table = op.parameter(model, f"mapping['{name}']", role="table", **options)
        # unknown and missing values are not trained
        unknown, missing = (np.array([value], dtype=op.float_dtype) for value in self.others(model, name))
        numbers = category_numbers(op, column, [*self.categories(model, name), np.nan])
        return op.Gather(op.Concat(unknown, table, missing, axis=0), numbers, axis=0), 1

    def categories(self, model: Any, name: Any) -> list[Any]:
        """Return the categories of a column."""
        return _codes(model, name)[0]

    def others(self, model: Any, name: Any) -> tuple[float, float]:
        """Return the encodings of unknown and missing values."""
        values, code = model.mapping[name], _codes(model, name)[2]
        return float(values.get(UNKNOWN, np.nan)), float(values.get(code, np.nan))

    def targets(self, model: Any, name: Any) -> np.ndarray:
        """Return the encodings of the categories of a column."""
        return model.mapping[name].loc[_codes(model, name)[1]].to_numpy(dtype=np.float64)

    def set_targets(self, model: Any, name: Any, value: np.ndarray) -> None:
        """Set the encodings of the categories of a column."""
        model.mapping[name].loc[_codes(model, name)[1]] = value


class LeaveOneOutDefinition(TargetDefinition):
    """LeaveOneOutEncoder and CatBoostEncoder: means of labels, smoothed by ``a`` samples of the mean."""

    def _rows(self, model: Any, name: Any) -> np.ndarray:
        """Return the mask of the rows that are categories, not missing values."""
        return np.array([not _is_missing(category) for category in model.mapping[name].index.tolist()])

    def _means(self, model: Any, name: Any) -> np.ndarray:
        sums, counts = (model.mapping[name][key].to_numpy(dtype=np.float64) for key in ("sum", "count"))
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
    """Base class of encoders without trained values."""

    untrained = "it learns categories or words, which have no gradient"

    def encode(self, op: ModelWriter, model: Any, name: Any, column: str) -> tuple[str, int]:
        categories, rows = self.table(model, name)
        numbers = category_numbers(op, column, [*categories, np.nan])
        table = np.asarray(rows, dtype=op.float_dtype)
        return op.Gather(table, op.Reshape(numbers, [-1]), axis=0), table.shape[1]

    def table(self, model: Any, name: Any) -> tuple[list[Any], list[Any]]:
        """Return the categories of a column, and the rows of unknown values, categories, missing values."""
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
    """CountEncoder: the number of training samples of the category."""

    def covers(self, model: Any) -> bool:
        return super().covers(model) and not getattr(model, "min_group_name", None)

    def table(self, model: Any, name: Any) -> tuple[list[Any], list[Any]]:
        unknown = np.nan if "return_nan" in (model.handle_unknown, model.handle_missing) else 0.0
        categories, counts, missing = _entries(model.mapping[name], unknown)
        return categories, [[count] for count in (unknown, *counts, missing)]
