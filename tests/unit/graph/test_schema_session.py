"""The recipes that docs/schema-changes.md shows are what happens."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from spark_omnigraph.cli import main

PAGE = Path(__file__).parents[3] / "docs" / "schema-changes.md"
CHANGES = re.compile(r"^\d\d:\d\d:\d\d (?:commit [0-9A-Z]{26})?", re.MULTILINE)
"""What no two runs have in common."""


def test_the_recipes_of_the_page() -> None:
    results = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert results.failed == 0
    assert results.attempted > 20


def test_the_recipe_with_the_verbs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command of the session, in its order, says what the page shows; `…` stands for any text."""
    part = PAGE.read_text(encoding="utf-8").partition("### Tighten a rule on dirty data, with the verbs")[2]
    schema, records, session = re.findall(r"^```\w*\n(.*?)^```", part, re.MULTILINE | re.DOTALL)[:3]
    (tmp_path / "films.pg").write_text(schema)
    (tmp_path / "films.jsonl").write_text(records)
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE)
    for command, shown in commands:
        assert _matches(_said(command, capsys), shown), command
    assert len(commands) == 15


def _said(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says at a terminal, messages first, without the summary for programs."""
    words = shlex.split(command)
    if words[0] != "spark-omnigraph":
        return subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True).stdout
    assert main(words[1:]) == 0, command
    said = capsys.readouterr()
    lines = (said.err + said.out).splitlines()
    return "".join(f"{line}\n" for line in lines if not line.startswith('{"job"'))


def _matches(said: str, shown: str) -> bool:
    wanted = ".*".join(map(re.escape, CHANGES.sub("", shown).split("…")))
    return re.fullmatch(wanted, CHANGES.sub("", said), re.DOTALL) is not None
