"""Options and reports of a load."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction

from spark_omnigraph.bad_rows import BadRowSummary
from spark_omnigraph.draw.card import Card, commit_line, counts_line, figures_grid, phases_grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.embed.counts import PropertyCounts
from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.graph.arguments import CALLABLE, EXECUTOR, SWITCH, WHOLE, require
from spark_omnigraph.progress.meter import Progress
from spark_omnigraph.records.mode import (
    BLOB_SCHEMES,
    REMOTE_SCHEMES,
    DecodeOptions,
    EmbedAtLoad,
    LoadMode,
    Nulls,
    OnDuplicate,
    OnMissing,
    UnknownFields,
    choice,
)
from spark_omnigraph.redaction import as_shown
from spark_omnigraph.storage.uri import DELTA
from spark_omnigraph.write.executor import Executor

ENDS = "ends"


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How a load treats its input.

    `max_bad_rows` is a count, or a fraction of the records when it is a float below 1. `bad_rows` is the path of a
    JSONL report; of a batch of a stream, whose number is `batch`, it is a file of its own and there only when a row is
    bad. `on_duplicate` matters to merge only. `executor` says where the work runs; None picks this process
    for small inputs and local worker processes for others. `blob_schemes` are those of URIs that a blob may refer to;
    a `file:` one would name a file of whoever reads it, and is refused unless it is among them.
    `missing` and `nulls` matter to update only: what it does with an id that is not stored, and what a null means.
    `coerce` reads a text as the value that it spells where a property takes no text; fields of CSV always are.
    """

    max_bad_rows: int | float = 0
    bad_rows: str | None = None
    on_duplicate: OnDuplicate = OnDuplicate.LAST
    unknown_fields: UnknownFields = UnknownFields.REFUSE
    build_indexes: bool = True
    dry_run: bool = False
    progress: Progress | None = None
    executor: Executor | None = None
    batch: int | None = None
    blob_schemes: tuple[str, ...] = REMOTE_SCHEMES
    coerce: bool = False
    missing: OnMissing = OnMissing.ERROR
    nulls: Nulls = Nulls.SET
    embed: EmbedAtLoad = EmbedAtLoad.OFF
    embedder: object = None
    """A function from texts to vectors, an `EmbedConfig`, or None: what the environment names."""
    cache: str | None = None
    """Where answers are kept; None: beside the graph."""
    max_deletes: int | float | None = None
    """How many stored rows mode `changes` may delete, or a share of each type's; None: any number."""
    edge_id: str | Sequence[str] | None = None
    """`ends`: the id of an edge follows from its ends; names of properties, with commas: from these, too."""
    adopt_edges: bool = False
    """Whether such an edge takes the id of a stored one with the same ends, where that has another."""

    def __post_init__(self) -> None:
        require("build_indexes", self.build_indexes, SWITCH)
        require("dry_run", self.dry_run, SWITCH)
        require("coerce", self.coerce, SWITCH)
        for name, kind in (("progress", CALLABLE), ("executor", EXECUTOR), ("batch", WHOLE)):
            if getattr(self, name) is not None:
                require(name, getattr(self, name), kind)
        if self.bad_rows is not None:
            object.__setattr__(self, "bad_rows", _path(self.bad_rows))  # a Path too, whatever its type says
        object.__setattr__(self, "on_duplicate", choice("on_duplicate", self.on_duplicate, OnDuplicate))
        object.__setattr__(self, "unknown_fields", choice("unknown_fields", self.unknown_fields, UnknownFields))
        object.__setattr__(self, "missing", choice("missing", self.missing, OnMissing))
        object.__setattr__(self, "nulls", choice("nulls", self.nulls, Nulls))
        object.__setattr__(self, "blob_schemes", _names(self.blob_schemes))
        object.__setattr__(self, "embed", choice("embed", self.embed, EmbedAtLoad))
        unknown = next((s for s in self.blob_schemes if s not in BLOB_SCHEMES), None)
        if unknown is not None:
            raise BadRequestError(f"blob_schemes may be some of {', '.join(BLOB_SCHEMES)}, got '{unknown}'")
        _check_limit("max_bad_rows", self.max_bad_rows)
        if self.max_deletes is not None:
            _check_limit("max_deletes", self.max_deletes)
        require("adopt_edges", self.adopt_edges, SWITCH)
        if self.edge_id is not None:
            object.__setattr__(self, "edge_id", edge_id_of(self.edge_id))
        elif self.adopt_edges:
            raise BadRequestError("adopt_edges goes with edge_id: without, no id follows from the ends of an edge")

    @property
    def report(self) -> str | None:
        """Where the report goes: of batch 7 `bad-7.jsonl` when `bad.jsonl` is asked for. A Delta table takes all."""
        if self.bad_rows is None or self.batch is None or self.bad_rows.startswith(DELTA):
            return self.bad_rows
        folder, name = os.path.split(self.bad_rows)
        stem, ending = os.path.splitext(name)
        return os.path.join(folder, f"{stem}-{self.batch}{ending}")

    def allows(self, bad: int, records: int) -> bool:
        """Whether so many bad rows among so many records still let the good ones in."""
        return bad <= self.most(records)

    def most(self, records: int) -> int:
        """How many bad rows among so many records still let the good ones in."""
        limit = self.max_bad_rows
        return share_of(limit, records) if isinstance(limit, float) else limit

    def limit_of(self, records: int) -> str:
        """How many bad rows are allowed among so many records, after their number; nothing where none are."""
        limit = self.max_bad_rows
        share = f"{shown_share(limit)} of {records:,} records" if isinstance(limit, float) else f"{limit:,}"
        return f" where {share} may be bad" if limit else ""


