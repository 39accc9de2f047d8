"""Bad rows as data: where a row stands, which rules it breaks, and how many there are of each."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from spark_omnigraph.draw.card import GRID_ROWS, Card, Grid, grid, without_empty
from spark_omnigraph.draw.displayed import Displayed
from spark_omnigraph.redaction import cut
from spark_omnigraph.words import TextEnum


class Rule(TextEnum):
    """Stable names of the rules a bad row can break."""

    INVALID_JSON = "invalid_json"
    INVALID_TEXT = "invalid_text"
    INVALID_ROW = "invalid_row"
    INVALID_ENVELOPE = "invalid_envelope"
    UNKNOWN_TYPE = "unknown_type"
    MISSING_ENDPOINT = "missing_endpoint"
    UNKNOWN_FIELD = "unknown_field"
    WRONG_TYPE = "wrong_type"
    OUT_OF_RANGE = "out_of_range"
    INVALID_DATE = "invalid_date"
    VECTOR_LENGTH = "vector_length"
    INVALID_BLOB = "invalid_blob"
    REQUIRED = "required"
    KEY_MISSING = "key_missing"
    KEY_TOO_LONG = "key_too_long"
    ID_MISMATCH = "id_mismatch"
    ENUM = "enum"
    RANGE = "range"
    CHECK = "check"
    UNIQUE = "unique"
    KEY_DUPLICATE = "key_duplicate"
    KEY_CONFLICT = "key_conflict"
    NOT_STORED = "not_stored"
    ENDPOINT = "endpoint"
    CARDINALITY = "cardinality"
    EMBEDDING = "embedding"


RAW_LIMIT = 2048
"""Characters of a bad record's raw text that a report keeps."""


STORED = "<stored "
"""How the name of the place of a stored row begins, where others have a file."""


MISTAKES = 16
"""Mistakes of one record that are told and counted; further ones show when these are corrected."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One rule that a record breaks, and the member that breaks it."""

    field: str | None
    rule: Rule
    message: str


@dataclass(frozen=True, slots=True)
class BadRow:
    """One refused record: where it stands, which rules it breaks, and its text.

    `line` counts from 1 in the file, `offset` is the byte offset of the line in the (decompressed) file. `field`,
    `rule` and `message` are the first mistake, `further` the others, at most MISTAKES together. `id` is the id that the
    record gives, by its key or outright. A stored row is at `line`, its place in the table, of `<stored node:T>`.
    """

    file: str
    line: int
    offset: int
    record_type: str | None
    field: str | None
    rule: Rule
    message: str
    raw: str
    id: str | None = None
    further: tuple[Mistake, ...] = ()

    @property
    def place(self) -> str:
        """File and line as messages show them; rows of a frame and stored ones, which are in no file, with their id."""
        apart = self.file.startswith(("<partition ", "<table>", STORED))
        named = f" (id '{cut(self.id)}')" if self.id is not None and apart else ""
        return f"{self.file}:{self.line}{named}"

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """All rules that the record breaks."""
        return (Mistake(self.field, self.rule, self.message), *self.further)

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, slots=True, repr=False)
class BadRowSummary(Displayed):
    """Counts of a refused or partly accepted input, and the first bad rows in input order.

    `total` counts rows, `per_rule` mistakes: a row that breaks two rules is one row and two mistakes.
    """

    total: int = 0
    per_rule: dict[str, int] = field(default_factory=dict)
    sample: tuple[BadRow, ...] = ()
    report: str | None = None

    def grids(self, most: int = GRID_ROWS) -> tuple[Grid, ...]:
        """How often each rule is broken, and the first bad rows: where they stand and why, without their own text."""
        rules = sorted(self.per_rule.items(), key=lambda each: (-each[1], each[0]))
        first = ((row, mistake) for row in self.sample for mistake in row.mistakes)
        rows = ((row.place, row.record_type, each.field, str(each.rule), each.message) for row, each in first)
        columns = ("place", "type", "field", "rule", "reason")
        more = max(0, self.total - len(self.sample)) + sum(len(row.mistakes) for row in self.sample)
        return without_empty(
            grid("Bad rows by rule", ("rule", "mistakes"), ((str(rule), count) for rule, count in rules), len(rules)),
            grid("First bad rows", columns, rows, more, most),
        )

    def told(self, limit: str = "") -> str:
        """How many, by which rules, and the first: what a refusal for them says."""
        rules = ", ".join(f"{count} {rule}" for rule, count in self.per_rule.items())
        first = self.sample[0]
        others = f" (and {len(first.further)} more in this row)" if first.further else ""
        more = f" Full report: {self.report}." if self.report else ""
        if self.total > 1 and not more:
            more = " A file of all of them: --bad-rows, in Python bad_rows, in Spark badRowsPath."
        rows = f"{self.total} bad row{'s' if self.total != 1 else ''}"
        return f"{rows}{limit} ({rules}). First: {first.place}: {first.message}{others}.{more}"

    def _card(self) -> Card:
        rows = f"{self.total:,} bad row{'' if self.total == 1 else 's'}"
        rules = ", ".join(f"{rule} {count:,}" for rule, count in self.per_rule.items())
        return Card("BadRowSummary", f"{rows}{f' ({rules})' if rules else ''}", {"report": self.report}, self.grids())
