"""Sidecars: `__recovery/<operation id>.json`, version 2 of the storage format (section 6.1).

Version 1 is read too; a newer one, or one that cannot be read, is refused loudly and kept. One whose file has another
name than its operation, as a copy has, counts like any other.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from spark_omnigraph.commit.plan import PreparedCommit
from spark_omnigraph.errors import ConflictError, InternalError, RecoveryRequiredError
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import RECOVERY

SIDECAR_VERSION = 2
_OPERATION_ID = re.compile(r"[0-9A-Za-z._-]+")


@dataclass(frozen=True, slots=True)
class SidecarPin:
    """One table of an armed write. `path` is the dataset's URI without a branch folder."""

    table_key: str
    path: str
    expected: int
    post: int
    confirmed: int | None
    branch: str | None


@dataclass(frozen=True, slots=True)
class Registration:
    """A table that a schema change adds. `path` is relative to the root of the graph."""

    table_key: str
    path: str
    branch: str | None


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A table that a schema change drops, from which version on."""

    table_key: str
    version: int


@dataclass(frozen=True, slots=True)
class Sidecar:
    """What an armed write intends. The last four fields are ours and absent in those of other engines.

    `name` is that of the file, without its ending.
    """

    name: str
    operation_id: str
    version: int
    started_at: int
    branch: str | None
    actor: str | None
    writer_kind: str
    pins: tuple[SidecarPin, ...]
    merge_source: str | None
    registrations: tuple[Registration, ...]
    tombstones: tuple[Tombstone, ...]
    commit_id: str | None
    schema_hash: str | None
    reads: Mapping[str, int] | None
    transaction: Transaction | None = None

    @property
    def tables(self) -> frozenset[str]:
        """Keys of all tables that it covers."""
        schema = {r.table_key for r in self.registrations} | {t.table_key for t in self.tombstones}
        return frozenset(pin.table_key for pin in self.pins) | schema

    @property
    def is_ours(self) -> bool:
        """Whether this library wrote it: no other engine records the schema hash."""
        return self.schema_hash is not None

    @property
    def is_schema_change(self) -> bool:
        return self.writer_kind == "SchemaApply" or bool(self.registrations or self.tombstones)


@dataclass(frozen=True, slots=True)
class Pending:
    """What stands in `__recovery/`: sidecars in the order of their names, and why others cannot be read."""

    sidecars: tuple[Sidecar, ...]
    problems: tuple[str, ...]


def sidecar_path(name: str) -> str:
    """Path of a sidecar by the name of its file, which is the operation id of the write."""
    return f"{RECOVERY}/{name}.json"


def arm(store: GraphStore, prepared: PreparedCommit) -> None:
    """Makes the sidecar durable, only if none of that name exists (but ours, when an answer was lost)."""
    path = sidecar_path(prepared.identity.operation_id)
    content = _to_json(store, prepared).encode()
    if not store.objects.create(path, content) and store.objects.get(path) != content:
        raise ConflictError(f"sidecar {path} exists already; an operation id was used twice")


def confirm(store: GraphStore, operation_id: str, versions: Mapping[str, int]) -> None:
    """Phase B-confirm of a write with several commits per table: stamps the version that each table has reached.

    Without it recovery undoes the write. Raises RecoveryRequiredError when the sidecar is gone or was changed by
    somebody else: then recovery has taken the write over.
    """
    path = sidecar_path(operation_id)
    content = store.objects.get(path)
    if content is not None:
        raw = json.loads(content)
        keys = {pin["table_key"] for pin in raw["tables"]}
        if keys != set(versions):
            raise InternalError(f"{path} covers {sorted(keys)}, but {sorted(versions)} were confirmed")
        for pin in raw["tables"]:
            pin["confirmed_version"] = versions[pin["table_key"]]
        confirmed = json.dumps(raw, indent=2, ensure_ascii=False).encode()
        if store.objects.swap(path, content, confirmed) or store.objects.get(path) == confirmed:
            return
    raise RecoveryRequiredError(f"write {operation_id} was taken over by a recovery before it was confirmed")


def disarm(store: GraphStore, name: str) -> None:
    """Removes a sidecar; a missing one is fine."""
    store.objects.delete(sidecar_path(name))


def look(store: GraphStore) -> Pending:
    """All sidecars, readable or not. Files that do not end in `.json` are no sidecars."""
    sidecars: list[Sidecar] = []
    problems: list[str] = []
    for file in store.objects.list(RECOVERY):
        if file.endswith(".json"):
            try:
                sidecar = read(store, file.removesuffix(".json"))
            except RecoveryRequiredError as error:
                problems.append(error.message)
            else:
                sidecars += [sidecar] if sidecar is not None else []
    return Pending(tuple(sidecars), tuple(problems))


def pending(store: GraphStore) -> list[Sidecar]:
    """All sidecars in name order. RecoveryRequiredError names every one that cannot be read; nobody knows which
    tables it covers.
    """
    found = look(store)
    if found.problems:
        raise RecoveryRequiredError("; ".join(found.problems))
    return list(found.sidecars)


def read(store: GraphStore, name: str) -> Sidecar | None:
    """One sidecar, or None when it is not there (any more)."""
    content = store.objects.get(sidecar_path(name))
    if content is None:
        return None
    where = f"{store.root}/{sidecar_path(name)}"
    way_out = f"It was kept; if no engine wrote it, move it out of {RECOVERY}/"
    try:
        raw = json.loads(content)
        version = int(raw["schema_version"])
    except (ValueError, KeyError, TypeError) as error:
        raise RecoveryRequiredError(f"sidecar {where} cannot be read ({error}). {way_out}") from error
    if version > SIDECAR_VERSION:
        raise RecoveryRequiredError(
            f"sidecar {where} has version {version}, newer than {SIDECAR_VERSION}: upgrade spark_omnigraph. It is kept."
        )
    try:
        return _parse(name, version, raw)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecoveryRequiredError(f"sidecar {where} lacks or garbles {error}. {way_out}") from error


def _parse(name: str, version: int, raw: Mapping[str, object]) -> Sidecar:
    reads = raw.get("x_read_expectations")
    operation_id = str(raw.get("operation_id", name))
    if not _OPERATION_ID.fullmatch(operation_id):
        raise ValueError("operation_id")
    return Sidecar(
        name=name,
        operation_id=operation_id,
        version=version,
        started_at=int(str(raw["started_at"])),
        branch=_text(raw["branch"]),
        actor=_text(raw.get("actor_id")),
        writer_kind=str(raw["writer_kind"]),
        pins=tuple(_pin(pin) for pin in _records(raw["tables"])),
        merge_source=_text(raw.get("merge_source_commit_id")),
        registrations=tuple(_registration(each) for each in _records(raw.get("additional_registrations"))),
        tombstones=tuple(
            Tombstone(str(each["table_key"]), int(str(each["tombstone_version"])))
            for each in _records(raw.get("tombstones"))
        ),
        commit_id=_text(raw.get("x_commit_id")),
        schema_hash=_text(raw.get("x_schema_ir_hash")),
        reads={str(k): int(v) for k, v in reads.items()} if isinstance(reads, dict) else None,
        transaction=_transaction(raw.get("x_transaction")),
    )


def _transaction(raw: object) -> Transaction | None:
    if raw is None:
        return None
    if not isinstance(raw, dict):
        raise TypeError("x_transaction")
    return Transaction(str(raw["app_id"]), int(raw["version"]))


def _pin(raw: Mapping[str, object]) -> SidecarPin:
    confirmed = raw.get("confirmed_version")
    return SidecarPin(
        str(raw["table_key"]),
        str(raw["table_path"]),
        int(str(raw["expected_version"])),
        int(str(raw["post_commit_pin"])),
        int(str(confirmed)) if confirmed is not None else None,
        _text(raw.get("table_branch")),
    )


def _registration(raw: Mapping[str, object]) -> Registration:
    path = str(raw["table_path"]).strip("/")
    if ".." in path.split("/"):
        raise ValueError("table_path")
    return Registration(str(raw["table_key"]), path, _text(raw.get("table_branch")))


def _records(value: object) -> list[Mapping[str, object]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise TypeError("a list of objects")
    return value


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _to_json(store: GraphStore, prepared: PreparedCommit) -> str:
    pins: list[dict[str, object]] = []
    for write in prepared.writes:
        pin: dict[str, object] = {
            "table_key": write.table_key,
            "table_path": store.location.join(write.entry.location),
            "expected_version": write.entry.version,
            "post_commit_pin": write.landing,
        }
        if write.branch is not None:
            pin["table_branch"] = write.branch
        pins.append(pin)
    body = {
        "schema_version": SIDECAR_VERSION,
        "operation_id": prepared.identity.operation_id,
        "started_at": str(time.time_ns() // 1000),
        "branch": prepared.branch,
        "actor_id": prepared.identity.actor,
        "writer_kind": prepared.identity.writer_kind,
        "tables": pins,
        "x_commit_id": prepared.identity.commit_id,
        "x_schema_ir_hash": prepared.schema_hash,
        "x_read_expectations": dict(sorted(prepared.reads.items())),
    }
    if prepared.transaction is not None:
        body["x_transaction"] = {"app_id": prepared.transaction.app_id, "version": prepared.transaction.version}
    return json.dumps(body, indent=2, ensure_ascii=False)
