"""The stamp of the internal format on `__manifest`, and the way up from older ones (storage format, section 7).

Each step may be repeated: it looks at what is there, so a step that died half-way, or that two processes make at the
same time, ends in the same state.
"""

from __future__ import annotations

from collections.abc import Callable

from lance import LanceDataset

from spark_omnigraph.errors import DamagedError, StorageError
from spark_omnigraph.manifest.branches import BranchName
from spark_omnigraph.manifest.formats.stamps import Format, format_of
from spark_omnigraph.storage.faults import CommitFailed, reading
from spark_omnigraph.storage.layout import SCHEMA_VERSION, SCHEMA_VERSION_KEY
from spark_omnigraph.storage.tables.commits import at_version, drop_branch, set_primary_key, set_schema_metadata

KEY_COLUMN = "object_id"
RUN_PREFIX = "__run__"
"""Branches of the manifest that releases before stamp 3 made for each write, and that nothing reads any more."""
_ATTEMPTS = 10


def read_format(dataset: LanceDataset) -> Format:
    """Format of an opened manifest, by its stamp; nothing more is read. UnsupportedFormatError for one not known."""
    schema = dataset.schema
    raw = (schema.metadata or {}).get(SCHEMA_VERSION_KEY.encode())
    return format_of(None if raw is None else raw.decode(errors="replace"), schema.names, str(dataset.uri))


def migrate(dataset: LanceDataset) -> LanceDataset:
    """Brings an opened manifest to the current stamp; the handle to go on with, itself when nothing was to be done.

    Refuses an unknown stamp, and a later one, with UnsupportedFormatError, and a key other than `object_id` with
    DamagedError.
    """
    failure: CommitFailed | None = None
    for _ in range(_ATTEMPTS):
        form = read_format(dataset)
        if not form.is_written:
            raise form.refusal(str(dataset.uri))
        if form.stamp == SCHEMA_VERSION:
            return dataset
        try:
            dataset = _STEPS[form.stamp](dataset)
        except CommitFailed as failed:
            failure = failed  # perhaps somebody else makes the same step: look again
            dataset = _newest(dataset)
    raise StorageError(
        f"storage: '{dataset.uri}' could not be brought to internal schema version {SCHEMA_VERSION} ({failure}); "
        "nothing else has changed, run it again"
    )


def _newest(dataset: LanceDataset) -> LanceDataset:
    with reading(f"open {dataset.uri}"):
        newest = int(dataset.latest_version)
    return at_version(dataset, newest)


def _to_2(dataset: LanceDataset) -> LanceDataset:
    """Rows of the manifest get their key."""
    keys = [field.name() for field in dataset.lance_schema.fields() if field.is_unenforced_primary_key()]
    if not keys:
        dataset = set_primary_key(dataset, KEY_COLUMN)
    elif keys != [KEY_COLUMN]:
        raise DamagedError(
            f"'{dataset.uri}' has the primary key ({', '.join(keys)}) where a manifest has {KEY_COLUMN}: another "
            "program changed it, and writing to this graph would duplicate its rows. Reading goes on (mode 'r'); to "
            "write, put __manifest back from a backup, or export the graph and load that into a new one"
        )
    return set_schema_metadata(dataset, {SCHEMA_VERSION_KEY: "2"})


def _to_3(dataset: LanceDataset) -> LanceDataset:
    """Branches of runs go, those that lie inside or come from another one first."""
    with reading(f"list branches of {dataset.uri}"):
        names = [BranchName(name) for name in dataset.branches.list() if name.lstrip("/").startswith(RUN_PREFIX)]
    failure: CommitFailed | None = None
    for name in sorted(names, key=len, reverse=True):
        try:
            drop_branch(dataset, name)
        except CommitFailed as failed:
            failure = failed  # perhaps another run came from it: that one goes now, this one in the next round
    if failure is not None:
        raise failure
    return set_schema_metadata(dataset, {SCHEMA_VERSION_KEY: "3"})


_STEPS: dict[int, Callable[[LanceDataset], LanceDataset]] = {1: _to_2, 2: _to_3}
"""Stamp → the step that leads away from it."""
