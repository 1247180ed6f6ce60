"""Columns of the files of a dataset: names must be equal, types are converted to a common one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..exceptions import SourceError
from .tables import is_number, partition_keys, pyarrow, value_type

__all__ = ["check_kinds", "check_unique", "common_schema", "file_schemas"]


def file_schemas(dataset: Any, fragments: Iterable[Any] | None) -> list[tuple[str, Any]]:
    """Return path and schema of each file of a dataset, with the columns of its partition.

    ``fragments`` are those of the dataset, and None for a filtered one.
    """
    pa = pyarrow()
    if fragments is None:
        files = getattr(dataset, "files", ())
        keys = dataset.partitioning.schema.names if getattr(dataset, "partitioning", None) else []
        found = [(path, dataset.format.inspect(path, dataset.filesystem), keys) for path in files]
    else:
        found = [
            (getattr(fragment, "path", "a table"), fragment.physical_schema, partition_keys(fragment))
            for fragment in fragments
        ]
    own = dataset.schema
    return [
        (path, pa.schema([*schema, *(own.field(key) for key in keys if key not in schema.names)]))
        for path, schema, keys in found
    ]


def common_schema(
    files: Sequence[tuple[str, Any]], own: Any, columns: Sequence[str], is_all: bool, converts: bool = True
) -> Any:
    """Return the schema of a dataset, in which columns have a type for the values of all files."""
    different = [*files[:1], *(item for item in files if not item[1].equals(files[0][1]))]
    for path, schema in different:
        _check_names(path, schema.names, own.names, columns, is_all)
    for name in columns:
        # The path is that of the first file with the type.
        types = {schema.field(name).type: path for path, schema in reversed(different)}
        declared = own.field(name).type
        if len(types) > 1 and declared in types:
            paths = {path: kind for kind, path in types.items()}
            common = _common_type(name, paths, declared, types[declared])
            if common != declared and not converts:
                path, kind = next((path, kind) for path, kind in paths.items() if kind != declared)
                raise _other_type(name, kind, path, declared, types[declared])
            own = own.set(own.get_field_index(name), own.field(name).with_type(common))
    return own


def _check_names(
    path: str, names: Sequence[str], known: Sequence[str], columns: Sequence[str], is_all: bool
) -> None:
    check_unique([name for name in names if name in columns], f"File {path}")
    missing = [name for name in columns if name not in names]
    if missing:
        raise SourceError(
            f"File {path} lacks the columns {missing}: it has {list(names)}. Write it again with all "
            "columns, or omit it."
        )
    others = [name for name in names if name not in known] if is_all else []
    if others:
        raise SourceError(
            f"File {path} has the columns {others}, which the first file lacks. Name the columns to train on "
            "in features=[...], or write all files with the same columns."
        )


def _common_type(name: str, types: dict[str, Any], declared: Any, first: str) -> Any:
    """Return a type for the values of a column in all files, by path."""
    pa, common = pyarrow(), _plain(declared)
    for path, kind in types.items():
        fields = [pa.schema([pa.field(name, item)]) for item in (common, _plain(kind))]
        try:
            common = pa.unify_schemas(fields, promote_options="permissive").field(name).type
        except (TypeError, ValueError) as error:  # base classes of Arrow's errors
            raise _other_type(name, kind, path, declared, first) from error
    return common


def _other_type(name: str, kind: Any, path: str, declared: Any, first: str) -> SourceError:
    return SourceError(
        f"Column {name!r} has the type {kind} in file {path}, and {declared} in {first}. Write both with one "
        "type."
    )


def _plain(kind: Any) -> Any:
    """Return the type of the values of a dictionary, and one type for all texts."""
    pa, kind = pyarrow(), value_type(kind)
    return pa.large_string() if _is_text(kind) else kind


def _is_text(kind: Any) -> bool:
    types = pyarrow().types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def check_unique(names: Sequence[str], owner: str) -> None:
    """Raise an error if names are repeated."""
    repeated = sorted({str(name) for name in names if names.count(name) > 1})
    if repeated:
        raise SourceError(f"{owner} has several columns named {repeated}: rename them.")


def check_kinds(schema: Any, features: Sequence[str], others: Sequence[str]) -> None:
    """Raise an error for columns of features, labels or weights whose type is not supported."""
    types = pyarrow().types
    for name in (*features, *others):
        kind = value_type(schema.field(name).type)
        is_matrix = types.is_fixed_size_list(kind) and is_number(kind.value_type) and name in features
        if is_matrix and len(features) == 1:
            continue
        is_binary = any(
            check(kind)
            for check in (types.is_binary, types.is_large_binary, types.is_fixed_size_binary, _is_binary_view)
        )
        if not types.is_nested(kind) and not is_binary:
            continue
        cure = "Convert it to numbers or texts"
        if name in features:
            cure += ", one column for each value, or select other columns by features=[...]"
        if types.is_nested(kind) and name in features:
            cure += "; lists of numbers may be the only feature, as pyarrow.FixedSizeListArray"
        raise SourceError(f"Column {name!r} has the type {kind}, which is not supported. {cure}.")


def _is_binary_view(kind: Any) -> bool:
    return pyarrow().types.is_binary_view(kind)
