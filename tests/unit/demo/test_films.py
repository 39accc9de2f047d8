"""The verb `demo` on a small film database, with Spark left out; the joins are in tests/spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_omnigraph.demo import films as demo
from spark_omnigraph.demo import meaning
from spark_omnigraph.demo.films import MARKER, prepare, run_demo
from spark_omnigraph.embed.models.local import is_installed
from spark_omnigraph.errors import BadRowsError, UsageError
from spark_omnigraph.graph.handle import Graph
from tests.support.film_database import small_database

RULES = {
    "cardinality": 1,
    "check": 1,
    "endpoint": 1,
    "enum": 1,
    "invalid_date": 1,
    "invalid_envelope": 1,
    "invalid_json": 1,
    "key_conflict": 1,
    "key_duplicate": 1,
    "key_missing": 1,
    "missing_endpoint": 1,
    "out_of_range": 1,
    "range": 1,
    "required": 1,
    "unique": 2,
    "unknown_field": 1,
    "unknown_type": 2,
    "wrong_type": 1,
}


@pytest.fixture
def films(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small film database in place of the real one, and no Spark."""

    def no_spark(*_: object, **__: object) -> None:
        raise UsageError("pyspark is not installed: pip install it")

    database = small_database(tmp_path)
    monkeypatch.setattr(demo, "movies_database", lambda: database)
    monkeypatch.setattr(demo, "running_session", lambda: None)
    monkeypatch.setattr(demo, "active_or_local", no_spark)
    return database


def test_loads_the_films_and_refuses_every_mistake(films: Path, tmp_path: Path) -> None:
    lines: list[str] = []

    figures: dict[str, Any] = run_demo(tmp_path / "demo", lines.append)

    assert figures["refused"] == {"total": 20, "per_rule": RULES}
    assert figures["unchanged"] is True
    graph = Graph.open(tmp_path / "demo" / "graph", mode="r")
    assert figures["counts"] == {key: graph.count(key) for key in figures["counts"]}
    assert graph.count("node:Film") == 3
    assert figures["commit"] in {each.id for each in graph.commits()}
    assert len((tmp_path / "demo" / "bad-rows.jsonl").read_text().splitlines()) == 20


def test_says_what_is_missing_and_goes_on_without_spark(films: Path, tmp_path: Path) -> None:
    lines: list[str] = []

    figures: dict[str, Any] = run_demo(tmp_path / "demo", lines.append)

    assert "left out: pyspark is not installed: pip install it" in lines
    assert figures["questions_answered"] is None


def test_shows_each_bad_row_with_its_line_and_rule(films: Path, tmp_path: Path) -> None:
    lines: list[str] = []

    run_demo(tmp_path / "demo", lines.append)

    text = "\n".join(lines)
    broken = (tmp_path / "demo" / "broken.jsonl").read_text().splitlines()
    dangling = next(n for n, line in enumerate(broken, 1) if "Pulp Fiction (1995)" in line)
    shown = next(line for line in lines if "(1995)" in line).split()
    assert shown[:3] == [str(dangling), "endpoint", "ActedIn.to"]
    assert "20 of its rows are bad" in text


def test_the_default_folder_is_in_the_working_directory(
    films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines: list[str] = []

    figures = run_demo(None, lines.append)

    assert figures["folder"] == str(tmp_path / "omnigraph-demo")
    assert "  spark-omnigraph describe --graph omnigraph-demo/graph" in lines


def test_runs_again_in_its_own_folder(films: Path, tmp_path: Path) -> None:
    first = run_demo(tmp_path / "demo", lambda _: None)

    again = run_demo(tmp_path / "demo", lambda _: None)

    assert again["counts"] == first["counts"]
    assert again["commit"] != first["commit"]


def test_a_folder_with_other_things_is_refused_and_kept(tmp_path: Path) -> None:
    kept = tmp_path / "graph" / "precious.txt"
    kept.parent.mkdir()
    kept.write_text("mine")

    with pytest.raises(UsageError, match="was not made by the demo"):
        prepare(tmp_path)

    assert kept.read_text() == "mine"
    assert not (tmp_path / MARKER).exists()


def test_only_its_own_things_are_cleared(tmp_path: Path) -> None:
    place = prepare(tmp_path / "demo")
    notes = place.root / "notes.txt"
    notes.write_text("mine")
    (place.graph / "old").mkdir(parents=True)

    prepare(place.root)

    assert notes.read_text() == "mine"
    assert not place.graph.exists()


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "demo"
    file.write_text("")

    with pytest.raises(UsageError, match="is a file"):
        prepare(file)


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    assert (prepare(tmp_path).root / MARKER).is_file()


def test_a_missing_data_set_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("spark_omnigraph.demo.data.import_module", missing)

    with pytest.raises(UsageError, match=r'pip install "spark-omnigraph\[demo\]"'):
        run_demo(tmp_path / "demo", lambda _: None)

    assert not (tmp_path / "demo").exists()


def test_bad_rows_come_with_the_text_of_the_row(films: Path, tmp_path: Path) -> None:
    run_demo(tmp_path / "demo", lambda _: None)

    graph = Graph.open(tmp_path / "demo" / "graph")
    with pytest.raises(BadRowsError) as caught:
        graph.load(str(tmp_path / "demo" / "broken.jsonl"))

    assert all(row.raw.startswith("{") for row in caught.value.summary.sample)


def test_without_the_model_the_question_by_meaning_is_left_out(
    films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meaning, "is_installed", lambda: False)
    lines: list[str] = []
    figures = run_demo(tmp_path / "demo", lines.append)
    assert figures["titles_embedded"] is None
    assert "left out: the model is not installed: pip install 'spark-omnigraph[local-embeddings]'" in lines


@pytest.mark.skipif(not is_installed(), reason="needs the extra local-embeddings")
def test_films_are_found_by_what_their_titles_mean(films: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    figures = run_demo(tmp_path / "demo", lines.append)
    assert figures["titles_embedded"] == 3
    start = next(at for at, line in enumerate(lines) if line.strip().startswith("asked for"))
    assert [line.strip().startswith(text) for line, text in zip(lines[start + 1 :: 3], meaning.TEXTS)] == [True] * 3
    assert figures["unchanged"] is True
