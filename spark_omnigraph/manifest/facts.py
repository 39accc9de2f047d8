"""Facts of a commit as a value: what was done, by whom, to how many rows; bounded, and never needed to read a graph.

They are told with the publish that makes the commit, in a manifest row of its own. Encoding drops what does not fit,
decoding passes over what it does not know: neither a large schema nor a damaged row stands in the way of a write or of
the history.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from typing import Annotated

import msgspec

from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.manifest.rows import Transaction
from spark_omnigraph.redaction import SECRET_NAME, excerpt, redact
from spark_omnigraph.stored import Count
from spark_omnigraph.words import is_text

FACTS_LIMIT = 2048
"""Bytes of the facts of one commit as they are stored."""
METADATA_LIMIT = 1024
"""Bytes of a user's metadata among them, as JSON."""
_NAME_LIMIT = 128
"""Characters of the name of a job, a run, or an application."""
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_DROPPED = ("transaction", "input_digest", "job", "run_id", "app_id")
"""What goes when counts by table are gone already and the rest is still too large, in this order: without a name of a
write of hundreds of letters, or names of jobs far from ASCII, everything fits.
"""
_Rows = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


@dataclass(frozen=True, slots=True)
class RowFacts:
    """Rows of one table that a commit inserted, updated and deleted, and bad ones that it left out."""

    inserted: _Rows = 0
    updated: _Rows = 0
    deleted: _Rows = 0
    bad: _Rows = 0


@dataclass(frozen=True, slots=True)
class CommitOrigin:
    """Who makes a commit and why, as far as the caller says: kept with its facts.

    `metadata` is the caller's own: texts by names of letters, digits, `_`, `.` and `-`. BadRequestError for other
    names, for one that names a secret, and for more than METADATA_LIMIT bytes; secrets in values are hidden.
    """

    job: str | None = None
    run_id: str | None = None
    app_id: str | None = None
    """Of the Spark application."""
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("job", "run_id", "app_id"):
            object.__setattr__(self, name, _short(name, getattr(self, name)))
        object.__setattr__(self, "metadata", checked_metadata(self.metadata))

    def with_metadata(self, metadata: Mapping[str, str] | None) -> CommitOrigin:
        """The same with more metadata, which wins over that of the same name."""
        return self if not metadata else replace(self, metadata={**self.metadata, **checked_metadata(metadata)})


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """What a commit did. Counts are those of the writer's report; `others` sums up tables that did not fit.

    `seconds` is the time from the beginning of the write to its publish.
    """

    operation: str
    mode: str | None = None
    tables: Mapping[str, RowFacts] = field(default_factory=dict)
    others: RowFacts | None = None
    seconds: float | None = None
    origin: CommitOrigin = field(default_factory=CommitOrigin)
    transaction: Transaction | None = None
    """The name of the write where it has one; of a stream the id of the query and the number of the batch."""
    input_digest: str | None = None
    mapping_digest: str | None = None
    """That of the mapping by which tables were read."""

    def to_dict(self) -> dict[str, object]:
        """The facts as JSON values; what is not known is not there."""
        origin, name = self.origin, self.transaction
        body: dict[str, object] = {
            "operation": self.operation,
            "mode": self.mode,
            "tables": {key: asdict(rows) for key, rows in self.tables.items()},
            "others": None if self.others is None else asdict(self.others),
            "seconds": self.seconds,
            "job": origin.job,
            "run_id": origin.run_id,
            "app_id": origin.app_id,
            "transaction": None if name is None else {"app_id": name.app_id, "version": name.version},
            "input_digest": self.input_digest,
            "mapping_digest": self.mapping_digest,
            "metadata": dict(origin.metadata),
        }
        return {name: value for name, value in body.items() if value is not None and value != {}}

    def totals(self) -> RowFacts:
        """Counts of all tables together."""
        return _sum((*self.tables.values(), *([] if self.others is None else [self.others])))