def decoding(options: LoadOptions, mode: LoadMode) -> DecodeOptions:
    """What of it decoding is told. BadRequestError for options that another mode has."""
    check_mode(options, mode)
    return DecodeOptions(
        options.unknown_fields,
        options.blob_schemes,
        options.coerce,
        patches=mode is LoadMode.UPDATE,
        nulls=options.nulls,
        changes=mode is LoadMode.CHANGES,
        edge_id=None if options.edge_id is None else edge_id_of(options.edge_id),
    )


def edge_id_of(value: object) -> tuple[str, ...]:
    """The properties from which ids of edges follow beside their ends.

    >>> edge_id_of("ends"), edge_id_of("role, year")
    ((), ('role', 'year'))
    """
    names = value.split(",") if isinstance(value, str) else list(value) if isinstance(value, Iterable) else [value]
    if not all(isinstance(name, str) and name.strip() for name in names):
        raise BadRequestError(f"edge_id is 'ends', or names of properties, not {as_shown(value)}")
    return tuple(dict.fromkeys(name.strip() for name in map(str, names) if name.strip() != ENDS))


def check_mode(options: LoadOptions, mode: LoadMode) -> None:
    """BadRequestError for an option that does nothing in a mode."""
    if options.max_deletes is not None and mode is not LoadMode.CHANGES:
        raise BadRequestError(f"max_deletes goes with mode 'changes': mode '{mode}' deletes no row by its record")
    if mode is LoadMode.UPDATE:
        if options.edge_id is not None:
            raise BadRequestError("edge_id does not go with mode 'update': a patch names its edge by 'id'")
        return
    for name, given in (("missing", options.missing is not OnMissing.ERROR), ("nulls", options.nulls is not Nulls.SET)):
        if given:
            raise BadRequestError(f"'{name}' belongs to mode update, and the mode is {mode}")


def share_of(share: float, rows: int) -> int:
    """So many of the rows at most."""
    # As written, not as stored: 0.29 of 100 records are 29, which no float says.
    return int(Fraction(str(share)) * rows)


def shown_share(share: float) -> str:
    """A share in percent.

    >>> shown_share(0.29)
    '29%'
    """
    return f"{float(Fraction(str(share)) * 100):g}%"


def _check_limit(name: str, limit: object) -> None:
    if isinstance(limit, bool) or not isinstance(limit, (int, float)):
        raise BadRequestError(f"{name} is a number, a count or a share such as 0.05, not {as_shown(limit)}")
    if not limit >= 0 or (isinstance(limit, float) and limit > 1):
        raise BadRequestError(f"{name} must be a count, or a fraction between 0 and 1, got {as_shown(limit)}")


