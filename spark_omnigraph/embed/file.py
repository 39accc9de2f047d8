"""Vectors for the records of a file: JSON lines in, the same lines out, with a vector in those that are chosen.

What is not changed is written as it was read, numbers as they were spelt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from spark_omnigraph.embed.counts import PropertyCounts, took
from spark_omnigraph.embed.embedder import Embedder, Role, ask
from spark_omnigraph.embed.record_texts import Selector, record_text, rendered
from spark_omnigraph.errors import BadRequestError, EmbeddingError
from spark_omnigraph.words import TextEnum

_TOGETHER = 1024
"""Rows whose texts are asked for together."""
_NAMED = 3
_Members = dict[str, msgspec.Raw]
_MEMBERS = msgspec.json.Decoder(_Members)


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of one type: which field takes the vector, and which ones make the text."""

    target: str
    fields: tuple[str, ...]


class FileSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to embed of which type."""

    dimension: int
    types: dict[str, Target]


class FileMode(TextEnum):
    """Which chosen rows get a vector, or lose theirs."""

    FILL_MISSING = "fill_missing"
    REEMBED_ALL = "reembed_all"
    REEMBED_SELECTED = "reembed_selected"
    CLEAN = "clean"


@dataclass(slots=True)
class FileCounts:
    """What became of the rows so far."""

    rows: int = 0
    selected_rows: int = 0
    wanted_rows: int = 0
    """Those that are to get a vector."""
    embedded_rows: int = 0
    cleaned_rows: int = 0
    failed_rows: int = 0
    distinct: int = 0
    """Texts, each once among those that are asked for together."""
    requests: int = 0
    retries: int = 0
    tokens: int | None = None
    """The provider's own count, None where it says none."""
    bytes: int = 0
    """Of these texts, in UTF-8."""
    failures: list[str] = field(default_factory=list)
    """What the first ones that failed say."""

    @property
    def of_all(self) -> PropertyCounts:
        """What asking takes, as it is counted elsewhere."""
        return PropertyCounts(
            distinct=self.distinct, requests=self.requests, retries=self.retries, tokens=self.tokens, bytes=self.bytes
        )

    def taken(self, counts: PropertyCounts) -> None:
        """What asking takes: as it was counted, or estimated."""
        self.requests, self.retries, self.tokens = counts.requests, counts.retries, counts.tokens


@dataclass(frozen=True, slots=True)
class FileChoice:
    """Which entities, and what becomes of them. A selector embeds anew what it selects."""

    spec: FileSpec
    mode: FileMode = FileMode.FILL_MISSING
    types: Sequence[str] = ()
    selectors: Sequence[Selector] = ()

    @property
    def told_mode(self) -> FileMode:
        """The mode with what selectors make of it."""
        selected = self.mode is FileMode.FILL_MISSING and self.selectors
        return FileMode.REEMBED_SELECTED if selected else self.mode


@dataclass(slots=True)
class _FileRow:
    """A line; with `data` where it is an entity whose type has a target, and a text where it is to be embedded."""

    line: str
    number: int
    members: _Members
    data: _Members
    of: Target | None = None
    text: str | None = None

    def with_field(self, name: str, value: msgspec.Raw | None) -> str:
        """The line with another value of a field of its data, or without it."""
        kept = {key: raw for key, raw in self.data.items() if key != name or value is not None}
        data = kept if value is None else {**kept, name: value}
        self.members["data"] = msgspec.Raw(msgspec.json.encode(data))
        return msgspec.json.encode(self.members).decode()


def read_spec(text: str | bytes) -> FileSpec:
    """The specification of a pipeline. BadRequestError says what is wrong with it."""
    try:
        spec = msgspec.json.decode(text, type=FileSpec)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequestError(
            f'the specification is not {{"dimension": N, "types": {{T: {{"target", "fields"}}}}}}: {error}'
        ) from error
    return checked_spec(spec)


def checked_spec(spec: FileSpec) -> FileSpec:
    """A specification whose numbers make sense."""
    if spec.dimension <= 0:
        raise BadRequestError("embedding dimension must be greater than zero")
    return spec


