"""Recipes, as far as they run here: files, commands, code, with stand-ins for what is not installed."""

from __future__ import annotations

import json
import os
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from spark_omnigraph import Graph
from spark_omnigraph.cli import main
from tests.unit.cli.test_tutorials import DOCS, follow, unpack

RECIPES = DOCS / "recipes"
USED = ("actions/checkout", "actions/setup-python", "actions/upload-artifact", "pip")
"""What the runner of GitHub brings."""
SCHEMA = "node Film { name: String @key  year: I32? @range(year, 1888..2100) }"
GOOD = '{"type": "Film", "data": {"name": "Heat", "year": 1995}}\n'
BAD = '{"type": "Film", "data": {"name": "Faust", "year": 1587}}\n'


def page(name: str) -> str:
    return (RECIPES / f"{name}.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def films() -> Graph:
    Path("incoming").mkdir()
    Path("reports").mkdir()
    return Graph.init("graphs/films", SCHEMA)


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **members: object) -> None:
    module = ModuleType(name)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)


def test_every_recipe_says_what_of_it_runs() -> None:
    names = {path.stem for path in RECIPES.glob("*.md")} - {"README"}
    linked = (RECIPES / "README.md").read_text(encoding="utf-8")
    assert [name for name in sorted(names) if f"]({name}.md)" not in linked] == []
    assert [name for name in sorted(names) if "What runs in tests:" not in page(name)] == []


