"""What lint says about a query text: each query by itself, and the updates of a node type together."""

from __future__ import annotations

from spark_omnigraph.lang.gq.lint import LintReport, SchemaSource, lint_queries
from spark_omnigraph.lang.pg import compile_schema

FILMS = compile_schema(
    """
    node Film { title: String @key  year: I32  plot: String?  rating: F64?  v: Vector(2)? @embed("title") }
    node Actor { name: String @key  born: Date? }
    """
)
SOURCE = SchemaSource("file", "films.pg")


def lint(text: str) -> LintReport:
    return lint_queries(FILMS, text, "films.gq", SOURCE)


def test_a_clean_text() -> None:
    assert lint("query q($t: String) { match { $f: Film { title: $t } } return { $f.year } }").to_dict() == {
        "status": "ok",
        "schema_source": {"kind": "file", "path": "films.pg"},
        "query_path": "films.gq",
        "queries_processed": 1,
        "errors": 0,
        "warnings": 0,
        "infos": 0,
        "results": [{"name": "q", "kind": "read", "status": "ok"}],
        "findings": [],
    }


def test_the_source_of_a_graph_is_its_uri() -> None:
    report = lint_queries(FILMS, "", "films.gq", SchemaSource("graph", "s3://b/films"))
    assert report.to_dict()["schema_source"] == {"kind": "graph", "uri": "s3://b/films"}
    assert report.to_dict()["queries_processed"] == 0


def test_a_text_that_does_not_parse_has_one_finding_with_its_line() -> None:
    body = lint("query q() {\n  match { $f Film }\n}").to_dict()
    assert (body["status"], body["errors"], body["queries_processed"], body["results"]) == ("error", 1, 0, [])
    (finding,) = lint("query q() {\n  match { $f Film }\n}").findings
    assert (finding.code, str(finding.severity)) == ("Q000", "error")
    assert "line 2, column 14" in finding.message
    assert finding.to_dict().keys() == {"severity", "code", "message"}


def test_every_query_is_checked_by_itself() -> None:
    report = lint(
        """
        query good() { match { $f: Film } return { $f.title } }
        query bad() { match { $f: Film } return { $f.titel } }
        query write($y: I32) { insert Film { title: "x" year: $y } }
        """
    )
    assert [(r.name, str(r.kind), str(r.status)) for r in report.results] == [
        ("good", "read", "ok"),
        ("bad", "read", "error"),
        ("write", "mutation", "ok"),
    ]
    error = report.results[1].error
    assert error is not None
    assert error.startswith("type error: T6: type `Film` has no property `titel`; did you mean 'title'?\n")
    assert (report.errors, report.warnings) == (1, 0)


def test_what_no_run_could_answer_is_an_error_too() -> None:
    report = lint(
        """
        query a() { match { $f: Film } return { $f.title } order { nope } }
        query b() { match { $a: Actor $a.born < date("2020-02-30") } return { $a } }
        query c() { insert Actor { name: "x" } delete Actor where name = "y" }
        """
    )
    first, second, third = (r.error or "" for r in report.results)
    assert first == "alias 'nope' not found for ordering (aliases: none)"
    assert second.startswith("invalid Date literal '2020-02-30'")
    assert third.startswith("mutation 'c' on the same query mixes inserts/updates and deletes")


def test_a_mutation_without_parameters_is_warned_about() -> None:
    report = lint('query q() { delete Film where title = "x" }')
    assert report.results[0].warnings == ("mutation declares no params; hardcoded mutations are easy to miss",)
    assert (report.errors, report.warnings, str(report.status)) == (0, 1, "ok")


def test_a_failing_mutation_keeps_its_warning() -> None:
    report = lint('query q() { delete Flm where title = "x" }')
    assert (report.errors, report.warnings, str(report.status)) == (1, 1, "error")


def test_properties_that_no_update_sets() -> None:
    report = lint(
        """
        query z($t: String) { update Film set { year: 3 } where title = $t }
        query a($t: String, $r: F64) { update Film set { rating: $r } where title = $t }
        query wrong($t: String) { update Actor set { name: 3 } where name = $t }
        """
    )
    (finding,) = report.findings
    assert finding.to_dict() == {
        "severity": "warning",
        "code": "L201",
        "message": "Film.plot exists in schema but no update query sets it",
        "type_name": "Film",
        "property": "plot",
        "query_names": ["a", "z"],
    }
    assert report.warnings == 1


def test_findings_are_in_order_of_types_and_properties() -> None:
    report = lint(
        """
        query f($t: String) { update Film set { title: "x" } where title = $t }
        query a($n: String) { update Actor set { name: $n } where name = $n }
        """
    )
    assert [(f.type_name, f.property) for f in report.findings] == [
        ("Actor", "born"),
        ("Film", "plot"),
        ("Film", "rating"),
    ]
