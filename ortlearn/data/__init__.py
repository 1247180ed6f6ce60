"""Data larger than memory: sources that yield blocks of rows, chunks of equal size, and prefetching."""

from .chunks import Turns, chunk_size, cut, whole_blocks
from .opening import columns_of_files, is_source, open_source, parquet_columns, parquet_files
from .prefetch import prefetched
from .rows import Rows, rows_of, weights_fault
from .sources import Source
from .tables import Table

__all__ = [
    "Rows",
    "Source",
    "Table",
    "Turns",
    "chunk_size",
    "columns_of_files",
    "cut",
    "is_source",
    "open_source",
    "parquet_columns",
    "parquet_files",
    "prefetched",
    "rows_of",
    "weights_fault",
    "whole_blocks",
]
