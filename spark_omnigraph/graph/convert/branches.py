"""A branch of a graph of any format, as the same branch of the graph that its main was converted to: made from its
parent, with what it has otherwise in one commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spark_omnigraph.branch.control import create_branch
from spark_omnigraph.commit.contract import Contract
from spark_omnigraph.commit.plan import WriterKind
from spark_omnigraph.graph.read.scan import pin
from spark_omnigraph.graph.restore.restore import stage_difference
from spark_omnigraph.manifest.branches import BranchName, display
from spark_omnigraph.manifest.facts import CommitFacts, CommitOrigin, RowFacts
from spark_omnigraph.manifest.snapshot import Snapshot
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.tables.scan import PinnedTable
from spark_omnigraph.write.attempts import in_attempts
from spark_omnigraph.write.candidates import candidate, capture
from spark_omnigraph.write.executor import LocalExecutor
from spark_omnigraph.write.staged_files import staged_files


def convert_branch(
    source: GraphStore, place: GraphStore, contract: Contract, state: Snapshot, parent: Snapshot, origin: CommitOrigin
) -> None:
    """Makes the branch unless it is there, and gives it the rows of the state where that has others than its parent.

    What is the same already is not written again, so that it can be repeated at any point.
    """
    branch = state.branch
    assert branch is not None
    if branch not in place.branch_names():
        create_branch(place, branch, display(parent.branch))
    sources = {
        key: pin(source, entry) if entry.row_count else None
        for key, entry in state.entries.items()
        if parent.place(key) != state.place(key)
    }
    if sources:
        in_attempts(place, branch, lambda: _attempt(place, contract, branch, sources, origin), lambda _: None)


def _attempt(
    place: GraphStore,
    contract: Contract,
    branch: BranchName,
    sources: Mapping[str, PinnedTable | None],
    origin: CommitOrigin,
) -> None:
    with staged_files(place) as files:
        base = capture(place, branch, contract=contract)
        deltas = dict(stage_difference(place, base, sources, LocalExecutor(1), files))
        changes = {key: delta.change for key, delta in deltas.items() if delta.has_changes}
        counted = {key: deltas[key].counts for key in changes}
        counts = {key: RowFacts(rows.appended, rows.updated, rows.deleted) for key, rows in counted.items()}
        prepared = candidate(place, base, WriterKind.MUTATION, None, changes, set(base.snapshot.entries))
        if not prepared.is_empty:
            files.commit(replace(prepared, facts=CommitFacts("convert", None, counts, None, None, origin)))
