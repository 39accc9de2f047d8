"""Notebooks in the source format of Databricks, run without Databricks: cells, magics, `dbutils`, `display`, `spark`.

`python -m tests.support.notebooks --remote sc://HOST:PORT FOLDER` plays the story of the notebooks over Spark Connect.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).parents[2] / "notebooks"
FIRST = "# Databricks notebook source"
CELL = "# COMMAND ----------"
MAGIC = "# MAGIC "
SKIPPED = ("%md", "%pip")
STORY = ("00_setup", "01_load", "03_stream", "04_review", "05_embed", "06_upkeep", "02_query")
"""Notebooks in an order in which each finds what those before it left."""
EXITS: Mapping[str, str] = {
    "00_setup": "auto",
    "01_load": '{"bad_rows": 2}',
    "03_stream": "[('Brazil', 'insert'), ('Heat', 'update_postimage'), ('Heat', 'update_preimage')]",
    "04_review": "{'conflicts': 1, 'year': 1980}",
    "05_embed": "(4, [{'name': 'Heat'}])",
    "06_upkeep": "{'tags': ['reviewed'], 'removed': 0}",
    "02_query": "{'found': [{'director': 'Ridley Scott', 'film': 'Alien'}, "
    "{'director': 'Michael Mann', 'film': 'Heat'}], 'counted': [{'films': 4, 'first': 1967}]}",
}
"""What each says at its end."""


class Left(Exception):  # noqa: N818 - no error: a notebook has said its result
    """`dbutils.notebook.exit`."""


@dataclass(frozen=True)
class Cell:
    """A cell, and the line of the file on which it begins."""

    line: int
    text: str

    @property
    def magic(self) -> tuple[str, str] | None:
        """The magic of a cell with its text; None for one of Python."""
        lines = [line for line in self.text.splitlines() if line.strip()]
        if not lines or not all(line.startswith(MAGIC.strip()) for line in lines):
            return None
        text = "\n".join(line.removeprefix(MAGIC.strip()).strip() for line in lines)
        name, _, rest = text.partition("\n" if text.partition(" ")[0].count("\n") else " ")
        return name.strip(), rest


def cells(text: str) -> Iterator[Cell]:
    """The cells of a notebook."""
    lines = text.splitlines()
    assert lines[0] == FIRST
    start = 1
    for number, line in enumerate([*lines[1:], CELL], 1):
        if line == CELL:
            yield Cell(start + 1, "\n".join(lines[start:number]))
            start = number + 1


@dataclass
class Widgets:
    """Texts by name; those that are given win over defaults, as parameters of a job do."""

    given: Mapping[str, str]
    known: dict[str, str] = field(default_factory=dict)

    def text(self, name: str, default: str, _label: str | None = None) -> None:
        self.known[name] = self.given.get(name, default)

    def dropdown(self, name: str, default: str, choices: list[str], _label: str | None = None) -> None:
        self.text(name, default)
        assert self.known[name] in choices

    def get(self, name: str) -> str:
        return self.known[name]


class Library:
    """All that is installed is there from the start."""

    def restartPython(self) -> None:  # noqa: N802 - the name that it has there
        return None


class Notebook:
    """How a notebook ends early."""

    def exit(self, text: str) -> NoReturn:
        raise Left(text)


@dataclass
class Secrets:
    """Secrets by scope and key."""

    known: Mapping[tuple[str, str], str]

    def get(self, scope: str, key: str) -> str:
        return self.known[scope, key]


@dataclass
class Utilities:
    """`dbutils`, as far as notebooks here need it."""

    widgets: Widgets
    secrets: Secrets
    library: Library = field(default_factory=Library)
    notebook: Notebook = field(default_factory=Notebook)


def run(
    path: Path,
    spark: SparkSession,
    widgets: Mapping[str, str],
    secrets: Mapping[tuple[str, str], str] | None = None,
    display: Callable[[object], None] = repr,  # type: ignore[assignment]  # what it returns is not looked at
) -> str | None:
    """What a notebook says at its end. A traceback names its lines; magics other than these are refused."""
    utilities = Utilities(Widgets(widgets), Secrets(secrets or {}))
    names = {"__name__": "__main__", "spark": spark, "dbutils": utilities, "display": display}
    try:
        for cell in cells(path.read_text(encoding="utf-8")):
            magic = cell.magic
            if magic is None:
                exec(compile("\n" * (cell.line - 1) + cell.text, str(path), "exec"), names)
            elif magic[0] == "%sql":
                display(spark.sql(magic[1]).collect())
            else:
                assert magic[0] in SKIPPED, f"{path.name}:{cell.line}: {magic[0]} is not known here"
    except Left as left:
        return str(left)
    return None


def story(spark: SparkSession, folder: Path) -> Iterator[tuple[str, str | None]]:
    """Name and end of each notebook of the story, on one graph in a folder."""
    widgets = {"graph": str(folder / "graph"), "folder": str(folder / "raw"), "provider": "mock", "model": ""}
    for name in STORY:
        given = {**widgets, "branch": "review"} if name == "04_review" else widgets
        end = run(FOLDER / f"{name}.py", spark, given, {("films", "embedding_key"): "k"})
        if name == "01_load" and end is not None:
            end = json.dumps({key: value for key, value in json.loads(end).items() if key != "commit"})
        yield name, end


def main() -> None:
    """Plays the story, and ends with 1 where a notebook says something else than it should."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--remote", required=True)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    from pyspark.sql import SparkSession  # noqa: PLC0415 - the help needs none

    session = SparkSession.builder.remote(given.remote).getOrCreate()
    wrong = {name: end for name, end in story(session, given.folder) if end != EXITS[name]}
    session.stop()
    sys.exit(f"not as it should be: {wrong}" if wrong else 0)


if __name__ == "__main__":
    main()
