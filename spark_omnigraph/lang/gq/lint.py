"""What can be said about a query text before it runs: every query is checked, and updates are looked at together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spark_omnigraph.catalog.types import Catalog, NodeType, embedding_source
from spark_omnigraph.errors import InputError, QueryParseError
from spark_omnigraph.lang.gq.check.mutation import TypedUpdate, type_mutation
from spark_omnigraph.lang.gq.check.read_query import check_read
from spark_omnigraph.lang.gq.lower import lower
from spark_omnigraph.lang.gq.syntax.ast import Query
from spark_omnigraph.lang.gq.syntax.parser import parse_queries
from spark_omnigraph.words import TextEnum

PARSE_ERROR = "Q000"
UNSET_PROPERTY = "L201"
NO_PARAMS = "mutation declares no params; hardcoded mutations are easy to miss"


class Severity(TextEnum):
    """How bad a finding is; only errors make a lint fail."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class QueryKind(TextEnum):
    """What a query does."""

    READ = "read"
    MUTATION = "mutation"


class Status(TextEnum):
    """Whether a query, or all of a text, can run."""

    OK = "ok"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class SchemaSource:
    """Where the schema comes from: a file, or a graph."""

    kind: str
    place: str

    def to_dict(self) -> dict[str, object]:
        return {"kind": self.kind, "uri" if self.kind == "graph" else "path": self.place}


@dataclass(frozen=True, slots=True)
class LintedQuery:
    """What was found about one query; `error` is why it cannot run."""

    name: str
    kind: QueryKind
    warnings: tuple[str, ...] = ()
    error: str | None = None

    @property
    def status(self) -> Status:
        return Status.OK if self.error is None else Status.ERROR

    def to_dict(self) -> dict[str, object]:
        body: dict[str, object] = {"name": self.name, "kind": str(self.kind), "status": str(self.status)}
        if self.warnings:
            body["warnings"] = list(self.warnings)
        return body if self.error is None else {**body, "error": self.error}


@dataclass(frozen=True, slots=True)
class LintFinding:
    """Something about the text as a whole."""

    severity: Severity
    code: str
    message: str
    type_name: str | None = None
    property: str | None = None
    query_names: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        body: dict[str, object] = {"severity": str(self.severity), "code": self.code, "message": self.message}
        for name, value in (("type_name", self.type_name), ("property", self.property)):
            if value is not None:
                body[name] = value
        return {**body, "query_names": list(self.query_names)} if self.query_names else body


@dataclass(frozen=True, slots=True)
class LintReport:
    """The results of all queries, in the order of the text, and the findings, the most severe first."""

    schema_source: SchemaSource
    query_path: str
    results: tuple[LintedQuery, ...] = ()
    findings: tuple[LintFinding, ...] = ()

    @property
    def errors(self) -> int:
        return sum(result.status is Status.ERROR for result in self.results) + self._count(Severity.ERROR)

    @property
    def warnings(self) -> int:
        return sum(len(result.warnings) for result in self.results) + self._count(Severity.WARNING)

    @property
    def status(self) -> Status:
        return Status.ERROR if self.errors else Status.OK

    def to_dict(self) -> dict[str, object]:
        """The report as JSON: what is not known is left out."""
        return {
            "status": str(self.status),
            "schema_source": self.schema_source.to_dict(),
            "query_path": self.query_path,
            "queries_processed": len(self.results),
            "errors": self.errors,
            "warnings": self.warnings,
            "infos": self._count(Severity.INFO),
            "results": [result.to_dict() for result in self.results],
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def _count(self, severity: Severity) -> int:
        return sum(finding.severity is severity for finding in self.findings)


@dataclass(slots=True)
class _Updates:
    """Which queries of a text update a node type, and what they set."""

    queries: set[str] = field(default_factory=set)
    properties: set[str] = field(default_factory=set)


def lint_queries(catalog: Catalog, text: str, query_path: str, schema_source: SchemaSource) -> LintReport:
    """The report about a query text; nothing in the text makes this raise."""
    try:
        file = parse_queries(text)
    except QueryParseError as error:
        finding = LintFinding(Severity.ERROR, PARSE_ERROR, error.message)
        return LintReport(schema_source, query_path, findings=(finding,))
    updates: dict[str, _Updates] = defaultdict(_Updates)
    results = tuple(_checked(catalog, query, updates) for query in file.queries)
    return LintReport(schema_source, query_path, results, tuple(_unset(catalog, updates)))


def _checked(catalog: Catalog, query: Query, updates: dict[str, _Updates]) -> LintedQuery:
    kind = QueryKind.MUTATION if query.is_mutation else QueryKind.READ
    warnings = (NO_PARAMS,) if query.is_mutation and not query.params else ()
    try:
        if query.is_mutation:
            _note(query.name.text, type_mutation(catalog, query).statements, updates)
        else:
            lower(catalog, check_read(catalog, query))
    except InputError as error:
        return LintedQuery(query.name.text, kind, warnings, error.message)
    return LintedQuery(query.name.text, kind, warnings)


def _note(query: str, statements: Sequence[object], updates: dict[str, _Updates]) -> None:
    for statement in statements:
        if isinstance(statement, TypedUpdate):
            found = updates[statement.entity.name]
            found.queries.add(query)
            found.properties.update(statement.values)


def _unset(catalog: Catalog, updates: Mapping[str, _Updates]) -> list[LintFinding]:
    """L201 in order of types and properties: what may be null is often meant to be set one day."""
    return [
        LintFinding(
            Severity.WARNING,
            UNSET_PROPERTY,
            f"{name}.{prop} exists in schema but no update query sets it",
            name,
            prop,
            tuple(sorted(updates[name].queries)),
        )
        for name in sorted(updates)
        for prop in _expected(catalog.nodes[name])
        if prop not in updates[name].properties
    ]


def _expected(node: NodeType) -> list[str]:
    """Properties that some update might set: nullable, no key, not filled by an embedding."""
    key = node.key or ()
    return [
        prop.name
        for prop in node.properties
        if prop.type.nullable and prop.name not in key and embedding_source(prop) is None
    ]
