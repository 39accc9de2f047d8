"""What kind of change made each version of a dataset, read from Lance's transaction files.

pylance hands several kinds out under one nameless class, so the files are read: protobuf messages with one field for
each kind of operation, of which exactly one is present.
"""

from __future__ import annotations

from collections.abc import Iterator

from lance import LanceDataset

from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.objects.small import Objects

_OPERATIONS = {
    100: "Append",
    101: "Delete",
    102: "Overwrite",
    103: "CreateIndex",
    104: "Rewrite",
    105: "Merge",
    106: "Restore",
    107: "ReserveFragments",
    108: "Update",
    109: "Project",
    110: "UpdateConfig",
    111: "DataReplacement",
    112: "UpdateMemWalState",
    113: "Clone",
    114: "UpdateBases",
}
"""Field number in the message → kind."""
_FIRST_OPERATION = 100
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def operations(objects: Objects, folder: str, dataset: LanceDataset, after: int) -> dict[int, str | None]:
    """Kind of change of each version above `after`, up to the one that is opened; None where it cannot be known.

    `folder` is the dataset's path below the root of the graph.
    """
    kinds: dict[int, str | None] = dict.fromkeys(range(after + 1, int(dataset.version) + 1))
    with reading(f"list transactions of {dataset.uri}"):
        files = dataset.tracked_files(min_version=after + 1).read_all()
    for row in files.select(["version", "path", "type"]).to_pylist():
        if row["type"] == "transaction file" and row["version"] in kinds:
            content = objects.get(f"{folder}/{row['path']}", limit=None)
            kinds[row["version"]] = operation(content) if content is not None else None
    return kinds


def operation(message: bytes) -> str | None:
    """Kind of change that a transaction file records; None when it is not readable as one."""
    try:
        found = [number for number in _fields(message) if number >= _FIRST_OPERATION]
    except (IndexError, ValueError):
        return None
    return _OPERATIONS.get(found[0], f"Operation{found[0]}") if len(found) == 1 else None


def _fields(message: bytes) -> Iterator[int]:
    """Numbers of the top-level fields of a protobuf message. Raises IndexError or ValueError when it is not one."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            _, at = _varint(message, at)
        elif kind == _BYTES:
            length, at = _varint(message, at)
            at += length
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if at > len(message):
            raise ValueError("cut off")
        yield key >> 3


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
