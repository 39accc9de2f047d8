"""Sidecars: `__recovery/<operation id>.json`, version 2 of the storage format (section 6.1).

Version 1 is read too; a newer one, or one that cannot be read, is refused loudly and kept. One whose file has another
name than its operation, as a copy has, counts like any other.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.commit.announced import announced
from spark_omnigraph.commit.plan import PreparedCommit, SchemaWrite, WriterKind
from spark_omnigraph.errors import ConflictError, DamagedError, InternalError, RecoveryRequiredError
from spark_omnigraph.manifest.branches import Branch, stored_branch
from spark_omnigraph.manifest.facts import CommitFacts, decode_facts, encode_facts
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.redaction import excerpt
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import RECOVERY
from spark_omnigraph.stored import Count, decode, refuse_branch, refuse_path

SIDECAR_VERSION = 2
_OPERATION_ID = re.compile(r"[0-9A-Za-z._-]{1,128}")
_STARTED_AT = re.compile(r"[0-9]{1,17}")
"""Microseconds since the epoch, up to the year 5138."""
_WAY_OUT = f"It is kept; if no engine wrote it, move it out of {RECOVERY}/"


@dataclass(frozen=True, slots=True)
class SidecarPin:
    """One table of an armed write. `path` is the dataset's URI without a branch folder."""

    table_key: TableKey
    path: str
    expected: int
    post: int
    confirmed: int | None
    branch: Branch

    @property
    def location(self) -> str:
        """Path of the dataset below the root, whatever the root was called: a URI does not survive a move."""
        return "/".join(self.path.rstrip("/").rsplit("/", 2)[-2:])


