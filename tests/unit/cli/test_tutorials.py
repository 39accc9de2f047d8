"""Tutorials, as their reader does them: the files of a page, its commands, its answers."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from spark_omnigraph import Graph
from spark_omnigraph.cli import main

DOCS = Path(__file__).parents[3] / "docs"
_FILE = re.compile(r"`([\w./-]+\.\w+)`[^`]*?:\n\n```\w+\n(.*?)```", re.DOTALL)
_BLOCK = re.compile(r"```(sh|text)\n(.*?)```", re.DOTALL)


def unpack(page: str) -> None:
    """Writes the files of a page into this folder."""
    for name, text in _FILE.findall(page):
        Path(name).parent.mkdir(exist_ok=True, parents=True)
        Path(name).write_text(text, encoding="utf-8")


def follow(page: str, capsys: pytest.CaptureFixture[str], heard: list[str] | None = None) -> int:
    """Does what a page says, in this folder; how many answers it has, all of which were right. A command behind which
    stands `# exit 3` ends so. `heard` gets all that is said.
    """
    shown, answers = "", 0
    unpack(page)
    for kind, text in _BLOCK.findall(page):
        if kind == "text":
            assert shown == text
            answers += 1
            continue
        for line in text.splitlines():
            command, _, ends = line.partition("  # exit ")
            program, *arguments = shlex.split(command)
            assert program == "spark-omnigraph"
            assert main(arguments) == int(ends or 0), line
            shown, told = capsys.readouterr()
            if heard is not None:
                heard += [shown, told]
    return answers


def test_a_folder_of_csv_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert follow((DOCS / "tutorial-csv.md").read_text(encoding="utf-8"), capsys) == 1
    graph = Graph.open("shop-graph", mode="r")
    assert [graph.count(key) for key in ("node:Customer", "node:Product", "edge:Bought")] == [2, 2, 3]
    assert [commit.facts.totals().updated for commit in graph.commits()[:1] if commit.facts is not None] == [7]


def test_nightly_patches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert follow((DOCS / "patches.md").read_text(encoding="utf-8"), capsys) == 1
    counts = [commit.facts.totals() for commit in Graph.open("films-graph", mode="r").commits() if commit.facts]
    assert [(each.inserted, each.updated) for each in counts[:3]] == [(0, 2), (0, 2), (4, 0)]
