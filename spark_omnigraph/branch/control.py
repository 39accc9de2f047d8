"""Creating and listing branches (storage format, section 10)."""

from __future__ import annotations

import re
from contextlib import ExitStack, suppress

from spark_omnigraph.branch.fork import clear_debris, making_branch
from spark_omnigraph.commit.claim import STATES_CLAIM, Claim, branch_claim, claimed, source_claim
from spark_omnigraph.commit.contract import read_catalog
from spark_omnigraph.commit.crash_points import CrashPoint, reach
from spark_omnigraph.commit.lost import WholeBranch
from spark_omnigraph.commit.schema.lock import refuse_schema_change
from spark_omnigraph.errors import BadRequestError, BranchExistsError, ConflictError, VersionExpiredError
from spark_omnigraph.manifest.branches import MAIN, Branch, BranchName, display
from spark_omnigraph.manifest.kept import floors_of, tags_of
from spark_omnigraph.redaction import as_shown
from spark_omnigraph.storage.faults import CommitFailed
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import COMMITS, MANIFEST, SCHEMA_APPLY_LOCK, branch_path
from spark_omnigraph.storage.manifest.commit_log import copy_commits, log_up_to
from spark_omnigraph.storage.tables.commits import create_branch as create_lance_branch
from spark_omnigraph.storage.tables.commits import drop_branch

_SEGMENT = re.compile(r"[A-Za-z0-9._-]+")
_NAME_LIMIT = 200


def parse_branch(name: str | None) -> Branch:
    """Checked branch name; None for main. BadRequestError says what a name may look like."""
    if name is None:
        return None
    if not isinstance(name, str):
        raise BadRequestError(f"a branch is named by a text, not {as_shown(name)}")
    text = name.strip()
    if not text:
        raise BadRequestError("branch name cannot be empty")
    if text == MAIN:
        return None
    if text.lstrip("/") == SCHEMA_APPLY_LOCK:
        raise BadRequestError(f"branch name '{text}' is an internal system ref")
    segments = text.split("/")
    good = all(_SEGMENT.fullmatch(s) and s != "." and ".." not in s and not s.endswith(".lock") for s in segments)
    if not good or MAIN in segments or len(text) > _NAME_LIMIT:
        raise BadRequestError(
            f"branch name '{text}' is not usable: use letters, digits, '.', '-', '_' and '/' between segments, no "
            f"segment '.', no '..', no ending '.lock', no segment 'main', at most {_NAME_LIMIT} characters"
        )
    return BranchName(text)


def list_branches(store: GraphStore) -> list[str]:
    """`main`, then the others in name order; internal ones are hidden."""
    names = sorted(n for n in store.branch_names() if n.lstrip("/") != SCHEMA_APPLY_LOCK)
    return [MAIN, *names]


def create_branch(store: GraphStore, name: str, base: str | None = None, version: int | None = None) -> BranchName:
    """Creates a branch that shows what its base shows, now or at a manifest version; tables are not touched. Returns
    the checked name.

    BranchExistsError when it exists or collides with another name, as a path prefix or in case alone, NotFoundError for
    a missing base or version, BadRequestError for a state that the schema does not fit, ConflictError while a schema
    change runs.
    """
    branch, parent = _new_name(name), parse_branch(base)
    with ExitStack() as claims:
        claim = claims.enter_context(claimed(store, branch_claim(branch)))
        if parent is not None:
            claims.enter_context(claimed(store, source_claim(parent)))
        if version is not None:
            claims.enter_context(claimed(store, STATES_CLAIM))
        check_new_branch(store, branch, base, version)
        began_at = _create(WholeBranch(store, parent), branch, version, claim)
        _refuse_expiring(store, parent, began_at, branch, claim)
    return branch


def _refuse_expiring(store: GraphStore, parent: Branch, version: int, branch: BranchName, claim: Claim) -> None:
    """Removes a new branch again that began at a state which an expiry takes, unless a tag keeps it. An expiry says how
    far it goes before it looks for branches, so one that has not seen this one is seen here.
    """
    rows = store.manifest_rows(store.manifest(None))
    kept = {(tag.branch, tag.manifest_version) for tag in tags_of(rows).values()}
    if version >= floors_of(rows).get(MANIFEST, {}).get(parent, 0) or (parent, version) in kept:
        return
    for path in (MANIFEST, COMMITS):
        claim.keep()
        with suppress(CommitFailed):
            drop_branch(store.open_dataset(path), branch)
    raise VersionExpiredError(
        f"version {version} of branch '{display(parent)}' was let expire by a clean-up, so branch '{branch}' cannot "
        "begin there: choose a newer state, or a tag"
    )