def embed_lines(
    lines: Iterable[str], choice: FileChoice, embedder: Embedder | None, counts: FileCounts, most_failed: int = 0
) -> Iterator[str]:
    """The lines with vectors, blank ones left out; `counts` says what was done. No embedder is needed to clean, nor to
    count what there is to ask for.

    BadRequestError for a line that is no JSON, EmbeddingError when more than `most_failed` rows get no vector: the
    others stay as they were.
    """
    rows = _rows(lines, choice, counts)
    while some := list(islice(rows, _TOGETHER)):
        texts = _texts(some, counts)
        vectors = _vectors(some, texts, choice.spec.dimension, embedder, counts) if embedder is not None else {}
        if counts.failed_rows > most_failed:
            raise EmbeddingError(f"{counts.failed_rows} rows got no vector: {'; '.join(counts.failures)}")
        for row in some:
            if row.of is None:
                yield row.line
            elif choice.mode is FileMode.CLEAN:
                counts.cleaned_rows += row.of.target in row.data
                yield row.with_field(row.of.target, None) if row.of.target in row.data else row.line
            elif row.text in vectors:
                counts.embedded_rows += 1
                yield row.with_field(row.of.target, vectors[row.text])
            else:
                yield row.line


def _texts(rows: Sequence[_FileRow], counts: FileCounts) -> list[str]:
    """The texts of rows, each once."""
    texts = list(dict.fromkeys(row.text for row in rows if row.text is not None))
    counts.distinct += len(texts)
    counts.bytes += sum(len(text.encode(errors="surrogatepass")) for text in texts)
    return texts


def _vectors(
    rows: Sequence[_FileRow], asked: Sequence[str], dimension: int, embedder: Embedder, counts: FileCounts
) -> Mapping[str | None, msgspec.Raw]:
    """JSON of the vector of each text."""
    found = ask(embedder, asked, dimension, Role.DOCUMENT)
    counts.taken(counts.of_all + took(len(asked), found.usage))
    failed = {asked[at]: message for at, message in found.failures.items()}
    for row in rows:
        if row.text in failed:
            counts.failed_rows += 1
            if len(counts.failures) < _NAMED:
                counts.failures.append(f"line {row.number}: {failed[row.text]}")
    vectors = zip(asked, found.vectors.tolist(), strict=True)
    return {text: msgspec.Raw(msgspec.json.encode(vector)) for text, vector in vectors if text not in failed}


def _rows(lines: Iterable[str], choice: FileChoice, counts: FileCounts) -> Iterator[_FileRow]:
    for line in lines:
        stripped = line.strip()
        if stripped:
            counts.rows += 1
            with _reading(counts.rows):
                row = _chosen(_read(stripped, counts.rows, choice.spec), choice, counts)
            yield row


def _chosen(row: _FileRow, choice: FileChoice, counts: FileCounts) -> _FileRow:
    """A line with what is to be done with it."""
    type_name = _value(row.members.get("type"))
    if not isinstance(type_name, str) or "data" not in row.members or not _is_chosen(type_name, row, choice):
        row.of = None
        return row
    counts.selected_rows += 1
    if row.of is not None and choice.mode is not FileMode.CLEAN and _wants(row, row.of, choice):
        counts.wanted_rows += 1
        values = [_value(row.data.get(name)) for name in row.of.fields]
        row.text = record_text(type_name, row.of.fields, values)
    return row


@contextmanager
def _reading(number: int) -> Iterator[None]:
    """BadRequestError for a line that is no JSON, or is nested so deeply, or has such numbers, that nobody reads it."""
    try:
        yield
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRequestError(f"line {number} is not valid JSON: {error}") from error


def _read(line: str, number: int, spec: FileSpec) -> _FileRow:
    """A line as an entity where it is one. BadRequestError for an entity without data."""
    try:
        members = _MEMBERS.decode(line)
    except msgspec.ValidationError:
        msgspec.json.decode(line)
        members = {}  # JSON, and no object
    type_name = _value(members.get("type"))
    of = spec.types.get(type_name) if isinstance(type_name, str) else None
    try:
        data = _MEMBERS.decode(members["data"])
    except (KeyError, msgspec.ValidationError):
        if of is not None:
            raise BadRequestError(f"line {number} is missing object field 'data'") from None
        members.pop("data", None)
        data = {}
    return _FileRow(line, number, members, data, of)


def _is_chosen(type_name: str, row: _FileRow, choice: FileChoice) -> bool:
    if choice.types and type_name not in choice.types:
        return False
    return not choice.selectors or any(
        each.type_name in (None, type_name)
        and each.field in row.data
        and rendered(_value(row.data[each.field])) == each.value
        for each in choice.selectors
    )


def _wants(row: _FileRow, of: Target, choice: FileChoice) -> bool:
    missing = _value(row.data.get(of.target)) in (None, [])
    return missing or choice.told_mode is not FileMode.FILL_MISSING


def _value(raw: msgspec.Raw | None) -> object:
    return None if raw is None else msgspec.json.decode(raw)
