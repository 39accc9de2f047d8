"""`query --executor spark`: what stands in its files, what it may take, and who ends it."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_omnigraph import Graph
from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.cli.output.answer_files import write_answer
from spark_omnigraph.cli.program import main
from spark_omnigraph.errors import OmnigraphError
from spark_omnigraph.lang.gq.plan import ResultColumn
from spark_omnigraph.limits import Limits, is_left_behind
from spark_omnigraph.spark.query.leaving import leaving
from spark_omnigraph.spark.session import under
from spark_omnigraph.storage.objects.new_folder import NewFolder
from tests.spark.sessions import UNUSUAL

PATIENCE = 120.0
SCHEMA = "node P { name: String @key  seen: DateTime?  born: Date? }\nnode None_ { k: String @key }\nedge Knows: P -> P"
PEOPLE = [
    {"name": "Ada", "seen": "0001-01-01T00:00:00Z", "born": "1582-10-04"},
    {"name": "Bob", "seen": "9999-12-31T23:59:59.999Z", "born": "9999-12-31"},
    {"name": "Cyd"},
]
KNOWS = [("Ada", "Bob"), ("Bob", "Cyd"), ("Cyd", "Cyd")]
ALL = "match { $p: P } return { $p.name, $p.seen, $p.born } order { $p.name }"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    graph = Graph.init(tmp_path_factory.mktemp("verb") / "g", SCHEMA)
    rows = [{"type": "P", "data": person} for person in PEOPLE]
    graph.load([json.dumps(row) for row in (*rows, *({"edge": "Knows", "from": a, "to": b} for a, b in KNOWS))])
    return graph


Ask = Callable[..., tuple[int, dict[str, Any], list[str]]]


@pytest.fixture
def ask(spark: SparkSession, people: Graph, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Runs the verb by Spark; gives its code, its summary if it is the last line, and all lines."""

    def run(body: str, *words: str, executor: str = "spark") -> tuple[int, dict[str, Any], list[str]]:
        text = f"query q() {{ {body} }}"
        code = main(
            ["query", "--graph", people.uri, "-e", text, "--executor", executor, "--log-level", "error", *words]
        )
        lines = capsys.readouterr().out.splitlines()
        return code, json.loads(lines[-1]) if lines[-1].startswith("{") else {}, lines

    return run


def lines_in(folder: Path) -> list[str]:
    parts = sorted(path for path in folder.iterdir() if path.name.startswith("part-"))
    return [path.read_text() for path in parts]


@pytest.mark.parametrize(
    "body",
    [
        "match { $n: None_ } return { $n.k, $n.k as again }",
        'match { $p: P $p.name starts_with "x" } return { $p.name, $p.seen }',
    ],
)
def test_a_file_of_csv_without_rows_has_the_names_of_the_columns(ask: Ask, tmp_path: Path, body: str) -> None:
    """Where Spark knows beforehand that there is nothing, and where its tasks find nothing."""
    local, folder = tmp_path / "local.csv", tmp_path / "folder"
    assert ask(body, "--format", "csv", "--output", str(local), executor="local")[0] == 0
    code, said, _ = ask(body, "--format", "csv", "--output", str(folder))
    assert (code, said["result"]) == (0, said["result"] | {"row_count": 0})
    assert "".join(lines_in(folder)) == local.read_text()
    assert local.read_text().count("\n") == 1


def test_instants_and_days_of_any_year_are_read_without_spark(
    ask: Ask, people: Graph, spark: SparkSession, tmp_path: Path
) -> None:
    """Whatever the session would write by itself."""
    with under(spark, UNUSUAL):
        assert ask(ALL, "--format", "parquet", "--output", str(tmp_path / "f"))[0] == 0
    found = pq.read_table(tmp_path / "f").sort_by("p.name")
    wanted = people.query(f"query q() {{ {ALL} }}").to_arrow()
    assert found.column("p.seen").type == pa.timestamp("us", "UTC")
    for column in ("p.seen", "p.born"):
        kind = pa.int32() if column == "p.born" else wanted.column(column).type
        assert found.column(column).cast(kind).equals(wanted.column(column).cast(kind)), column


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_more_rows_than_are_allowed_are_not_written(ask: Ask, tmp_path: Path, form: str) -> None:
    words = ("--format", form, "--output", str(tmp_path / "f"))
    code, said, _ = ask(ALL, *words, "--max-rows", "2")
    assert (code, said["error"]["kind"]) == (3, "limit")
    assert not (tmp_path / "f").exists()
    code, said, _ = ask(ALL, *words, "--max-rows", "3")
    assert (code, said["result"]["row_count"]) == (0, 3)


