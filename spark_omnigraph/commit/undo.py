"""A writer takes back what it has landed, while it holds its lease."""

from __future__ import annotations

from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.ending import undoing
from spark_omnigraph.commit.landing import landed_update
from spark_omnigraph.commit.lost import WholeBranch
from spark_omnigraph.commit.plan import LandedTable, PreparedCommit
from spark_omnigraph.commit.publisher import Publication, publish
from spark_omnigraph.errors import OmnigraphError, RecoveryRequiredError, StorageError
from spark_omnigraph.manifest.branches import display
from spark_omnigraph.storage.faults import CommitFailed
from spark_omnigraph.storage.tables.commits import CONTENT_KEY, FENCE_KEY, restore


def undo(whole: WholeBranch, prepared: PreparedCommit, landed: tuple[LandedTable, ...]) -> None:
    """Gives every landed table its published content back and publishes those versions, so that HEAD = pin again."""
    reach(CrashPoint.UNDO_STARTED)
    identity = prepared.identity
    try:
        updates = []
        for table in landed:
            # Our change may have landed over somebody's commit: then the version below ours is theirs to keep.
            below = table.version - table.bound.write.change.versions
            properties = {FENCE_KEY: identity.operation_id, CONTENT_KEY: str(below)}
            restored = restore(table.dataset, below, properties)
            if int(restored.version) != table.version + 1:
                raise StorageError(f"storage: another commit on '{table.bound.write.table_key}' came between")
            if below == table.bound.write.entry.version and not table.bound.write.is_new:
                entry = table.bound.write.entry
                updates.append(landed_update(whole.store, LandedTable(table.bound, restored), entry.row_count))
        reach(CrashPoint.UNDO_RESTORED)
        if updates:
            pins = {table.bound.write.table_key: table.bound.write.entry.version for table in landed}
            expected: dict[str, int] = {update.table_key: pins[update.table_key] for update in updates}
            operation = undoing(identity.operation_id)
            publish(whole, Publication(tuple(updates), expected, operation, None, identity.actor))
    except RecoveryRequiredError:
        raise
    except (CommitFailed, OmnigraphError) as failure:
        raise unknown_outcome(prepared, failure) from failure
    reach(CrashPoint.UNDO_PUBLISHED)


def unknown_outcome(prepared: PreparedCommit, failure: BaseException) -> RecoveryRequiredError:
    """The error for a write that recovery decides on."""
    return RecoveryRequiredError(
        f"write {prepared.identity.operation_id} on branch '{display(prepared.branch)}' was interrupted and its "
        f"outcome is not known ({failure}). Its sidecar was kept: run recover, which decides and says how it ended"
    )
