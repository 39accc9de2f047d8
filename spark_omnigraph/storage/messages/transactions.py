"""What kind of change made each version of a dataset, read from Lance's transaction files.

pylance hands several kinds out under one nameless class, so the files are read: protobuf messages with one field for
each kind of operation, of which exactly one is present.
"""

from __future__ import annotations

from lance import LanceDataset

from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.messages.members import members
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
        found = [each.number for each in members(message) if each.number >= _FIRST_OPERATION]
    except (IndexError, ValueError):
        return None
    return _OPERATIONS.get(found[0], f"Operation{found[0]}") if len(found) == 1 else None