@dataclass(frozen=True, slots=True)
class Registration:
    """A table that a schema change adds. `path` is relative to the root of the graph."""

    table_key: TableKey
    path: str
    branch: Branch


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A table that a schema change drops, from which version on."""

    table_key: TableKey
    version: int


@dataclass(frozen=True, slots=True)
class Sidecar:
    """What an armed write intends. The last fields, from `commit_id` on, are ours and absent in those of other engines.

    `name` is that of the file, without its ending.
    """

    name: str
    operation_id: str
    version: int
    started_at: int
    branch: Branch
    actor: str | None
    writer_kind: WriterKind | str
    pins: tuple[SidecarPin, ...]
    merge_source: str | None
    registrations: tuple[Registration, ...]
    tombstones: tuple[Tombstone, ...]
    commit_id: str | None
    schema_hash: str | None
    reads: Mapping[str, int] | None
    transaction: Transaction | None = None
    facts: CommitFacts | None = None
    planned_on: int | None = None
    """Version of the manifest on which a merge, or a schema change of ours, was planned."""
    next_hash: str | None = None
    """Of the schema that a schema change of ours leads to."""
    rewound: Mapping[str, int | None] = field(default_factory=dict)
    """Applications that a restore sets back."""

    @property
    def tables(self) -> frozenset[TableKey]:
        """Keys of all tables that it covers."""
        schema = {r.table_key for r in self.registrations} | {t.table_key for t in self.tombstones}
        return frozenset(pin.table_key for pin in self.pins) | schema

    @property
    def is_ours(self) -> bool:
        """Whether this library wrote it: no other engine records the schema hash."""
        return self.schema_hash is not None

    @property
    def is_schema_change(self) -> bool:
        return self.writer_kind is WriterKind.SCHEMA_APPLY or bool(self.registrations or self.tombstones)


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
        raise ConflictError(
            f"sidecar {path} of '{store.root}' exists already, with another content: nothing has changed, run it again"
        )


def confirm(store: GraphStore, operation_id: str, versions: Mapping[str, int]) -> None:
    """Phase B-confirm of a write with several commits per table: stamps the version that each table has reached.

    Without it recovery undoes the write. Raises RecoveryRequiredError when the sidecar is gone or was changed by
    somebody else: then recovery has taken the write over.
    """
    path = sidecar_path(operation_id)
    content = store.objects.get(path)
    if content is not None:
        keys = {pin.table_key for pin in _parsed(store, operation_id, content).pins}
        if keys != set(versions):
            raise InternalError(f"{path} covers {sorted(keys)}, but {sorted(versions)} were confirmed")
        raw = decode(content, dict[str, Any], path)
        for pin in raw["tables"]:
            pin["confirmed_version"] = versions[pin["table_key"]]
        confirmed = json.dumps(raw, indent=2, ensure_ascii=False).encode()
        if store.objects.swap(path, content, confirmed) or store.objects.get(path) == confirmed:
            return
    raise RecoveryRequiredError(
        f"write {operation_id} was taken over by a recovery before it was confirmed; run recover, which says how it "
        "ended"
    )


def disarm(store: GraphStore, name: str) -> None:
    """Removes a sidecar; a missing one is fine."""
    store.objects.delete(sidecar_path(name))


def look(store: GraphStore, names: Iterable[str] | None = None) -> Pending:
    """All sidecars, or those of these names, readable or not."""
    sidecars: list[Sidecar] = []
    problems: list[str] = []
    for name in announced(store).sidecars if names is None else names:
        try:
            sidecar = read(store, name)
        except RecoveryRequiredError as error:
            problems.append(error.message)
        else:
            sidecars += [sidecar] if sidecar is not None else []
    return Pending(tuple(sidecars), tuple(problems))


def pending(store: GraphStore, names: Iterable[str] | None = None) -> list[Sidecar]:
    """All sidecars in name order, or those of these names. RecoveryRequiredError names every one that cannot be read;
    nobody knows which tables it covers.
    """
    found = look(store, names)
    if found.problems:
        raise RecoveryRequiredError("; ".join(found.problems))
    return list(found.sidecars)


def read(store: GraphStore, name: str) -> Sidecar | None:
    """One sidecar, or None when it is not there (any more). RecoveryRequiredError, which names it, for one that is
    newer or cannot be read.
    """
    try:
        content = store.objects.get(sidecar_path(name))
    except DamagedError as error:
        raise RecoveryRequiredError(f"{error.message.removeprefix('storage: ')}. {_WAY_OUT}") from error
    return None if content is None else _parsed(store, name, content)


def _parsed(store: GraphStore, name: str, content: bytes) -> Sidecar:
    what = f"sidecar {store.root}/{sidecar_path(name)}"
    try:
        version = decode(content, _Version, what, _WAY_OUT).schema_version
        if version > SIDECAR_VERSION:
            raise RecoveryRequiredError(
                f"{what} has version {version}, newer than {SIDECAR_VERSION}: upgrade spark_omnigraph. It is kept."
            )
        return _sidecar(name, decode(content, _SidecarBody, what, _WAY_OUT))
    except DamagedError as error:
        raise RecoveryRequiredError(error.message) from error
    except _Refused as error:
        raise RecoveryRequiredError(f"{what} cannot be used: {error}. {_WAY_OUT}") from error


class _Refused(Exception):  # noqa: N818 - a reason on its way to the error that names the file
    """Why a sidecar of the right shape is not acted on."""


class _Version(msgspec.Struct):
    schema_version: Count


class _PinBody(msgspec.Struct):
    table_key: str
    table_path: str
    expected_version: Count
    post_commit_pin: Count
    confirmed_version: Count | None = None
    table_branch: str | None = None


class _RegistrationBody(msgspec.Struct):
    table_key: str
    table_path: str
    table_branch: str | None = None


class _TombstoneBody(msgspec.Struct):
    table_key: str
    tombstone_version: Count


class _TransactionBody(msgspec.Struct):
    app_id: str
    version: Count
    note: str | None = None
    resets: bool = False


class _SidecarBody(msgspec.Struct):
    """Members of a sidecar; those that begin with `x_` are ours."""

    schema_version: Count
    started_at: str | Count
    branch: str | None
    writer_kind: str
    tables: list[_PinBody]
    operation_id: str | None = None
    actor_id: str | None = None
    merge_source_commit_id: str | None = None
    additional_registrations: list[_RegistrationBody] | None = None
    tombstones: list[_TombstoneBody] | None = None
    x_commit_id: str | None = None
    x_schema_ir_hash: str | None = None
    x_read_expectations: dict[str, Count] | None = None
    x_transaction: _TransactionBody | None = None
    x_facts: Any = None
    """Damaged ones do not stand in the way of a recovery."""
    x_planned_on: Count | None = None
    x_rewound: dict[str, Count | None] = {}
    x_next_schema_ir_hash: str | None = None


def _sidecar(name: str, body: _SidecarBody) -> Sidecar:
    operation_id = name if body.operation_id is None else body.operation_id
    if not _OPERATION_ID.fullmatch(operation_id):
        raise _Refused(f"'{excerpt(operation_id)}' is no operation_id")
    if len({pin.table_key for pin in body.tables}) < len(body.tables):
        raise _Refused("a table is named twice")
    transaction = body.x_transaction
    return Sidecar(
        name=name,
        operation_id=operation_id,
        version=body.schema_version,
        started_at=_microseconds(body.started_at),
        branch=_branch(body.branch, "branch"),
        actor=body.actor_id,
        writer_kind=WriterKind.of(body.writer_kind),
        pins=tuple(_pin(pin) for pin in body.tables),
        merge_source=body.merge_source_commit_id,
        registrations=tuple(_registration(each) for each in body.additional_registrations or ()),
        tombstones=tuple(Tombstone(TableKey(each.table_key), each.tombstone_version) for each in body.tombstones or ()),
        commit_id=body.x_commit_id,
        schema_hash=body.x_schema_ir_hash,
        reads=body.x_read_expectations,
        transaction=None if transaction is None else Transaction(*msgspec.structs.astuple(transaction)),
        facts=decode_facts(body.x_facts) if isinstance(body.x_facts, str) else None,
        planned_on=body.x_planned_on,
        rewound=body.x_rewound,
        next_hash=body.x_next_schema_ir_hash,
    )


def _require(value: str | None, refuse: Callable[[str], str | None], member: str) -> None:
    why = None if value is None else refuse(value)
    if why is not None:
        raise _Refused(f"{member}: {why}")


def _branch(name: str | None, member: str) -> Branch:
    _require(name, refuse_branch, member)
    return stored_branch(name)


def _microseconds(started_at: str | int) -> int:
    text = str(started_at)
    if not _STARTED_AT.fullmatch(text):
        raise _Refused(f"started_at '{excerpt(text)}' is no number of microseconds")
    return int(text)


def _pin(body: _PinBody) -> SidecarPin:
    pin = SidecarPin(
        TableKey(body.table_key),
        body.table_path,
        body.expected_version,
        body.post_commit_pin,
        body.confirmed_version,
        _branch(body.table_branch, f"table_branch of '{excerpt(body.table_key)}'"),
    )
    _require(pin.location, refuse_path, f"table_path of '{excerpt(pin.table_key)}'")
    return pin


def _registration(body: _RegistrationBody) -> Registration:
    path = body.table_path.strip("/")
    _require(path, refuse_path, f"table_path of '{excerpt(body.table_key)}'")
    branch = _branch(body.table_branch, f"table_branch of '{excerpt(body.table_key)}'")
    return Registration(TableKey(body.table_key), path, branch)


def _to_json(store: GraphStore, prepared: PreparedCommit) -> str:
    pins: list[dict[str, object]] = []
    for write in (each for each in prepared.writes if not each.is_new):
        pin: dict[str, object] = {
            "table_key": write.table_key,
            "table_path": store.location.join(write.entry.location),
            "expected_version": write.entry.version,
            "post_commit_pin": write.landing,
        }
        if write.branch is not None:
            pin["table_branch"] = write.branch
        pins.append(pin)
    body: dict[str, object] = {
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
    if prepared.merged is not None:
        body["merge_source_commit_id"] = prepared.merged
        body["x_planned_on"] = prepared.planned_on
    if prepared.schema is not None:
        body |= _of_schema(prepared, prepared.schema)
    if prepared.transaction is not None:
        body["x_transaction"] = asdict(prepared.transaction)
    if prepared.rewound:
        body["x_rewound"] = dict(prepared.rewound)
    if prepared.facts is not None:
        body["x_facts"] = encode_facts(prepared.facts)
    return json.dumps(body, indent=2, ensure_ascii=False)


def _of_schema(prepared: PreparedCommit, schema: SchemaWrite) -> dict[str, object]:
    added = [
        {"table_key": write.table_key, "table_path": write.entry.location} for write in prepared.writes if write.is_new
    ]
    hidden = [{"table_key": key, "tombstone_version": version + 1} for key, version in schema.dropped.items()]
    given = {"additional_registrations": added, "tombstones": hidden}
    own: dict[str, object] = {"x_planned_on": schema.planned_on, "x_next_schema_ir_hash": schema.desired.ir_hash}
    return {**{name: value for name, value in given.items() if value}, **own}
