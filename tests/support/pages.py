"""Parts of the documentation that are made from the code: options of the data source, errors, and a picture.

`python -m tests.support.pages` writes them; a test fails while one of them is not current.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from spark_omnigraph.bad_rows import Rule
from spark_omnigraph.draw.svg import svg
from spark_omnigraph.errors import ConflictError, InputError, OmnigraphError, SourceError, StorageError
from spark_omnigraph.graph.read.picture import picture_of
from spark_omnigraph.lang.pg import compile_schema
from spark_omnigraph.spark.read.options import READ_OPTIONS, STORAGE_HELP
from spark_omnigraph.spark.write.options import WRITE_OPTIONS
from tests.spark import type_matrix
from tests.support.api_page import api_page
from tests.support.films import FILM_COUNTS

DOCS = Path(__file__).parents[2] / "docs"

RULES: Mapping[Rule, str] = {
    Rule.INVALID_JSON: "the line is not one JSON value, or has a member twice",
    Rule.INVALID_TEXT: "text of a frame that is no UTF-8, such as half of a surrogate pair",
    Rule.INVALID_ROW: "a row of CSV with more or fewer fields than its header",
    Rule.INVALID_ENVELOPE: "the record is not one of `{type, data}` and `{edge, from, to, data}`",
    Rule.UNKNOWN_TYPE: "the schema has no such node or edge type",
    Rule.MISSING_ENDPOINT: "an edge without `from` or `to`",
    Rule.UNKNOWN_FIELD: "no such property of the type, or member of a record; `--unknown-fields ignore` lets most pass",
    Rule.WRONG_TYPE: "a JSON value of another kind than the property's",
    Rule.OUT_OF_RANGE: "a number that the property's type cannot hold",
    Rule.INVALID_DATE: "no date or time that exists, or one outside the years 1 to 9999",
    Rule.VECTOR_LENGTH: "another number of items than `Vector(n)` says",
    Rule.INVALID_BLOB: "neither base64 nor a URI that may be stored",
    Rule.REQUIRED: "a property without `?` is missing or null",
    Rule.KEY_MISSING: "a property of the key is missing or null",
    Rule.KEY_TOO_LONG: "an id, key, `from` or `to` of more than 8,192 bytes in UTF-8",
    Rule.ID_MISMATCH: "an `id` that is not what the key says; a patch with another `from` or `to` than the edge has",
    Rule.ENUM: "a value that the enumeration does not list",
    Rule.RANGE: "a value outside `@range`",
    Rule.CHECK: "a value that `@check` refuses",
    Rule.UNIQUE: "a value of `@unique` that another row has, in the input or stored",
    Rule.KEY_DUPLICATE: "an id that the input has twice",
    Rule.KEY_CONFLICT: "an id that is stored already, in mode append",
    Rule.NOT_STORED: "an id that is not stored, in mode update",
    Rule.ENDPOINT: "an edge whose end is neither in the input nor stored",
    Rule.EMBEDDING: "the provider gave no vector for the text of the row",
    Rule.CARDINALITY: "more or fewer edges of one source than `@card` allows",
}


def options_table(options: Mapping[str, str]) -> str:
    """Rows of a table of options."""
    rows = [f"| `{name}` | {meaning} |" for name, meaning in options.items()]
    return "\n".join(["| option | value |", "|---|---|", *rows, f"| `storage.*` | {STORAGE_HELP} |"])


def errors_table() -> str:
    """Every kind of error that can be raised, in the order of the tree."""
    lines = ["| kind | class | group | exit code | meaning | what to do |", "|---|---|---|---:|---|---|"]
    for error in dict.fromkeys(_tree(OmnigraphError)):  # one may have two places
        if error in (OmnigraphError, SourceError):  # never raised themselves
            continue
        meaning = (inspect.getdoc(error) or "").split("\n\n")[0].replace("\n", " ").rstrip(".")
        group = f"`{_group(error).__name__}`"
        lines.append(
            f"| `{error.kind}` | `{error.__name__}` | {group} | {error.exit_code} | {meaning} | {error.way_out} |"
        )
    return "\n".join(lines)


def rules_table() -> str:
    """Every rule that a bad row can break."""
    return "\n".join(["| rule | meaning |", "|---|---|", *(f"| `{rule}` | {RULES[rule]} |" for rule in Rule)])


PARTS: Mapping[tuple[str, str], Callable[[], str]] = {
    ("spark-read.md", "options"): lambda: options_table(READ_OPTIONS),
    ("spark-write.md", "options"): lambda: options_table(WRITE_OPTIONS),
    ("errors.md", "errors"): errors_table,
    ("errors.md", "rules"): rules_table,
    ("type-matrix.md", "values"): type_matrix.render,
}
"""Page and name of each part that is made, and what makes it."""


def films_picture() -> str:
    """The schema of the demo with its counts, which the README begins with."""
    schema = (DOCS.parent / "spark_omnigraph" / "demo" / "demo.pg").read_text(encoding="utf-8")
    return svg(picture_of(compile_schema(schema), FILM_COUNTS)) + "\n"


PICTURES: Mapping[str, Callable[[], str]] = {"films.svg": films_picture}
"""Whole files in docs/ that are made, and that the README shows."""
FILES: Mapping[str, Callable[[], str]] = {"docs/api.md": api_page}
"""Other whole files that are made."""


def render(page: str) -> str:
    """Text of a page with all of its parts made anew."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for (owner, name), make in PARTS.items():
        if owner == page:
            start, end = f"<!-- made from the code: {name} -->", f"<!-- end of {name} -->"
            found = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
            assert len(found.findall(text)) == 1, f"{page} has no place for {name}"
            whole = f"{start}\n{make()}\n{end}"
            text = text.replace(found.findall(text)[0], whole)
    return text


def pages() -> list[str]:
    """Pages that hold parts made from the code."""
    return sorted({page for page, _ in PARTS})


def _tree(base: type[OmnigraphError]) -> Iterator[type[OmnigraphError]]:
    yield base
    for child in base.__subclasses__():
        if child.__module__ == OmnigraphError.__module__:
            yield from _tree(child)


def _group(error: type[OmnigraphError]) -> type[OmnigraphError]:
    for group in (InputError, ConflictError, StorageError):
        if issubclass(error, group):
            return group
    return error


if __name__ == "__main__":
    for page in pages():
        (DOCS / page).write_text(render(page), encoding="utf-8")
    for name, make in PICTURES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
    for name, make in FILES.items():
        (DOCS.parent / name).write_text(make(), encoding="utf-8")