def test_an_answer_that_takes_too_long_is_given_up(ask: Ask, tmp_path: Path) -> None:
    code, said, _ = ask(ALL, "--format", "jsonl", "--output", str(tmp_path / "f"), "--time-limit", "0.01s")
    assert (code, said["error"]["kind"]) == (3, "limit")
    assert not is_left_behind(PATIENCE), "its jobs run on"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_goes_when_its_rows_are_given_up(spark: SparkSession, tmp_path: Path) -> None:
    """Its tasks have begun: at the limit of time, where the caller leaves, and where one fails."""
    begun, free = tmp_path / "begun", tmp_path / "free"
    column = (ResultColumn("id", PropType(Scalar.I64)),)

    def write(name: str, task: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]) -> NewFolder:
        folder = NewFolder(str(tmp_path / name))

        def work(own: SparkSession) -> int:
            frame = own.range(0, 2, 1, 2).mapInArrow(task, "id bigint")
            return write_answer(frame, column, folder, "jsonl", Limits())

        leaving(spark, None, work, folder.remove)
        return folder

    def interrupt() -> None:
        wait_for(begun)
        assert (tmp_path / "left").is_dir()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        write("left", hold(begun, free))
    thread.join(PATIENCE)
    assert not is_left_behind(PATIENCE), "its jobs run on"
    with pytest.raises(OmnigraphError):
        write("failed", fail)
    free.touch()
    assert write("done", hold(begun, free)).path == str(tmp_path / "done")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["begun", "done", "free"]


def fail(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task that fails."""
    raise ValueError(f"no rows of {type(batches).__name__}")


def test_analyze_says_the_rows_of_each_operator(ask: Ask, tmp_path: Path) -> None:
    body = "match { $p: P $p knows{1,2} $q not { $q knows $r $r.name = $p.name } } return { $p.name } order { $p.name }"
    code, _, lines = ask(body, "--analyze")
    assert code == 0
    found = [(line.split()[0], line.split("[")[1].split(",")[0]) for line in lines if "ms]" in line]
    assert found[:4] == [("project", "3 rows"), ("anti-join:", "3 rows"), ("expand", "4 rows"), ("scan", "3 rows")]
    assert found[4] == ("filter", "1 row")
    code, said, _ = ask(body, "--analyze", "--max-rows", "2", "--output", str(tmp_path / "f"))
    refused = "query: the answer has more than 2 rows: limit it, or allow more by --max-rows"
    assert (code, said["error"]["error"]) == (3, refused)


def hold(begun: Path, until: Path) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A task that says that it runs, and goes on when it may."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begun.touch()
        wait_for(until)
        yield from batches

    return run


def wait_for(path: Path) -> None:
    ends = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < ends, f"no {path.name}"
        time.sleep(0.05)


def test_an_interrupt_ends_the_jobs_of_one_caller(spark: SparkSession, tmp_path: Path) -> None:
    ours, other, free = (tmp_path / name for name in ("ours", "other", "free"))
    found: list[int] = []

    def count(session: SparkSession, begun: Path) -> int:
        return session.range(0, 1, 1, 1).mapInArrow(hold(begun, free), "id bigint").count()

    def interrupt() -> None:
        for begun in (ours, other):
            wait_for(begun)
        os.kill(os.getpid(), signal.SIGINT)

    threads = [threading.Thread(target=interrupt), threading.Thread(target=lambda: found.append(count(spark, other)))]
    for thread in threads:
        thread.start()
    with pytest.raises(KeyboardInterrupt):
        leaving(spark, None, lambda own: count(own, ours))
    assert not is_left_behind(PATIENCE / 2), "the job that was left goes on"
    free.touch()
    for thread in threads:
        thread.join(PATIENCE)
    assert found == [1]
