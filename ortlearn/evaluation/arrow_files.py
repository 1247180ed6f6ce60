"""Parquet and Arrow files of commands, and frames in temporary ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from ..data.arrow import dataset_of
from ..data.tables import value_type

__all__ = [
    "batches_of",
    "columns_with_gaps",
    "dataset_at",
    "read_stream",
    "write_as_file",
    "write_parquet",
    "write_stream",
]

#: Bytes of a parquet file that are read at a time, for each column.
BUFFER = 2**16


def dataset_at(path: str, is_parquet: bool) -> Any:
    """Return the dataset of a parquet or Arrow file."""
    if is_parquet:
        return dataset_of(path)
    import pyarrow.dataset as datasets

    return datasets.dataset(path, format="ipc")


def batches_of(path: str, dataset: Any, is_parquet: bool, n_rows: int, columns: list[str]) -> Iterator[Any]:
    """Yield columns of a file in parts; a dataset would hold whole row groups of parquet in memory."""
    if not is_parquet:
        yield from dataset.to_batches(
            batch_size=n_rows, columns=columns, use_threads=False, batch_readahead=1
        )
        return
    from pyarrow import repeat, scalar
    from pyarrow.dataset import get_partition_keys
    from pyarrow.parquet import ParquetFile

    keys = get_partition_keys(next(dataset.get_fragments()).partition_expression)
    values = {
        name: scalar(value, dataset.schema.field(name).type)
        for name, value in keys.items()
        if name in columns
    }
    with ParquetFile(path, pre_buffer=False, buffer_size=BUFFER) as file:
        for batch in file.iter_batches(n_rows, columns=columns, use_threads=False):
            for name, value in values.items():
                batch = batch.append_column(name, repeat(value, batch.num_rows))
            yield batch


def columns_with_gaps(dataset: Any, columns: list[str]) -> set[str]:
    """Return those of integers and booleans with missing values, which change their type."""
    from pyarrow import types
    from pyarrow.dataset import field

    read = (dataset.schema.field(name) for name in columns)
    whole = (item for item in read if types.is_integer(item.type) or types.is_boolean(item.type))
    gaps = {item.name: field(item.name).is_null() for item in whole}
    anywhere: Any = None
    for gap in gaps.values():
        anywhere = gap if anywhere is None else anywhere | gap
    if anywhere is None or not dataset.count_rows(filter=anywhere):  # statistics of parquet files suffice
        return set()
    return {name for name, gap in gaps.items() if dataset.count_rows(filter=gap)}


def write_as_file(path: str, file: BinaryIO) -> None:
    """Write a file in the format of streams in that of files; dictionaries become their values."""
    from pyarrow import RecordBatch, ipc, schema, types

    with open(path, "rb") as source, ipc.open_stream(source) as reader:
        fields = [field.with_type(value_type(field.type)) for field in reader.schema]
        written = schema(fields, reader.schema.metadata)
        with ipc.new_file(file, written) as writer:
            for batch in reader:
                columns = [
                    column.dictionary_decode() if types.is_dictionary(column.type) else column
                    for column in batch.columns
                ]
                writer.write_batch(RecordBatch.from_arrays(columns, schema=written))


def write_stream(file: BinaryIO, frame: Any) -> None:
    """Append a frame to a file."""
    from pyarrow import Table, ipc

    table = Table.from_pandas(frame)
    with ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


def read_stream(file: BinaryIO) -> Any:
    """Return the frame at the position of a file."""
    from pyarrow import ipc

    with ipc.open_stream(file) as reader:
        return reader.read_pandas()


def write_parquet(file: BinaryIO, frames: Iterable[Any]) -> None:
    """Write a row group for each frame, with the types of the first one."""
    from pyarrow import Table
    from pyarrow.parquet import ParquetWriter

    writer = None
    try:
        for frame in frames:
            schema = None if writer is None else writer.schema
            table = Table.from_pandas(frame, schema=schema, preserve_index=False)
            writer = writer or ParquetWriter(file, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
