"""Options about schemas: how they are shown, and what they are proposed from."""

from __future__ import annotations

from dataclasses import replace

from spark_omnigraph.cli import values
from spark_omnigraph.cli.options import INPUT, Option, Shape

DRAWN = ("json", "mermaid", "svg")
"""Forms of a description that go to standard output, or to a file."""
DESCRIBED_AS = Option(
    "description_format",
    "a table for people, the same as JSON, or a picture of the schema by Mermaid or as SVG",
    values.one_of("text", *DRAWN),
    "text|json|mermaid|svg",
    default="text",
    flag="--format",
)
PROFILED = replace(
    INPUT,
    help="files to propose a schema from (JSONL and CSV also .gz, Parquet, Arrow), folders or globs, or Delta tables "
    "(delta:PATH)",
    unless="",
    positional=True,
)
PROPOSED_FROM = replace(
    INPUT,
    help="propose the schema from these files instead; with --accept the graph is made of it",
    flag="--from",
    required=False,
    unless="",
)
ACCEPT = Option(
    "accept", "make the graph of the schema that --from proposes", values.switch, default="false", shape=Shape.SWITCH
)