def checked_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """A user's metadata as it is stored. BadRequestError, which names the key, for what cannot be."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise BadRequestError(f"metadata of a commit is a dictionary of texts, not {excerpt(repr(metadata))}")
    for key, value in metadata.items():
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise BadRequestError(
                f"'{excerpt(str(key))}' is no name of metadata: it has up to 64 letters, digits, '_', '.' and '-', and "
                "begins with a letter or '_'"
            )
        if SECRET_NAME.search(key):
            raise BadRequestError(f"metadata '{key}' names a secret, and everybody who reads the graph sees it")
        if not isinstance(value, str) or not is_text(value):
            raise BadRequestError(f"metadata '{key}' must be a text, not {excerpt(repr(value))}")
    found = {key: redact(value) for key, value in metadata.items()}
    size = len(_json(found))
    if size > METADATA_LIMIT:
        raise BadRequestError(
            f"the metadata of a commit has {size:,} bytes as JSON, and at most {METADATA_LIMIT:,} are kept; store the "
            "rest elsewhere, and a reference to it here"
        )
    return found


def user_metadata(text: str) -> dict[str, str]:
    """Metadata from one text: the members of a JSON object, or else the text under the name `userMetadata`."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = text
    return checked_metadata(found if isinstance(found, dict) else {"userMetadata": text})


def encode_facts(facts: CommitFacts) -> str:
    """Facts as JSON of at most FACTS_LIMIT bytes.

    Where that is too little, the tables with the fewest rows are summed up as `others`; then `_DROPPED` goes.
    """
    if len(_json(facts.to_dict())) > FACTS_LIMIT:
        facts = _with_fewer_tables(facts)
    for name in _DROPPED:
        if len(_json(facts.to_dict())) <= FACTS_LIMIT:
            break
        facts = _without(facts, name)
    return _json(facts.to_dict()).decode()


def decode_facts(text: str | None) -> CommitFacts | None:
    """Facts as they were stored; None for what holds none, or is damaged. Unknown members are passed over."""
    if text is None or len(text) > FACTS_LIMIT:
        return None
    try:
        body = msgspec.json.decode(text.encode(), type=_Body)
        return CommitFacts(
            body.operation,
            body.mode,
            body.tables,
            body.others,
            body.seconds,
            CommitOrigin(body.job, body.run_id, body.app_id, body.metadata),
            None if body.transaction is None else Transaction(body.transaction.app_id, body.transaction.version),
            body.input_digest,
            body.mapping_digest,
        )
    except (msgspec.MsgspecError, UnicodeError, RecursionError, BadRequestError):
        return None


class _Name(msgspec.Struct):
    app_id: str
    version: Count


class _Body(msgspec.Struct):
    operation: str
    mode: str | None = None
    tables: dict[str, RowFacts] = {}
    others: RowFacts | None = None
    seconds: float | None = None
    job: str | None = None
    run_id: str | None = None
    app_id: str | None = None
    transaction: _Name | None = None
    input_digest: str | None = None
    mapping_digest: str | None = None
    metadata: dict[str, str] = {}


def _without(facts: CommitFacts, name: str) -> CommitFacts:
    if name == "transaction":
        return replace(facts, transaction=None)
    if name == "input_digest":
        return replace(facts, input_digest=None, mapping_digest=None)
    said = {key: getattr(facts.origin, key) for key in ("job", "run_id", "app_id") if key != name}
    return replace(facts, origin=CommitOrigin(**said, metadata=facts.origin.metadata))


def _with_fewer_tables(facts: CommitFacts) -> CommitFacts:
    """As many tables as fit, those with the most rows first."""
    by_rows = sorted(facts.tables.items(), key=lambda table: (-sum(astuple(table[1])), table[0]))
    kept, left = 0, len(by_rows)
    while kept < left:
        middle = (kept + left + 1) // 2
        if len(_json(_keeping(facts, by_rows, middle).to_dict())) <= FACTS_LIMIT:
            kept = middle
        else:
            left = middle - 1
    return _keeping(facts, by_rows, kept)


def _keeping(facts: CommitFacts, by_rows: Sequence[tuple[str, RowFacts]], count: int) -> CommitFacts:
    left = [rows for _, rows in by_rows[count:]]
    return replace(facts, tables=dict(sorted(by_rows[:count])), others=_sum(left) if left else facts.others)


def _sum(rows: Iterable[RowFacts]) -> RowFacts:
    return RowFacts(*(sum(counts) for counts in zip(*map(astuple, rows), strict=True)))


def _short(name: str, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not is_text(value) or len(value) > _NAME_LIMIT:
        raise BadRequestError(f"{name} is a text of at most {_NAME_LIMIT} characters, not {excerpt(repr(value))}")
    return redact(value)


def _json(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
