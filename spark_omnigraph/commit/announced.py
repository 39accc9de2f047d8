"""What stands in `__recovery/`, told by the names alone: the one place that lists it.

    <operation>.json         sidecar of an armed write
    <operation>.lease        lease of one
    x_stage~<id>.lease       stage: files are staged that nothing names yet
    x_making~<id>.lease      the graph is made anew
    x_schema~<id>.lease      the schema changes
    x_claim~<name>.claim     claim on a single step
    x_published~<branch>     the newest publish without a commit
    x_consumer~<name>        where a reader of the change feed stands
    x_remove~<operation>     versions that go once a schema change is published

Whoever decides by several of these lists them once, and so sees one state. An object may be gone when it is read.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import CONSUMER, MAKING, PUBLISHED, RECOVERY, REMOVAL, SCHEMA, STAGE

SIDECAR, LEASE, CLAIM = ".json", ".lease", ".claim"
_CLAIM_PREFIX = "x_claim~"


@dataclass(frozen=True, slots=True)
class Announced:
    """Names without their endings, in order; those of claims are what is claimed. `others` are whole file names."""

    sidecars: tuple[str, ...]
    leases: tuple[str, ...]
    stages: tuple[str, ...]
    makings: tuple[str, ...]
    schemas: tuple[str, ...]
    claims: tuple[str, ...]
    notes: tuple[str, ...]
    consumers: tuple[str, ...]
    removals: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def held(self) -> tuple[str, ...]:
        """Names of everything that has a lease object."""
        return (*self.leases, *self.stages, *self.makings, *self.schemas)


def announced(store: GraphStore) -> Announced:
    """Lists `__recovery/`."""
    files = store.objects.list(RECOVERY)
    kinds = [_kind(file) for file in files]

    def of(kind: str) -> tuple[str, ...]:
        return tuple(name for found, name in kinds if found == kind)

    kinds_told = (SIDECAR, LEASE, STAGE, MAKING, SCHEMA, CLAIM, PUBLISHED, CONSUMER, REMOVAL, "")
    return Announced(*map(of, kinds_told))


def claim_path(name: str) -> str:
    """Path of a claim."""
    return f"{RECOVERY}/{_CLAIM_PREFIX}{name}{CLAIM}"


def _kind(file: str) -> tuple[str, str]:
    """What an object is by the name of its file, and its own name."""
    told = next((begin for begin in (PUBLISHED, CONSUMER, REMOVAL) if file.startswith(begin)), None)
    if told is not None:
        return told, file
    if file.endswith(SIDECAR):
        return SIDECAR, file.removesuffix(SIDECAR)
    if file.endswith(LEASE):
        name = file.removesuffix(LEASE)
        return next((begin for begin in (STAGE, MAKING, SCHEMA) if name.startswith(begin)), LEASE), name
    if file.startswith(_CLAIM_PREFIX) and file.endswith(CLAIM):
        return CLAIM, file.removeprefix(_CLAIM_PREFIX).removesuffix(CLAIM)
    return "", file