class Step:
    """A task of Airflow by its function: `>>` is an order of tasks there, and a call makes one."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.function, self.options, self.made = function, options, 0

    def __call__(self, *_arguments: object) -> Step:
        self.made += 1
        return self

    def __rshift__(self, other: Step) -> Step:
        return other


class AirflowFailError(Exception):
    """What Airflow does not try again."""


def in_this_process(command: list[str], **_options: object) -> subprocess.CompletedProcess[str]:
    """The program without a process of its own, which takes seconds to start."""
    assert command[0] == "spark-omnigraph"
    return subprocess.CompletedProcess(command, main(command[1:]))


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    def task(**options: Any) -> Callable[[Callable[..., Any]], Step]:
        return lambda function: Step(function, **options)

    def dag(**_options: Any) -> Callable[[Callable[[], None]], Callable[[], None]]:
        return lambda function: function

    stand_in(monkeypatch, "airflow")
    stand_in(monkeypatch, "airflow.exceptions", AirflowFailException=AirflowFailError)
    stand_in(monkeypatch, "airflow.sdk", task=task, dag=dag)
    unpack(page("airflow"))
    monkeypatch.setattr(subprocess, "run", in_this_process)
    return runpy.run_path("films_dag.py")


def test_airflow_tries_again_what_is_worth_it(
    films: Graph, airflow: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    load = airflow["load"]
    assert (load.made, load.options["retries"], airflow["keep_whole"].made) == (1, 3, 1)
    Path("incoming/2026-01-31.jsonl").write_text(GOOD)
    assert load.function("2026-01-31") == 1
    facts = films.commits()[0].facts
    assert facts is not None
    assert facts.origin.metadata == {"day": "2026-01-31"}
    Path("incoming/2026-02-01.jsonl").write_text(BAD)
    with pytest.raises(AirflowFailError, match="bad_rows: "):
        load.function("2026-02-01")
    assert json.loads(Path("reports/2026-02-01.jsonl").read_text())["rule"] == "range"
    ended: subprocess.CompletedProcess[str] = subprocess.CompletedProcess([], 4)
    monkeypatch.setattr(subprocess, "run", lambda *_args, **_options: ended)
    with pytest.raises(RuntimeError, match="exit code 4"):
        load.function("2026-02-02")


class Refused(Exception):  # noqa: N818 - the names that it stands for
    """`Failure` and `RetryRequested` of Dagster."""

    def __init__(self, *told: object, **options: object) -> None:
        super().__init__(*told)
        self.options = options


class Failure(Refused):
    pass


class RetryRequested(Refused):
    pass


def test_dagster_has_figures_and_failures(films: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def asset(*functions: Callable[[], Any], **_options: object) -> Any:
        return functions[0] if functions else lambda function: function

    def result(metadata: Mapping[str, object]) -> Mapping[str, object]:
        return metadata

    made = {"Definitions": lambda assets: assets, "asset": asset, "MaterializeResult": result}
    stand_in(monkeypatch, "dagster", **made, Failure=Failure, RetryRequested=RetryRequested)
    unpack(page("dagster"))
    load, keep = runpy.run_path("films_assets.py")["defs"]
    Path("incoming/a.jsonl").write_text(GOOD)
    figures = load()
    assert (figures["node:Film"], figures["commit"]) == (1, films.commits()[0].id)
    assert keep()["commit"] == "none"
    Path("incoming/b.jsonl").write_text(BAD)
    with pytest.raises(Failure) as caught:
        load()
    assert caught.value.options == {"metadata": {"bad rows": 1, "range": 1}, "allow_retries": False}
    for path in Path("incoming").iterdir():
        path.unlink()
    Path("incoming/c.jsonl").write_text("\xff", encoding="latin-1")
    with pytest.raises(Failure):
        load()


def test_models_of_dbt_become_nodes_and_edges(capsys: pytest.CaptureFixture[str]) -> None:
    Path("out").mkdir()
    times = pa.array([0, 0], pa.timestamp("us", "UTC"))
    titles, names = ["Heat", "Ronin"], ["Heat (1995)", "Ronin (1998)"]
    years = pa.array([1995, 1998], pa.int32())
    pq.write_table(pa.table({"name": names, "title": titles, "year": years, "updated_at": times}), "out/films.parquet")
    credits = {"person": ["De Niro", "De Niro"], "film": names, "job": ["actor", "actor"], "updated_at": times}
    pq.write_table(pa.table(credits), "out/credits.parquet")
    follow(page("dbt"), capsys)
    graph = Graph.open("films-graph", mode="r")
    assert [graph.count(key) for key in ("node:Film", "node:Person", "edge:Worked")] == [2, 1, 2]
    (project,) = [text for text in page("dbt").split("```yaml\n") if text.startswith("models:")]
    assert yaml.safe_load(project.partition("```")[0])["models"]["films"]["graph"]["+materialized"] == "external"


def run_steps() -> dict[str, int]:
    """Exit codes of the steps of the workflow; after a failure of those alone that are for any case. Commands of the
    program run in this process, and all else in a shell.
    """
    workflow = yaml.safe_load(Path(".github/workflows/graph.yml").read_text())
    codes: dict[str, int] = {}
    for step in workflow["jobs"]["try"]["steps"]:
        if "run" not in step or step["name"] == "install":
            assert step.get("uses", step.get("run", "")).partition("@")[0].split(" ")[0] in USED
            continue
        if any(codes.values()) and step.get("if") != "always()":
            continue
        words = shlex.split(os.path.expandvars(step["run"].replace("\\\n", " ")))
        if words[0] == "spark-omnigraph":
            codes[step["name"]] = main(words[1:])
            continue
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        codes[step["name"]] = subprocess.run(shell, timeout=120, check=False).returncode
    return codes


def test_the_workflow_of_github_tells_what_it_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(page("github-actions"))
    graph = Graph.init("g", SCHEMA)
    Path("graph/records").mkdir(parents=True)
    Path("graph/films.pg").write_text(SCHEMA.replace("2100", "2200"))
    Path("graph/films.gq").write_text("query all() { match { $f: Film } return { $f.name } }")
    Path("graph/records/a.jsonl").write_text(GOOD)
    monkeypatch.setenv("OMNIGRAPH_GRAPH", "g")
    monkeypatch.setenv("OMNIGRAPH_BRANCH", "pull-7")
    monkeypatch.setenv("GITHUB_ACTOR", "somebody")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "told.md")
    assert set(run_steps().values()) == {0}
    assert "| `node:Film` | 1 | 0 | 0 |" in Path("told.md").read_text()
    assert (graph.count("node:Film"), graph.at(branch="pull-7").count("node:Film")) == (0, 1)
    Path("told.md").unlink()
    Path("graph/records/b.jsonl").write_text(BAD)
    codes = run_steps()
    assert (codes["records fit, on a branch of their own"], codes["tell"]) == (3, 0)
    told = Path("told.md").read_text()
    assert "**refused** on branch `pull-7`" in told
    assert "bad_rows: see the page" in told
    assert Path("load.html").is_file()


def test_no_address_is_in_a_log_and_nobody_who_was_erased_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[str] = []
    follow(page("privacy"), capsys, heard)
    assert "bad row" in "".join(heard)
    assert "example.org" not in "".join(heard)
    assert "alan@example.org" in Path("bad.jsonl").read_text()
    graph = Graph.open("people-graph", mode="r")
    assert [graph.count(key) for key in ("node:Person", "edge:Knows")] == [1, 0]
    files = [path for path in Path("people-graph").rglob("*") if path.is_file()]
    assert [path for path in files if b"ada@example.org" in path.read_bytes()] == []


def test_files_for_neo4j_become_a_graph(capsys: pytest.CaptureFixture[str]) -> None:
    follow(page("coming-from"), capsys)
    graph = Graph.open("from-neo4j", mode="r")
    query = "query q() { match { $p: Person  $p actedIn $f } return { $p.name, $f.title } order { $p.name } }"
    found = graph.query(query)
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("Carrie-Anne Moss", "The Matrix"),
        ("Keanu Reeves", "The Matrix"),
    ]
