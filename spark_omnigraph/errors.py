"""The error tree, grouped by what the caller does next.

    OmnigraphError
    ├── InputError                 fix the input; nothing changed           exit 3
    │   ├── UsageError             fix the call or its configuration        exit 2
    │   │   └── EmbeddingConfigError   the embedding provider is not configured, or refuses what it is asked
    │   ├── SchemaParseError       `.pg` text does not parse or is not valid
    │   ├── QueryParseError        `.gq` or SQL text does not parse
    │   ├── ParameterError         a query's parameter has the wrong value
    │   ├── CatalogError           types of the schema contradict each other
    │   ├── BadRequestError        a value, option or name is not acceptable
    │   │   └── UnsupportedFormatError  the graph is of a format that is not known
    │   ├── ConstraintError        data breaks a rule of the schema
    │   ├── BadRowsError           a load was refused; every bad row is named
    │   ├── TooManyDeletesError    changes would delete more rows than they may
    │   ├── QueryTypeError         a query does not fit the schema
    │   ├── QueryEngineError       a query failed while it ran
    │   │   └── LimitError         an answer takes more than it may
    │   └── PolicyError            the caller may not do this
    ├── NotFoundError              graph, branch, type or version is missing exit 6
    ├── ConflictError              somebody else won; safe to run again      exit 4
    │   ├── ExpectedVersionMismatch
    │   ├── TransactionCommittedError  the write names itself, and was committed before
    │   ├── WriterBusyError        a live lease covers the tables
    │   ├── MergeConflictsError    two branches changed the same rows differently
    │   ├── AlreadyInitializedError                                         exit 3
    │   ├── TagExistsError         a tag of this name                       exit 3
    │   ├── BranchExistsError      a branch of this name, or one in its way  exit 3
    │   ├── SchemaFilesError       the schema files contradict each other   exit 3
    │   └── DriftError             tables, manifest and commit log do not fit: repair  exit 5
    ├── RecoveryRequiredError      an interrupted write must be recovered    exit 5
    ├── StorageError               disk, network or object store failed      exit 1
    │   ├── IoError                a file outside the graph
    │   └── DamagedError           something in the graph is not what its place says
    ├── VersionExpiredError        a state of the past was removed (NotFound and Storage)  exit 6
    ├── EmbeddingError             the embedding provider gave no vector     exit 1
    └── InternalError              a bug: please report                      exit 1

Each class has a stable `kind` (codes are only ever added) and the HTTP-style `code` that the reference engine
serves; `to_dict()` is its JSON body. Facts are attributes, and every error survives pickling.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

from spark_omnigraph.bad_rows import BadRowSummary
from spark_omnigraph.draw.card import GRID_ROWS, Card, Grid, grid
from spark_omnigraph.draw.html import card_html
from spark_omnigraph.redaction import redact


class OmnigraphError(Exception):
    """Base of all errors of this package; never raised itself."""

    kind: ClassVar[str] = "error"
    code: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 1
    way_out: ClassVar[str] = "read the message"
    """What the caller does next, in words of the documentation."""
    nothing_landed = False
    """Set where the commit protocol proves it: the files that the write staged are named by nothing."""
    bound: str | None = None
    """The argument that would allow what was refused, with whose name the message ends; `needed`, how much of it."""
    needed = 0

    def __init__(self, message: str) -> None:
        self.message = redact(message)
        super().__init__(self.message)

    def to_dict(self) -> dict[str, object]:
        """JSON body: `error`, `code`, `kind` and the facts of the class."""
        return {"error": self.message, "code": self.code, "kind": self.kind}


class InputError(OmnigraphError):
    """The input must be fixed; nothing changed."""

    kind = "input"
    code = "bad_request"
    exit_code = 3
    way_out = "fix the input and run again; nothing has changed"


class UsageError(InputError):
    """Arguments or configuration are not usable."""

    kind = "usage"
    exit_code = 2
    way_out = "fix the arguments, the configuration or the installation that the message names"


class EmbeddingConfigError(UsageError):
    """No text gets a vector from the embedding provider: the key, the model or the dimension is wrong."""

    kind = "embedding_config"
    way_out = "set the variable or the option that the message names"


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """A byte range of a source text, with its 1-based line and column and the text of that line."""

    start: int
    end: int
    line: int
    column: int
    text: str


class SourceError(InputError):
    """A text of one of the languages is refused; `span` says where. Never raised itself."""

    def __init__(self, message: str, span: SourceSpan | None = None) -> None:
        super().__init__(message)
        self.span = span

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.span)

    def to_dict(self) -> dict[str, object]:
        body = super().to_dict()
        if self.span is not None:
            body["span"] = asdict(self.span)
        return body


class SchemaParseError(SourceError):
    """`.pg` text that does not parse, or breaks a validation rule; `span` says where."""

    kind = "parse"
    way_out = "correct the schema at the place that `span` names"


class QueryParseError(SourceError):
    """`.gq` or SQL text that does not parse; `span` says where."""

    kind = "query_parse"
    way_out = "correct the query at the place that `span` names"


class CatalogError(InputError):
    """Types of one schema contradict each other."""

    kind = "catalog"
    way_out = "make the types of the schema agree"


class BadRequestError(InputError):
    """A value, option, predicate or name is not acceptable."""

    kind = "bad_request"
    way_out = "correct the option, name or value that the message names"


class UnsupportedFormatError(BadRequestError):
    """The stamp of a graph names an internal format that this release does not know, or none; or one that it only reads
    was to be written. Nothing was done.
    """

    kind = "unsupported_format"
    way_out = "convert a graph that is only read; else upgrade, or ingest an export of the release that wrote it"


class ConstraintError(InputError):
    """Data breaks a constraint of the schema (used where no input row can be named)."""

    kind = "constraint"
    way_out = "correct the data that the message names, or the rule in the schema"


class BadRowsError(InputError):
    """A load found bad rows and was refused; the graph is unchanged.

    `summary.report` is the path of the full report when one was asked for.
    """

    kind = "bad_rows"
    way_out = "correct the rows of the report, or allow some with `--max-bad-rows` or `maxBadRows`"

    def __init__(self, message: str, summary: BadRowSummary) -> None:
        super().__init__(message)
        self.summary = summary

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.summary)

    def _repr_html_(self) -> str:
        return card_html(Card(type(self).__name__, self.message, grids=self.summary.grids()))

    def to_dict(self) -> dict[str, object]:
        body = super().to_dict()
        body["bad_rows"] = {
            "total": self.summary.total,
            "per_rule": dict(self.summary.per_rule),
            "report": self.summary.report,
        }
        return body


class TooManyDeletesError(InputError):
    """Changes would delete more stored rows than they may: `deletes` of them; the graph is unchanged."""

    kind = "too_many_deletes"
    way_out = "look whether the input is whole; if so, allow more with `--max-deletes` or `maxDeletes`"

    def __init__(self, message: str, deletes: int) -> None:
        super().__init__(message)
        self.deletes = deletes

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.deletes)

    def to_dict(self) -> dict[str, object]:
        return {**super().to_dict(), "deletes": self.deletes}


class FeedLostError(InputError):
    """The changes of a table that a graph follows do not lead from what it shows to what the table is."""

    kind = "feed_lost"
    way_out = "run it once with `--full`, in Python `full=True`: the whole table is compared, and followed from there"


class QueryTypeError(SourceError):
    """A query does not fit the schema; the message names the rule (`T1` …) where it has a code, `span` says where."""

    kind = "type"
    way_out = "make the query fit the schema; `span` says where"


class ParameterError(InputError):
    """A parameter of a query has a value that its declared type does not accept."""

    kind = "param"
    way_out = "pass a value that the parameter's type takes"


class QueryEngineError(InputError):
    """A query failed while it ran."""

    kind = "query"
    way_out = "look at the values that the message names, and at the query"

    def __init__(self, message: str) -> None:
        super().__init__(message if message.startswith("query: ") else f"query: {message}")


class LimitError(QueryEngineError):
    """An answer takes more than it may: seconds, rows, memory, or room on the disk. Nothing of it counts."""

    kind = "limit"
    way_out = "ask for less, or allow more: the message names the option"


class PolicyError(InputError):
    """The caller may not do this."""

    kind = "policy"
    code = "forbidden"
    way_out = "ask for the permission, or use another account"


class NotFoundError(OmnigraphError):
    """A graph, branch, type, version, commit or file does not exist."""

    kind = "not_found"
    code = "not_found"
    exit_code = 6
    way_out = "correct the name, or make what is missing; the message names the nearest where one is near"


class ConflictError(OmnigraphError):
    """Somebody else won; the same call is safe to run again."""

    kind = "conflict"
    code = "conflict"
    exit_code = 4
    way_out = "run it again"


class ExpectedVersionMismatch(ConflictError):  # noqa: N818 - the name that the reference engine's clients match on
    """A table moved after this write was planned."""

    kind = "expected_version_mismatch"

    def __init__(self, table_key: str, expected: int, actual: int) -> None:
        super().__init__(
            f"stale view of '{table_key}': expected manifest table version {expected} "
            f"but current is {actual} — refresh and retry"
        )
        self.table_key = table_key
        self.expected = expected
        self.actual = actual

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.table_key, self.expected, self.actual)

    def to_dict(self) -> dict[str, object]:
        body = super().to_dict()
        body["manifest_conflict"] = {
            "table_key": self.table_key,
            "expected": self.expected,
            "actual": self.actual,
        }
        return body


class TransactionCommittedError(ConflictError):
    """A write that names itself (an application and a number) was committed before; this one changed nothing."""

    kind = "transaction_committed"
    way_out = "nothing: it is in the graph; give a new write a higher number"

    def __init__(self, app_id: str, version: int, committed: int) -> None:
        super().__init__(
            f"transaction {version} of '{app_id}' was committed before (the last is {committed}); nothing was written"
        )
        self.app_id = app_id
        self.version = version
        self.committed = committed

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.app_id, self.version, self.committed)


class WriterBusyError(ConflictError):
    """Another writer holds a live lease on a table of this write."""

    kind = "writer_busy"
    way_out = "run it again when the other writer has ended; a dead one's lease runs out within minutes"


class AlreadyInitializedError(ConflictError):
    """`init` met a graph that exists. Running it again does not help, so the exit code is that of a refusal."""

    kind = "already_initialized"
    exit_code = 3
    way_out = "use the graph that is there, or replace it: `--force`, in Python `force=True`"

    def __init__(self, uri: str) -> None:
        super().__init__(
            f"graph already initialized at '{uri}'; use it, or replace it with its data: --force, in Python force=True"
        )
        self.uri = uri

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.uri,)


class BranchExistsError(ConflictError):
    """A branch has the name of the one to make, whatever the case, or one of the two is a path prefix of the other.
    Running again does not help, so the exit code is that of a refusal.
    """

    kind = "branch_exists"
    exit_code = 3
    way_out = "use the branch that is there, or choose another name"


class SchemaFilesError(ConflictError):
    """The schema files of a graph contradict each other. Running again does not help, so the exit code is that of a
    refusal.
    """

    kind = "schema_files"
    exit_code = 3
    way_out = "put back the schema file that the message names, from a copy or from a backup of the graph"


class DriftError(ConflictError):
    """Another program committed to a table past the manifest, or the manifest lacks versions that were published.
    It stays so until somebody mends it, so the exit code is that of a graph that must be brought in order first.
    """

    kind = "drift"
    exit_code = 5
    way_out = "run `repair`: it says what the other program did and how to go on, or which versions to put back"


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """One row (or table, when `row_id` is None) on which two branches disagree."""

    table_key: str
    row_id: str | None
    kind: str
    message: str


class MergeConflictsError(ConflictError):
    """Two branches changed the same rows differently, or would break a rule together; nothing was merged.

    `counts` has all conflicts by kind, `conflicts` at most SAMPLE of them.
    """

    kind = "merge_conflicts"
    way_out = "change one of the two branches where they disagree, or decide the conflicts, then merge again"
    SAMPLE = 100
    _NAMED = 3

    def __init__(self, conflicts: Sequence[MergeConflict], counts: Mapping[str, int] | None = None) -> None:
        self.counts = dict(Counter(each.kind for each in conflicts) if counts is None else counts)
        self.conflicts = tuple(conflicts[: self.SAMPLE])
        told = conflicts[: self._NAMED]
        named = [f"{c.table_key}{f':{c.row_id}' if c.row_id is not None else ''} ({c.kind})" for c in told]
        more = sum(self.counts.values()) - len(told)
        super().__init__("merge conflicts: " + "; ".join([*named, f"and {more} more"] if more else named))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.conflicts, self.counts)

    def grids(self, most: int = GRID_ROWS) -> tuple[Grid, ...]:
        """How many conflicts of each kind there are, and the first ones."""
        rows = ((each.table_key, each.row_id, each.kind, each.message) for each in self.conflicts)
        kinds = grid("By kind", ("kind", "conflicts"), self.counts.items(), len(self.counts))
        columns = ("type", "id", "kind", "reason")
        return kinds, grid("First conflicts", columns, rows, sum(self.counts.values()), most)

    def _repr_html_(self) -> str:
        return card_html(Card(type(self).__name__, self.message, grids=self.grids()))

    def to_dict(self) -> dict[str, object]:
        """The first hundred conflicts, and how many there are."""
        body = super().to_dict()
        body["merge_conflicts"] = [asdict(conflict) for conflict in self.conflicts]
        body["conflict_counts"] = self.counts
        return body


class RecoveryRequiredError(OmnigraphError):
    """A write was interrupted after its sidecar was armed; the graph must be recovered first."""

    kind = "recovery_required"
    exit_code = 5
    way_out = "run `recover`, then run it again"


class StorageError(OmnigraphError):
    """Disk, network or object store failed."""

    kind = "storage"
    way_out = "look at the store, the network and the disk, then run it again"


class IoError(StorageError):
    """A file outside the graph could not be read or written."""

    kind = "io"
    way_out = "look at the file that the message names"

    def __init__(self, message: str) -> None:
        super().__init__(message if message.startswith("io: ") else f"io: {message}")


class DamagedError(StorageError):
    """An object or a manifest row of a graph is not what its place says: damaged, or written by a hand that should not.

    Nothing was done by it.
    """

    kind = "damaged"
    way_out = "put the object that the message names back from a backup, or move it away"


class VersionExpiredError(NotFoundError, StorageError):
    """A state of the past was removed by a clean-up; the message names the oldest that can be read."""

    kind = "version_expired"
    way_out = "read a newer state; a tag or a consumer keeps the states that must stay readable"


class TagExistsError(ConflictError):
    """A tag of that name exists already. Running again does not help, so the exit code is that of a refusal."""

    kind = "tag_exists"
    exit_code = 3
    way_out = "choose another name, or delete the tag that has it"


class EmbeddingError(OmnigraphError):
    """The embedding provider gave no vector, although it was asked as often as its configuration says."""

    kind = "embedding"
    way_out = "look at the provider and the network, then run it again"


class InternalError(OmnigraphError):
    """A broken invariant: a bug. A damaged graph is a DamagedError."""

    kind = "internal"
    way_out = "report it, with the message and, from `--log-level debug`, the stack"


def is_panic(error: BaseException) -> bool:
    """Libraries in Rust give up with an exception that is no Exception, of a module nobody can import."""
    return type(error).__name__ == "PanicException"