def _path(value: object) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise BadRequestError(f"bad_rows is the path of a file, not {as_shown(value)}")
    text = os.fspath(value)
    if "\0" in text:
        raise BadRequestError(f"bad_rows {as_shown(text)} has a zero byte, which no path has")
    return text


def _names(value: object) -> tuple[object, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise BadRequestError(f"blob_schemes is a list such as ['s3', 'gs'], not {as_shown(value)}")
    return tuple(value)


@dataclass(frozen=True, slots=True)
class TableCounts:
    """Records and rows of one table. `superseded` counts records that a later one with the same id replaced.

    In mode `changes` the `deleted` rows are those that records name, and the `cascaded` ones, which are edges that went
    with a node; `missing` counts records that delete what is not stored.
    """

    read: int = 0
    valid: int = 0
    bad: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    superseded: int = 0
    cascaded: int = 0
    missing: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class LoadReport(Displayed):
    """What a load did. `commit` is None when nothing changed (an empty input, or a dry run)."""

    mode: str
    branch: str
    base_branch: str | None
    branch_created: bool
    commit: str | None
    base_commit: str | None
    manifest_version: int
    tables: Mapping[str, TableCounts]
    bad_rows: BadRowSummary
    phases: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    properties: Mapping[str, PropertyCounts] = field(default_factory=dict)
    """By `Type.property`: vectors that rows lacked and the load was to ask for; empty where it was not."""

    @property
    def nodes_loaded(self) -> dict[str, int]:
        """Accepted records per node type, types without records left out."""
        return self._loaded("node:")

    @property
    def edges_loaded(self) -> dict[str, int]:
        """Accepted records per edge type, types without records left out."""
        return self._loaded("edge:")

    @property
    def left_out(self) -> str | None:
        """A line about the bad rows that were left out; None when there were none."""
        bad = self.bad_rows
        if not bad.total:
            return None
        rules = ", ".join(f"{count} {rule}" for rule, count in bad.per_rule.items())
        where = f"; they are in {bad.report}" if bad.report else ""
        rows = "1 bad row was" if bad.total == 1 else f"{bad.total:,} bad rows were"
        return f"{rows} left out of {f'commit {self.commit}' if self.commit else 'a load'} ({rules}){where}"

    def ingest_result(self) -> dict[str, object]:
        """The reference engine's ingest result."""
        loaded = [{"table_key": k, "rows_loaded": c.valid} for k, c in sorted(self.tables.items()) if c.valid]
        return {
            "branch": self.branch,
            "base_branch": self.base_branch,
            "branch_created": self.branch_created,
            "mode": self.mode,
            "tables": loaded,
        }

    def to_dict(self) -> dict[str, object]:
        body = asdict(self)
        body["bad_rows"] = {"total": self.bad_rows.total, "per_rule": dict(self.bad_rows.per_rule)}
        return body

    def _card(self) -> Card:
        tables = {key: asdict(counts) for key, counts in self.tables.items()}
        bad = f"{self.bad_rows.total:,} bad, " if self.bad_rows.total else ""
        made = f" (new, from {self.base_branch})" if self.branch_created else ""
        return Card(
            "LoadReport",
            f"{self.mode} on {self.branch}{made}: {counts_line(tables.values())}, {bad}{commit_line(self.commit)}",
            {
                "base commit": self.base_commit,
                "manifest version": self.manifest_version,
                "bad rows": self.bad_rows.report,
            },
            without_empty(
                figures_grid("Records and rows", tables),
                figures_grid("Vectors", {name: asdict(each) for name, each in self.properties.items()}, "property"),
                *self.bad_rows.grids(),
                phases_grid(self.phases),
            ),
            self.warnings,
        )

    def _loaded(self, prefix: str) -> dict[str, int]:
        return {k.removeprefix(prefix): c.valid for k, c in self.tables.items() if k.startswith(prefix) and c.valid}
