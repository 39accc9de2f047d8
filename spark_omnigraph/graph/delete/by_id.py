"""Deleting by id: rows of any types in one commit, and with nodes the edges that touch them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.catalog.types import EdgeType
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.plan import WriterKind
from spark_omnigraph.draw.card import Card, commit_line, counts_line, figures_grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.delete.cascade import Deletion
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.manifest.facts import CommitFacts, CommitOrigin, RowFacts
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.records.legible import legible, shown_bytes
from spark_omnigraph.redaction import as_shown
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.write.attempts import in_attempts
from spark_omnigraph.write.candidates import candidate, capture, fork_first
from spark_omnigraph.write.clock import Clock
from spark_omnigraph.write.staged_files import StagedFiles, staged_files

Ids = Mapping[str, pa.Array]
"""Ids to delete by table key, texts in any layout of Arrow; repeats count once."""


@dataclass(frozen=True, slots=True)
class DeleteRequest:
    """What the caller asked for; `branch` None is main."""

    ids: Ids
    branch: Branch = None
    actor: str | None = None
    transaction: Transaction | None = None
    origin: CommitOrigin = field(default_factory=CommitOrigin)


@dataclass(frozen=True, slots=True, repr=False)
class DeleteReport(Displayed):
    """What a deletion did. `deleted` counts rows by table key, edges that lost an end included; `missing` ids were not
    stored. `commit` is None when nothing was to be deleted.
    """

    branch: str
    commit: str | None
    manifest_version: int
    deleted: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def _card(self) -> Card:
        keys = {*self.deleted, *self.missing}
        tables = {key: {"deleted": self.deleted.get(key, 0), "missing": self.missing.get(key, 0)} for key in keys}
        return Card(
            "DeleteReport",
            f"on {self.branch}: {counts_line(tables.values(), ('deleted', 'missing'))}, {commit_line(self.commit)}",
            {"manifest version": self.manifest_version},
            without_empty(figures_grid("Rows", tables)),
            self.warnings,
        )


def delete_ids(store: GraphStore, request: DeleteRequest) -> DeleteReport:
    """Deletes rows by id in one commit. Ids that are not stored are counted, not refused.

    BadRequestError for a null id and for ids that are no texts, NotFoundError for a type or branch that does not exist,
    ConflictError after bounded attempts, TransactionCommittedError for a named write that was committed before.
    """
    request = replace(request, ids={key: _texts(key, ids) for key, ids in request.ids.items()})
    store.require_branch(request.branch, "; create it first")
    clock = Clock()

    def attempt() -> DeleteReport:
        with staged_files(store) as files:
            return _attempt(store, request, clock, files)

    # Which rows are meant does not depend on what others did.
    return in_attempts(store, request.branch, attempt, lambda _: request.ids.keys())


def id_array(table: str, ids: Iterable[str]) -> pa.Array:
    """Ids to delete as a column. BadRequestError for what is no list of texts."""
    if isinstance(ids, str):
        raise BadRequestError(f"ids of '{table}' to delete must be a list: write ['{ids}'] for one id")
    if isinstance(ids, (pa.Array, pa.ChunkedArray)):
        return ids
    if not isinstance(ids, Iterable):
        raise BadRequestError(f"ids of '{table}' to delete must be a list of texts, not {as_shown(ids)}")
    try:
        return pa.array(ids, pa.string())
    except (pa.ArrowTypeError, pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise BadRequestError(f"ids of '{table}' to delete must be texts: {error}") from error


def _texts(key: str, ids: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Distinct ids as plain strings, whichever layout of text they came in."""
    parts = ids.chunks if isinstance(ids, pa.ChunkedArray) else [ids]
    first, plain = 0, []
    for part in parts:
        plain.append(_plain_texts(key, part, first))
        first += len(part)
    return pc.unique(pa.chunked_array(plain, pa.string()))


def _plain_texts(key: str, ids: pa.Array, first: int) -> pa.Array:
    kind = ids.type.value_type if pa.types.is_dictionary(ids.type) else ids.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if not (is_text or pa.types.is_null(kind)):
        raise BadRequestError(f"ids of '{key}' to delete must be texts, not {kind}")
    ids, illegible = legible(ids)
    if illegible is not None and illegible.any():
        row = int(np.flatnonzero(illegible)[0])
        raise BadRequestError(
            f"an id of '{key}' to delete, row {first + row + 1}, is no UTF-8 text: '{shown_bytes(ids[row].as_py())}'"
        )
    if pa.types.is_dictionary(ids.type):
        # Arrow decodes no dictionary of string views.
        ids = ids.dictionary.cast(pa.string()).take(ids.indices)
    texts = ids.cast(pa.string())
    if texts.null_count:
        raise BadRequestError(f"{texts.null_count} ids of '{key}' to delete are null; filter them out first")
    return texts


def _attempt(store: GraphStore, request: DeleteRequest, clock: Clock, files: StagedFiles) -> DeleteReport:
    base = capture(store, request.branch, request.transaction)
    snapshot, catalog = base.snapshot, base.contract.catalog
    deletion = Deletion(store, catalog, snapshot)
    missing = {}
    for key, ids in sorted(request.ids.items()):
        entity = catalog.require(key)
        removed = deletion.ids(entity, ids)
        missing[key] = len(ids) - (removed.edges if isinstance(entity, EdgeType) else removed.nodes)
    changes = deletion.changes()
    reach(CrashPoint.CHECKED)
    fork_first(store, snapshot, changes)
    prepared = candidate(store, base, WriterKind.MUTATION, request.actor, changes, deletion.looked_at)
    counts = {key: RowFacts(deleted=change.masked) for key, change in sorted(changes.items())}
    facts = CommitFacts("delete", None, counts, None, clock.total(), request.origin, request.transaction)
    prepared = replace(prepared, transaction=request.transaction, facts=facts)
    published = base.unchanged if prepared.is_empty else files.commit(prepared)
    return DeleteReport(
        branch=display(request.branch),
        commit=published.commit_id,
        manifest_version=published.manifest_version,
        deleted={key: change.masked for key, change in changes.items()},
        missing=missing,
        warnings=published.warnings,
    )
