"""Up to which version of its rows a property is known to be up to date, so that a run reads what changed since.

A run that looked at all rows and left none behind writes down that version, and a commit. As long as the branch has the
commit in its history, whatever changed a row later gave it a greater version. Under another schema, which may have
changed values without one, for other texts, another model or another line of the table nothing is known.
"""

from __future__ import annotations

import json
from hashlib import sha256

import pyarrow as pa

from spark_omnigraph.commit.plan import Published
from spark_omnigraph.graph.embed.request import EmbedMode, EmbedRequest, EmbedTarget
from spark_omnigraph.graph.read.scan import pin
from spark_omnigraph.manifest.branches import Branch, display
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.manifest.commit_log import has_commit
from spark_omnigraph.storage.tables.scan import newest_row
from spark_omnigraph.write.candidates import Base


def place_of(store: GraphStore, base: Base, target: EmbedTarget) -> str:
    """What the ledger calls the rows of a property; those of a branch that is made anew are others."""
    line = display(base.snapshot.branch) + ("" if base.branch_id is None else f"@{base.branch_id}")
    return f"{store.root}|{line}|{target.entity.table_key}.{target.prop}"


def seen(store: GraphStore, base: Base, request: EmbedRequest, target: EmbedTarget) -> int | None:
    """The version up to which every row is up to date, None where nobody knows."""
    line = base.snapshot.entry(target.entity.table_key).branch
    commits, versions = request.store.recorded(_state(store, base, request, target, line))
    if not len(commits) or not has_commit(store.location, base.snapshot.branch, commits[0].as_py()):
        return None
    return int(versions[0].as_py())


def note_seen(store: GraphStore, base: Base, request: EmbedRequest, target: EmbedTarget, published: Published) -> None:
    """Writes down that a run on `base` left no row of it behind: with what it `published`, where that is all of it."""
    key = target.entity.table_key
    entry = base.snapshot.entry(key)
    commit, version, line = published.commit_id, published.versions.get(key), base.snapshot.branch
    if commit is None or version is None:
        commit, version, line = base.commit, newest_row(pin(store, entry)), entry.branch
    if commit is not None:
        place, model = _state(store, base, request, target, line), request.embedder().model
        request.store.record(place, pa.array([commit]), pa.array([str(version)]), model)


def looks_at_all(request: EmbedRequest) -> bool:
    """Whether a run compares all rows with their texts, and somebody may find it afterwards."""
    is_whole = request.where is None and request.keeps_answers and not request.bounds.dry_run
    return is_whole and request.mode in (EmbedMode.STALE, EmbedMode.ALL)


def _state(store: GraphStore, base: Base, request: EmbedRequest, target: EmbedTarget, line: Branch) -> str:
    entry = base.snapshot.entry(target.entity.table_key)
    compared = (request.embedder().identity, target.dimension, target.columns, target.is_rendered)
    told = json.dumps((base.contract.schema_hash, *compared, entry.location, display(line)))
    return f"{place_of(store, base, target)}|{sha256(told.encode()).hexdigest()}"
