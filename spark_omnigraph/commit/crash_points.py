"""Named places at which a write can be made to stop, so that tests can reopen what it leaves behind.

Off unless a test sets one with `stop_at`; then the first time the place is reached its action runs: raise an exception,
or kill the process for real. Costs one comparison in production.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum


class CrashPoint(Enum):
    """Every step of every writer, in the order in which a commit passes them."""

    STAGE_OPENED = "stage_opened"
    FORKED = "forked"
    PLANNED = "planned"
    STAGED = "staged"
    CHECKED = "checked"
    BOUND = "bound"
    LEASED = "leased"
    ARMED = "armed"
    LANDED_FIRST = "landed_first"
    LANDED_ALL = "landed_all"
    CONFIRMED = "confirmed"
    SCHEMA_LOCKED = "schema_locked"
    SCHEMA_MADE = "schema_made"
    SCHEMA_FILE_STAGED = "schema_file_staged"
    SCHEMA_STAGED = "schema_staged"
    SCHEMA_FILE_NAMED = "schema_file_named"
    SCHEMA_NAMED = "schema_named"
    SCHEMA_UNLOCKED = "schema_unlocked"
    REMOVED_FIRST = "removed_first"
    PUBLISHED = "published"
    RECORDED = "recorded"
    DISARMED = "disarmed"
    HEARTBEAT = "heartbeat"
    UNDO_STARTED = "undo_started"
    UNDO_RESTORED = "undo_restored"
    UNDO_PUBLISHED = "undo_published"
    RECOVERY_CLAIMED = "recovery_claimed"
    RECOVERY_DECIDED = "recovery_decided"
    RECOVERY_BUMPED = "recovery_bumped"
    RECOVERY_FENCED_FIRST = "recovery_fenced_first"
    RECOVERY_FENCED_ALL = "recovery_fenced_all"
    RECOVERY_RESTORED = "recovery_restored"
    RECOVERY_PUBLISHED = "recovery_published"
    RECOVERY_RECORDED = "recovery_recorded"
    RECOVERY_AUDITED = "recovery_audited"
    REALIGN_FENCED = "realign_fenced"
    REALIGN_PUT_BACK = "realign_put_back"
    BRANCH_FREE = "branch_free"
    BRANCH_LOGGED = "branch_logged"
    BRANCH_GONE = "branch_gone"
    TAG_FIRST = "tag_first"
    TAG_ALL = "tag_all"
    TAG_SHOWN = "tag_shown"
    TAG_HIDDEN = "tag_hidden"
    TAG_UNTAGGED_FIRST = "tag_untagged_first"
    EXPIRY_PLANNED = "expiry_planned"
    EXPIRY_ANNOUNCED = "expiry_announced"
    EXPIRY_MANIFESTS_GONE = "expiry_manifests_gone"
    EXPIRY_FIRST_GONE = "expiry_first_gone"
    COPY_STARTED = "copy_started"
    COPY_FIRST = "copy_first"
    COPY_FILES = "copy_files"
    COPY_NAMED = "copy_named"
    COPY_SHOWN = "copy_shown"
    CONVERT_STARTED = "convert_started"
    CONVERT_TABLE = "convert_table"
    CONVERT_MAIN = "convert_main"
    CONVERT_BRANCH = "convert_branch"
    CONVERT_COMPARED = "convert_compared"
    CONVERT_SHOWN = "convert_shown"
    ERASE_DELETED = "erase_deleted"
    ERASE_WRITTEN = "erase_written"
    ERASE_EXPIRED = "erase_expired"
    MAKING_LEASED = "making_leased"
    MAKING_ALONE = "making_alone"
    MAKING_SCHEMA_GONE = "making_schema_gone"
    MAKING_MANIFEST_GONE = "making_manifest_gone"
    MAKING_REMOVED = "making_removed"
    MAKING_STAGES_ENDED = "making_stages_ended"
    MAKING_SCHEMA_WRITTEN = "making_schema_written"
    MAKING_TABLES_CREATED = "making_tables_created"
    MAKING_CREATED = "making_created"


class Crashed(BaseException):
    """A process that stops: no handler of the product may catch it and tidy up."""


_armed: dict[CrashPoint, Callable[[], None]] = {}


def reach(point: CrashPoint) -> None:
    """Marks a place; does nothing unless a test armed it."""
    if _armed and point in _armed:
        _armed.pop(point)()


@contextmanager
def stop_at(point: CrashPoint, action: Callable[[], None] | None = None) -> Iterator[None]:
    """Arms one place during the block; by default `Crashed` is raised there."""
    _armed[point] = action if action is not None else _crash
    try:
        yield
    finally:
        _armed.pop(point, None)


def kill_process() -> None:
    """SIGKILL to this process: nothing after it runs, no handler and no cleanup."""
    os.kill(os.getpid(), signal.SIGKILL)


def _crash() -> None:
    raise Crashed