def check_new_branch(store: GraphStore, name: str, base: str | None = None, version: int | None = None) -> BranchName:
    """The checked name of a branch that could be created now. Raises what `create_branch` does."""
    branch, parent = _new_name(name), parse_branch(base)
    store.require_branch(parent)
    refuse_schema_change(store)
    _refuse_collision(branch, store.branch_names())
    if version is not None:
        _refuse_other_schema(store, parent, version)
    return branch


def _refuse_other_schema(store: GraphStore, parent: Branch, version: int) -> None:
    """All branches have one schema: a state of before a change of it cannot be a branch."""
    snapshot = store.snapshot(parent, version)
    if snapshot.former is not None:
        raise BadRequestError(
            f"version {version} of branch '{display(parent)}' has another schema: it changed afterwards, and all "
            "branches have one; choose a later state"
        )
    for entity in read_catalog(store).tables():
        entry = snapshot.entries.get(entity.table_key)
        lacking = set(entity.columns) if entry is None else set(entity.columns) - set(store.columns(entry))
        if lacking:
            raise BadRequestError(
                f"version {version} of branch '{display(parent)}' lacks {', '.join(sorted(lacking))} of "
                f"'{entity.table_key}': the schema changed afterwards, and all branches have one; choose a later state"
            )


def _new_name(name: str) -> BranchName:
    branch = parse_branch(name)
    if branch is None:
        raise BadRequestError("branch 'main' exists always and cannot be created")
    return branch


def _refuse_collision(branch: BranchName, names: set[BranchName]) -> None:
    if branch in names:
        raise BranchExistsError(f"branch '{branch}' exists already; use it, or choose another name")
    folded = branch.lower()
    for other in sorted(names):
        # Lance keeps a branch in a folder of its name, and nests them: no two may share one, on whatever disk.
        one = other.lower()
        if one == folded:
            raise BranchExistsError(
                f"branch '{branch}' differs from branch '{other}' in case alone, and a disk that does not look at case "
                "would keep both in one folder; use that one, or choose another name"
            )
        if one.startswith(f"{folded}/") or folded.startswith(f"{one}/"):
            raise BranchExistsError(
                f"branch '{branch}' collides with branch '{other}': one is a path prefix of the other; choose another "
                "name"
            )


def _create(base: WholeBranch, branch: BranchName, version: int | None, claim: Claim) -> int:
    """The manifest version that the branch begins at. Its log comes first, its manifest last: that one makes the branch
    exist, so a death between leaves none.

    The log is read before the manifest, and at most up to its version: a commit that lands meanwhile is in neither, or
    in the manifest alone, whose sentinel tells of it.
    """
    store, parent = base.store, base.branch
    log = store.open_dataset(branch_path(COMMITS, parent))
    manifest = base.manifest(version)
    with making_branch(store, MANIFEST, branch, f"branch '{branch}' could not be created"):
        if store.has_lance_branch(COMMITS, branch):
            claim.keep()
            drop_branch(log, branch)
        for path in (COMMITS, MANIFEST):
            clear_debris(store, path, branch)
        if version is None:
            create_lance_branch(log, branch, parent, int(log.version))
        else:
            up_to, lacking = log_up_to(store.location, parent, version)
            create_lance_branch(log, branch, parent, up_to)
            copy_commits(store.location, branch, lacking)
        reach(CrashPoint.BRANCH_LOGGED)
        claim.keep()
        made = create_lance_branch(manifest, branch, parent, int(manifest.version))
    try:
        # Whoever changes the schema takes its lock first and looks for branches second.
        refuse_schema_change(store)
    except ConflictError:
        for dataset in (made, log):
            claim.keep()
            with suppress(CommitFailed):  # then that one finds it, and stops
                drop_branch(dataset, branch)
        raise
    return int(manifest.version)


def branch_to_write(store: GraphStore, name: str, base: str | None, dry_run: bool) -> tuple[Branch, bool]:
    """Checked name of the branch that a load writes, and whether it was created from `base` just now.

    Without a base it must exist. A dry run creates none: it is checked against the base, which the new one would show.
    """
    branch = parse_branch(name)
    if base is None:
        store.require_branch(branch, "; create it first, or name a base to create it from")
        return branch, False
    if branch is None or branch in store.branch_names():
        return branch, False
    if dry_run:
        return parse_branch(base), False
    try:
        create_branch(store, branch, base)
    except ConflictError:
        if branch not in store.branch_names():
            raise
        return branch, False  # another load made it meanwhile
    return branch, True
