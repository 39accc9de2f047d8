"""Where things stand under a graph root (storage format, section 1)."""

from __future__ import annotations

from typing import Literal

from spark_omnigraph.manifest.branches import Branch
from spark_omnigraph.manifest.formats.stamps import WRITTEN

SCHEMA_SOURCE = "_schema.pg"
SCHEMA_IR = "_schema.ir.json"
SCHEMA_STATE = "__schema_state.json"
STAGED = ".staging"
"""Ending of the names of schema files before a change gives them their own."""

MANIFEST = "__manifest"
COMMITS = "_graph_commits.lance"
COMMIT_ACTORS = "_graph_commit_actors.lance"
RECOVERIES = "_graph_commit_recoveries.lance"
RECOVERY = "__recovery"

INDICES = "_indices"
"""Folder of a dataset that holds its index segments, each in a folder of its id."""

MAKING = "x_making~"
"""How the name of the lease in `__recovery/` begins under which a graph is made anew."""

STAGE = "x_stage~"
"""How the names of leases in `__recovery/` begin that stand for a stage and not for an armed write."""

SCHEMA = "x_schema~"
"""How the name of the lease in `__recovery/` begins of who holds the lock of a schema change."""

REMOVAL = "x_remove~"
"""How the name of the object in `__recovery/` begins that tells which versions of tables are to go."""

PUBLISHED = "x_published~"
"""How the name of the object in `__recovery/` begins that tells of a branch's newest publish without a commit."""

CONSUMER = "x_consumer~"
"""How the name of the object in `__recovery/` begins that says where a reader of the change feed stands."""

COPYING = "x_copying"
"""Name of the object in `__recovery/` of a place that a graph is copied to, until the copy is whole."""

SCHEMA_APPLY_LOCK = "__schema_apply_lock__"
"""Lance branch of `__manifest` that a running schema change holds."""

SCHEMA_VERSION_KEY = "omnigraph:internal_schema_version"
SCHEMA_VERSION = WRITTEN

STORAGE_VERSION: Literal["2.2"] = "2.2"

MAX_VERSION = 2**64 - 1
V2_DIGITS = 20
"""How many digits the name of a version's file has, which counts from `MAX_VERSION` down."""


_TOLD_APART = (".json", ".lease", ".claim")
"""Ends of names in `__recovery/` by which sidecars, leases and claims are known, ours and those of other engines."""


def told_path(begin: str, name: str) -> str:
    """Path of the object in `__recovery/` that tells of what somebody gave a name to, such as a branch; whatever the
    name, no engine takes it for a sidecar.
    """
    file = f"{begin}{name.replace('/', '~')}"
    return f"{RECOVERY}/{file}{'~' if file.endswith(_TOLD_APART) else ''}"


def branch_path(location: str, branch: Branch) -> str:
    """Path of the dataset folder that physically holds a branch of a dataset."""
    return location if branch is None else f"{location}/tree/{branch}"


def manifest_file(version: int) -> str:
    """File of a Lance version under its dataset folder, in the naming scheme V2."""
    return f"_versions/{MAX_VERSION - version:0{V2_DIGITS}d}.manifest"
