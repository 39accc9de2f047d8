"""Bytes that a statement may take."""

from __future__ import annotations

from dataclasses import dataclass

from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.redaction import as_shown

MEMORY, SPILL = 2 << 30, 16 << 30
"""Bytes that a statement may take in memory and, sorted or grouped, on the disk."""
LEAST = 16 << 20


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes that a statement may take."""

    memory: int = MEMORY
    spill: int = SPILL

    def __post_init__(self) -> None:
        for name in ("memory", "spill"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < LEAST or value.bit_length() > 62:
                raise BadRequestError(f"{name} is a number of bytes from {LEAST:,} on, not {as_shown(value)}")
