"""docs/tutorial-csv.md, as its reader does it: its files, its commands, its answers."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from spark_omnigraph import Graph
from spark_omnigraph.cli import main

PAGE = Path(__file__).parents[3] / "docs" / "tutorial-csv.md"
_FILE = re.compile(r"`([\w/]+\.\w+)`[^`]*?:\n\n```\w+\n(.*?)```", re.DOTALL)
_BLOCK = re.compile(r"```(sh|text)\n(.*?)```", re.DOTALL)


def test_the_page_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    for name, text in _FILE.findall(page):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
    shown, answers = "", 0
    for kind, text in _BLOCK.findall(page):
        if kind == "text":
            assert shown == text
            answers += 1
            continue
        for line in text.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "spark-omnigraph"
            assert main(arguments) == 0, line
            shown = capsys.readouterr().out
    graph = Graph.open("shop-graph", mode="r")
    assert answers == 1
    assert [graph.count(key) for key in ("node:Customer", "node:Product", "edge:Bought")] == [2, 2, 3]
    assert [commit.facts.totals().updated for commit in graph.commits()[:1] if commit.facts is not None] == [7]
