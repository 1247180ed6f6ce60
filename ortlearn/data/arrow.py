"""Sources with Arrow columns: parquet files, datasets, tables, readers, and streams of other libraries."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from ..exceptions import SourceError
from .plain_pages import NotPlain, PlainReader
from .prefetch import prefetched
from .sample_blocks import SampleBlock
from .schemas import common_schema, file_schemas
from .selection import Selection
from .source_errors import unreadable
from .sources import ROWS_OF_BLOCK, Source
from .tables import pyarrow
from .temporary_files import TemporaryFile

__all__ = ["BatchSource", "DatasetSource", "SpooledSource", "TableSource", "dataset_of", "row_groups"]

#: Size of a decoded batch in numbers, and its bounds in rows: a batch of 50 columns has an overhead of half a
#: millisecond, and about three batches are in memory.
NUMBERS_OF_BATCH, ROWS_OF_BATCH = 2**21, (1024, 65_536)


def dataset_of(path: str | os.PathLike, schema: Any = None) -> Any:
    """Return the dataset of a parquet file or folder, by default with the columns of the first file."""
    pyarrow()
    import pyarrow.dataset as datasets

    return datasets.dataset(path, format="parquet", partitioning="hive", schema=schema)


class _ArrowSource(Source):
    """Source with columns that are selected by name."""

    def __init__(self, schema: Any, features: Any, y: Any, sample_weight: Any):
        self._selection = Selection.of(schema, features, y, sample_weight)
        self.names = self._selection.names


class DatasetSource(_ArrowSource):
    """Dataset of pyarrow; a block is a row group if the files are parquet files."""

    def __init__(self, dataset: Any, features: Any, y: Any, sample_weight: Any):
        super().__init__(dataset.schema, features, y, sample_weight)
        fragments = _fragments(dataset)
        self._groups = row_groups(fragments)
        self._dataset, columns = dataset, self._selection.columns()
        converts = self._groups is not None
        self._schema = _schema_of_files(dataset, fragments, columns, features is None, converts)
        if self._schema is not dataset.schema:
            super().__init__(self._schema, features, y, sample_weight)
        self._scan = _local_scan_options() if _is_local(dataset) else None
        if self._groups is not None:
            self.sizes = [group.row_groups[0].num_rows for group in self._groups]
        if self._groups is not None and _is_local(dataset):
            self.stamp = _stamp(dataset.files, self._selection)

    def blocks(self, numbers: Sequence[int] | None = None, features: bool = True) -> Iterator[SampleBlock]:
        """Yield row groups of parquet files, or batches of other files.

        pyarrow decodes in a separate thread. Plain columns are read too fast for a thread to be useful.
        """
        columns, groups = self._selection.columns(features), self._groups
        if groups is None:
            yield from _batches(self._dataset, columns, self._selection, "the dataset")
        else:
            chosen = groups if numbers is None else [groups[number] for number in numbers]
            is_local = self._scan is not None
            plain = PlainReader(self._selection, self._schema) if features and is_local else None
            decoded = partial(self._decoded, chosen, columns, plain)
            yield from decoded() if plain and chosen and plain.reads(chosen[0]) else prefetched(decoded)

    def _decoded(
        self, groups: Sequence[Any], columns: list[str], plain: PlainReader | None
    ) -> Iterator[SampleBlock]:
        """Yield the rows of row groups; check their numbers against the metadata."""
        try:
            for group in groups:
                where = f"row group {group.row_groups[0].id} of {group.path}"
                n_rows = 0
                for rows in self._rows(group, columns, where, plain):
                    n_rows += len(rows)
                    yield rows
                if n_rows != group.row_groups[0].num_rows:
                    raise SourceError(
                        f"{where} has {n_rows} rows, but {group.row_groups[0].num_rows} by its metadata: the "
                        "file is damaged, or was replaced during training. Write it again, and restart."
                    )
        finally:
            pyarrow().default_memory_pool().release_unused()

    def _rows(
        self, group: Any, columns: list[str], where: str, plain: PlainReader | None
    ) -> Iterator[SampleBlock]:
        """Yield the rows of a row group, read directly if they are plain, else decoded by pyarrow."""
        n_rows = 0
        if plain is not None:
            try:
                for part in plain.rows(group, where):
                    yield part
                    n_rows += len(part)
                return
            except NotPlain:  # pyarrow reads the row group again, and the rows above are skipped
                pass
        options = {"schema": self._schema, "fragment_scan_options": self._scan}
        for rows in _batches(group, columns, self._selection, where, **options):
            start, n_rows = min(n_rows, len(rows)), max(n_rows - len(rows), 0)
            if start < len(rows):
                yield rows.part(start, len(rows)) if start else rows


def _local_scan_options() -> Any:
    """Return options that read local files in small pieces; for networks, whole row groups are faster."""
    from pyarrow.dataset import ParquetFragmentScanOptions

    return ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True, buffer_size=2**16)


def _is_local(dataset: Any) -> bool:
    return getattr(getattr(dataset, "filesystem", None), "type_name", "") == "local"


def _stamp(paths: Sequence[str], selection: Selection) -> str:
    """Return a text of the columns that are counted, and of path, size and time of each file."""
    states = [(path, os.stat(path)) for path in paths]
    files = [(path, state.st_size, state.st_mtime_ns) for path, state in states]
    return repr((selection.y, selection.sample_weight, files))


def _fragments(dataset: Any) -> list[Any] | None:
    """Return the fragments of a dataset; None if it is filtered."""
    try:
        return list(dataset.get_fragments())
    except ValueError:
        return None


def _schema_of_files(
    dataset: Any, fragments: list[Any] | None, columns: list[str], is_all: bool, converts: bool
) -> Any:
    """Return the common schema of all files; without ``converts``, it must be that of the dataset."""
    try:
        files = file_schemas(dataset, fragments)
    except (OSError, ValueError) as error:
        raise unreadable("The columns of the files", error, "Write them again.") from error
    return common_schema(files, dataset.schema, columns, is_all, converts)


def row_groups(fragments: list[Any] | None) -> list[Any] | None:
    """Return a fragment per row group; None if files are not parquet files, or the dataset is filtered."""
    if fragments is None or not all(hasattr(fragment, "split_by_row_group") for fragment in fragments):
        return None
    found = []
    for fragment in fragments:
        try:
            found += [group for group in fragment.split_by_row_group() if group.row_groups[0].num_rows]
        except (OSError, ValueError) as error:  # base classes of Arrow's errors
            raise unreadable(fragment.path, error, "Write it again, or omit it.") from error
    return found


def _batches(
    data: Any, columns: list[str], selection: Selection, where: str, **options: Any
) -> Iterator[SampleBlock]:
    """Yield the rows of a dataset or a fragment; errors name it by ``where``."""
    fewest, most = ROWS_OF_BATCH
    n_rows = min(max(NUMBERS_OF_BATCH // selection.width, fewest), most)
    batches = data.to_batches(
        columns=columns, batch_size=n_rows, use_threads=False, batch_readahead=1, **options
    )
    while True:
        try:
            batch = next(batches, None)
        except (OSError, ValueError) as error:
            what = f"{where[0].upper()}{where[1:]}"
            raise unreadable(what, error, "Write it again, or omit it.") from error
        if batch is None:
            return
        if batch.num_rows:
            yield selection.rows(batch, where)


class TableSource(_ArrowSource):
    """Table in memory."""

    def __init__(self, table: Any, features: Any, y: Any, sample_weight: Any):
        super().__init__(table.schema, features, y, sample_weight)
        self._table = table
        starts = range(0, table.num_rows, ROWS_OF_BLOCK)
        self.sizes = [min(ROWS_OF_BLOCK, table.num_rows - start) for start in starts]

    def blocks(self, numbers: Sequence[int] | None = None, features: bool = True) -> Iterator[SampleBlock]:
        """Yield slices of the table."""
        assert self.sizes is not None
        table = self._table.select(self._selection.columns(features))
        for number in range(len(self.sizes)) if numbers is None else numbers:
            start = number * ROWS_OF_BLOCK
            part = table.slice(start, self.sizes[number])
            yield self._selection.rows(part, f"rows {start} to {start + self.sizes[number] - 1}")


class BatchSource(_ArrowSource):
    """Record batches in order, read by a new reader in each pass."""

    def __init__(self, open_reader: Callable[[], Any], features: Any, y: Any, sample_weight: Any):
        reader = open_reader()
        super().__init__(reader.schema, features, y, sample_weight)
        self._open, self._first, self._schema = open_reader, reader, reader.schema

    def blocks(self, numbers: Sequence[int] | None = None, features: bool = True) -> Iterator[SampleBlock]:
        """Yield the batches of a new reader."""
        reader, self._first = self._first or self._open(), None
        if not reader.schema.equals(self._schema):
            raise SourceError(
                f"The source has the columns {reader.schema.names} in this pass, and had "
                f"{self._schema.names} before: each pass must return the same columns, with the same types."
            )
        number = -1
        try:
            for number, batch in enumerate(reader):
                if batch.num_rows:
                    yield self._selection.rows(batch, f"record batch {number}")
        except (OSError, ValueError) as error:
            if isinstance(error, SourceError):
                raise
            what = f"Record batch {number + 1} of the source"
            raise unreadable(what, error, "Correct or omit it.") from error


class SpooledSource(_ArrowSource):
    """Reader that can be read only once; its rows are copied to a temporary file."""

    def __init__(self, reader: Any, features: Any, y: Any, sample_weight: Any):
        super().__init__(reader.schema, features, y, sample_weight)
        pa, columns = pyarrow(), self._selection.columns()
        self._file = TemporaryFile()
        self.close = self._file.close  # type: ignore[method-assign]
        self.sizes = []
        schema = pa.schema([reader.schema.field(name) for name in columns])
        with pa.ipc.new_file(self._file.path, schema) as writer:
            for batch in reader:
                if batch.num_rows:
                    writer.write_batch(batch.select(columns))
                    self.sizes.append(batch.num_rows)

    def blocks(self, numbers: Sequence[int] | None = None, features: bool = True) -> Iterator[SampleBlock]:
        """Yield the batches of the file."""
        assert self.sizes is not None
        pa = pyarrow()
        with pa.memory_map(self._file.path) as file:
            batches = pa.ipc.open_file(file)
            for number in range(len(self.sizes)) if numbers is None else numbers:
                yield self._selection.rows(batches.get_batch(number), f"record batch {number}")
