"""Sidecars: `__recovery/<operation id>.json`, version 2 of the storage format (section 6.1)."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from spark_omnigraph.commit.plan import PreparedCommit
from spark_omnigraph.errors import ConflictError, RecoveryRequiredError
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import RECOVERY

SIDECAR_VERSION = 2


@dataclass(frozen=True, slots=True)
class PendingSidecar:
    """What other writers need to know of a sidecar that is there: who wrote it and which tables it covers."""

    operation_id: str
    branch: str | None
    writer_kind: str
    tables: frozenset[str]


def sidecar_path(operation_id: str) -> str:
    """Path of the sidecar of a write."""
    return f"{RECOVERY}/{operation_id}.json"


def arm(store: GraphStore, prepared: PreparedCommit) -> None:
    """Makes the sidecar durable, only if none of that name exists."""
    path = sidecar_path(prepared.identity.operation_id)
    if not store.objects.create(path, _to_json(store, prepared).encode()):
        raise ConflictError(f"sidecar {path} exists already; an operation id was used twice")


def disarm(store: GraphStore, operation_id: str) -> None:
    """Removes a sidecar; a missing one is fine."""
    store.objects.delete(sidecar_path(operation_id))


def pending(store: GraphStore) -> list[PendingSidecar]:
    """All sidecars in name order. One that cannot be read raises RecoveryRequiredError and stays where it is."""
    found = (_read(store, name) for name in store.objects.list(RECOVERY) if name.endswith(".json"))
    return [sidecar for sidecar in found if sidecar is not None]


def _read(store: GraphStore, name: str) -> PendingSidecar | None:
    """One sidecar; None when it was deleted since it was listed."""
    content = store.objects.get(f"{RECOVERY}/{name}")
    if content is None:
        return None
    where = f"{store.root}/{RECOVERY}/{name}"
    try:
        raw = json.loads(content)
        version = int(raw["schema_version"])
    except (ValueError, KeyError, TypeError) as error:
        raise RecoveryRequiredError(f"sidecar {where} cannot be read ({error}); it was kept") from error
    if version > SIDECAR_VERSION:
        raise RecoveryRequiredError(
            f"sidecar {where} has version {version}, newer than {SIDECAR_VERSION}: upgrade spark_omnigraph. It is kept."
        )
    try:
        tables = frozenset(str(pin["table_key"]) for pin in raw["tables"])
        tables |= {str(r["table_key"]) for r in raw.get("additional_registrations", ())}
        tables |= {str(t["table_key"]) for t in raw.get("tombstones", ())}
        return PendingSidecar(name.removesuffix(".json"), raw["branch"], str(raw["writer_kind"]), tables)
    except (KeyError, TypeError) as error:
        raise RecoveryRequiredError(f"sidecar {where} lacks {error}; it was kept") from error


def _to_json(store: GraphStore, prepared: PreparedCommit) -> str:
    pins: list[dict[str, object]] = []
    for write in prepared.writes:
        pin: dict[str, object] = {
            "table_key": write.table_key,
            "table_path": store.location.join(write.entry.location),
            "expected_version": write.entry.version,
            "post_commit_pin": write.entry.version + 1,
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
    return json.dumps(body, indent=2, ensure_ascii=False)
