"""The joins of the demo, on a small graph with answers worked out by hand."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from spark_omnigraph.demo.data import convert, schema_text
from spark_omnigraph.demo.films import ask_spark, prepare
from spark_omnigraph.graph.handle import Graph
from tests.support.film_database import small_database


def test_the_questions_are_answered(spark: SparkSession, tmp_path: Path) -> None:
    place = prepare(tmp_path / "demo")
    convert(small_database(tmp_path), place.data)
    Graph.init(place.graph, schema_text()).load(str(place.data))
    lines: list[str] = []

    answered = ask_spark(place, lines.append)

    assert answered == 3
    assert rows_after(lines, "Who most often") == [
        "Mike Gabriel 1 1995 1995",
        "Quentin Tarantino 1 1994 1994",
    ]
    assert rows_after(lines, "Which actor and director") == [
        "Irene Bedard Eric Goldberg 1 1995 1995",
        "Irene Bedard Mike Gabriel 1 1995 1995",
        "John Travolta Quentin Tarantino 1 1994 1994",
        "Mel Gibson Eric Goldberg 1 1995 1995",
        "Mel Gibson Mike Gabriel 1 1995 1995",
        "Uma Thurman Quentin Tarantino 1 1994 1994",
    ]
    assert rows_after(lines, "How many films") == [
        "United States 0 0 0 0 0 2 0 0 2",
        "Italy 0 0 0 0 0 1 0 0 1",
    ]
    assert spark.range(1).count() == 1, "a session that ran before goes on"


def rows_after(lines: list[str], title: str) -> list[str]:
    """Rows of the table below a title, without its header, spaces made single."""
    start = next(n for n, line in enumerate(lines) if line.startswith(title))
    table = []
    for line in lines[start + 2 :]:
        if not line.startswith("  "):
            break
        table.append(" ".join(line.split()))
    return table
