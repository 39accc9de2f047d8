"""What tells whether two tables have the same rows, whichever files and order they stand in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

import pyarrow as pa

from spark_omnigraph.catalog.types import EntityType
from spark_omnigraph.records.record_text import record_text

_BYTES = 16


@dataclass(slots=True)
class TableDigest:
    """Rows of a table and the sum, modulo 2^128, of the BLAKE2b hashes of 128 bits of their records."""

    entity: EntityType
    rows: int = 0
    total: int = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Takes rows into account; columns in the order of the type."""
        for text in record_text(self.entity, rows, None):
            self.total += int.from_bytes(blake2b(text.encode(), digest_size=_BYTES).digest(), "big")
        self.rows += rows.num_rows

    @property
    def text(self) -> str:
        """The sum in hexadecimal digits."""
        return f"{self.total % (1 << 8 * _BYTES):0{2 * _BYTES}x}"


def digest_of(entity: EntityType, batches: Iterable[pa.RecordBatch]) -> TableDigest:
    """The digest of all rows."""
    found = TableDigest(entity)
    for batch in batches:
        found.add(batch)
    return found
