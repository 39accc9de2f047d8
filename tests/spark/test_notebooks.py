"""Notebooks as they stand, on the session of the tests: classic, and with `-m connect` over Spark Connect."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_omnigraph import Graph
from spark_omnigraph.spark.java import ensure_java
from tests.spark.sessions import connect_server
from tests.spark.test_packaging import ROOT, packed_environment
from tests.support.notebooks import CELL, EXITS, FIRST, FOLDER, STORY, cells, run, story

NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))


def test_the_notebooks_tell_one_story(spark: SparkSession, tmp_path: Path) -> None:
    ended = dict(story(spark, tmp_path))
    assert ended == EXITS
    graph = Graph.open(tmp_path / "graph", mode="r")
    assert graph.branches() == ["main"]
    # Nothing of them stays behind in the session.
    for view in ("Film", "Person", "Directed"):
        spark.catalog.dropTempView(view)


@pytest.mark.long
@pytest.mark.classic
def test_the_server_may_have_another_environment(tmp_path: Path) -> None:
    """The client is a process without a JVM, with this checkout; the server's workers have a copy of the package in an
    environment of their own. Classic: another session of Connect runs in a process of its own.
    """
    place = packed_environment(tmp_path)
    ensure_java()
    with connect_server(tmp_path, str(place / "bin" / "python"), package=None) as url:
        command = [sys.executable, "-m", "tests.support.notebooks", "--remote", url, str(tmp_path / "story")]
        (tmp_path / "story").mkdir()
        environ = {**os.environ, "SPARK_CONNECT_MODE_ENABLED": "1"}
        ended = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=280, check=False)
    assert (ended.returncode, ended.stderr[-3000:] if ended.returncode else "") == (0, "")


def test_every_notebook_is_played() -> None:
    assert sorted([*STORY, "07_delta"]) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_begins_with_the_install_and_has_no_place_of_its_own(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    found = list(cells(text))
    assert text.startswith(f"{FIRST}\n# MAGIC %md\n# MAGIC # ")
    assert [magic[0] for cell in found[:2] if (magic := cell.magic)] == ["%md", "%pip"]
    assert found[2].text.strip() == "dbutils.library.restartPython()"
    assert found[3].text.strip().startswith("dbutils.widgets.text(")
    code = "\n".join(cell.text for cell in found if cell.magic is None)
    names = {node.module for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom) and node.module}
    assert {each for each in names if "omnigraph" in each} <= {"spark_omnigraph", "spark_omnigraph.cli"}
    assert re.findall(r"""["'](?:\./|\.\./|tmp/)""", code) == []
    assert text.count(CELL) == len(found) - 1


def test_a_row_in_the_readme_for_every_notebook() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[(\w+)\]\(\1\.py\) \|", readme, re.MULTILINE) == NAMES


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [("x = 1\n\nraise ValueError('here')", 4, "here"), ("# MAGIC %sh ls", None, "%sh is not known here")],
)
def test_a_mistake_in_a_notebook_is_shown_at_its_line(
    spark: SparkSession, tmp_path: Path, text: str, line: int | None, says: str
) -> None:
    path = tmp_path / "n.py"
    path.write_text(f"{FIRST}\n{text}\n")
    with pytest.raises((ValueError, AssertionError), match=says) as caught:
        run(path, spark, {})
    assert line is None or caught.traceback[-1].lineno + 1 == line
