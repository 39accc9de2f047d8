"""The verb `demo`: a graph of films made, loaded, asked through Spark, and a bad file refused. See `docs/demo.md`."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spark_omnigraph.bad_rows import BadRow
from spark_omnigraph.demo.data import (
    Cleaning,
    Converted,
    broken_lines,
    convert,
    movies_database,
    schema_text,
)
from spark_omnigraph.demo.meaning import HEADERS, ask_by_meaning, why_not
from spark_omnigraph.errors import BadRowsError, InternalError, UsageError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions, LoadReport
from spark_omnigraph.spark.session import active_or_local, running_session

Log = Callable[[str], None]
Cell = str | int | float | None

DEFAULT_FOLDER = "omnigraph-demo"
MARKER = ".spark-omnigraph-demo"
"""File that says that a folder was made by the demo, so that the next run may make it anew."""

_DECADES = range(1940, 2020, 10)
# In a session of a few seconds the JVM's second compiler and parallel collector cost more than they save: half of
# all processor time.
_SHORT_LIVED = {
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where the demo keeps its things; all names below `root` are its own."""

    root: Path

    @property
    def graph(self) -> Path:
        return self.root / "graph"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def schema(self) -> Path:
        return self.root / "films.pg"

    @property
    def broken(self) -> Path:
        return self.root / "broken.jsonl"

    @property
    def report(self) -> Path:
        return self.root / "bad-rows.jsonl"


@dataclass(frozen=True, slots=True)
class Question:
    """A join over the types of the graph, in the words of a person and in SQL."""

    title: str
    headers: tuple[str, ...]
    sql: str


QUESTIONS = (
    Question(
        "Who most often both wrote and directed a film?",
        ("person", "films", "first", "last"),
        """
        SELECT d.src, count(*) AS films, min(f.year), max(f.year)
        FROM Directed d JOIN Wrote w ON w.src = d.src AND w.dst = d.dst JOIN Film f ON f.id = d.dst
        GROUP BY d.src ORDER BY films DESC, d.src LIMIT 10
        """,
    ),
    Question(
        "Which actor and director made most films together?",
        ("actor", "director", "films", "first", "last"),
        """
        SELECT a.src, d.src, count(*) AS films, min(f.year), max(f.year)
        FROM ActedIn a JOIN Directed d ON d.dst = a.dst AND d.src <> a.src JOIN Film f ON f.id = a.dst
        GROUP BY a.src, d.src ORDER BY films DESC, a.src, d.src LIMIT 10
        """,
    ),
    Question(
        "How many films does a country have in each decade?",
        ("country", *(f"{decade}s" for decade in _DECADES), "all"),
        f"""
        SELECT p.dst, {", ".join(f"count_if(f.year DIV 10 = {decade // 10})" for decade in _DECADES)}, count(*) AS films
        FROM ProducedIn p JOIN Film f ON f.id = p.src
        GROUP BY p.dst ORDER BY films DESC, p.dst LIMIT 10
        """,
    ),
)
_NODES = ("Film",)
_EDGES = ("Directed", "Wrote", "ActedIn", "ProducedIn")


class Phases:
    """Seconds of each part of the demo."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Adds the time of a block under a name."""
        started = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - started, 2)


def run_demo(folder: Path | None, log: Log) -> dict[str, object]:
    """Runs the whole demo in a folder (default `./omnigraph-demo`) and returns its figures for the summary.

    Lines for people go to `log`. A folder that the demo made before is made anew; any other that is not empty is
    refused with UsageError, as is a missing data set. Without Spark the joins are left out, with the way to get it.
    """
    database = movies_database()
    place = prepare(folder)
    phases = Phases()
    log(f"The demo makes a graph of films in {_shown(place.root)}")
    with phases.measure("convert"):
        converted = _convert(database, place)
    _show_conversion(converted, phases.seconds["convert"], log)
    with phases.measure("load"):
        graph = Graph.init(str(place.graph), schema_text())
        loaded = graph.load(str(place.data), mode="append")
    counts = {key: graph.count(key) for key in _by_size(converted.counts)}
    _show_load(loaded, counts, phases.seconds["load"], log)
    with phases.measure("spark"):
        answered = ask_spark(place, log)
    with phases.measure("meaning"):
        embedded = show_meaning(graph, log)
    head = next(iter(graph.commits(limit=1))).id
    with phases.measure("refusal"):
        refused = refuse_broken(graph, place, log)
    unchanged = prove_unchanged(graph, head, counts, log)
    _show_next(place, log)
    return {
        "folder": str(place.root),
        "graph": str(place.graph),
        "commit": loaded.commit,
        "records": converted.total,
        "counts": counts,
        "cleaned": converted.cleaning.to_dict(),
        "questions_answered": answered,
        "titles_embedded": embedded,
        "refused": {"total": refused.summary.total, "per_rule": dict(refused.summary.per_rule)},
        "unchanged": unchanged,
        "phases": phases.seconds,
    }


def prepare(folder: Path | None) -> Place:
    """An empty place for the demo. Clears what an earlier demo made; UsageError when anything else is there."""
    root = (Path(DEFAULT_FOLDER) if folder is None else folder).absolute()
    if root.exists() and not root.is_dir():
        raise UsageError(f"'{root}' is a file; the demo needs a folder")
    if root.is_dir() and any(root.iterdir()) and not (root / MARKER).is_file():
        raise UsageError(f"'{root}' is not empty and was not made by the demo; name another one: --folder PATH")
    try:
        return _clear(Place(root))
    except OSError as error:
        if folder is not None:
            raise UsageError(f"cannot write to '{root}': {error.strerror}") from error
    return _clear(Place(Path(tempfile.mkdtemp(prefix="omnigraph-demo-"))))


def _clear(place: Place) -> Place:
    place.root.mkdir(parents=True, exist_ok=True)
    (place.root / MARKER).write_text(
        "Made by `spark-omnigraph demo`, which makes this folder anew.\n", encoding="utf-8"
    )
    for folder in (place.graph, place.data):
        if folder.exists():
            shutil.rmtree(folder)
    place.data.mkdir()
    place.report.unlink(missing_ok=True)
    return place


def _convert(database: Path, place: Place) -> Converted:
    place.schema.write_text(schema_text(), encoding="utf-8")
    place.broken.write_text(broken_lines(), encoding="utf-8")
    return convert(database, place.data)


def ask_spark(place: Place, log: Log) -> int | None:
    """Answers the questions with joins in Spark; None when Spark is not there, with a line that says how to get it."""
    _heading("3. Ask it, through Spark", log)
    owned = running_session() is None
    if owned:
        log("starting a local Spark, which takes some seconds")
    try:
        spark = active_or_local("spark-omnigraph demo", conf=_SHORT_LIVED)
    except UsageError as error:
        log(f"left out: {error.message}")
        return None
    try:
        for kind, names in (("node", _NODES), ("edge", _EDGES)):
            for name in names:
                frame = spark.read.format("omnigraph").option(kind, name).load(str(place.graph))
                frame.createOrReplaceTempView(name)
        log(f"each type is a DataFrame: {_read_films(place)}")
        for question in QUESTIONS:
            rows = [tuple(row) for row in spark.sql(question.sql).collect()]
            log("")
            log(question.title)
            _table(question.headers, rows, log)
    finally:
        if owned:
            spark.stop()
    return len(QUESTIONS)


def show_meaning(graph: Graph, log: Log) -> int | None:
    """How many titles became vectors, and films whose titles mean what is asked for; None where the model is not
    installed, with a line that says how to get it.
    """
    _heading("4. Ask it by meaning", log)
    missing = why_not()
    if missing is not None:
        log(f"left out: {missing}")
        return None
    embedded, rows = ask_by_meaning(graph)
    log(f"{embedded:,} titles are vectors now, by a model on this machine; the nearest ones to a few texts:")
    _table(HEADERS, rows, log)
    return embedded


def refuse_broken(graph: Graph, place: Place, log: Log) -> BadRowsError:
    """Loads the file of mistakes, which must be refused, and shows what is wrong with it, line by line."""
    _heading("5. Load a file with mistakes", log)
    try:
        graph.load(str(place.broken), mode="append", options=LoadOptions(bad_rows=str(place.report)))
    except BadRowsError as error:
        summary = error.summary
        log(f"{_shown(place.broken)} is refused as a whole; {summary.total} of its rows are bad:")
        _table(("line", "rule", "where", "message"), [_bad_row(row) for row in summary.sample], log)
        log(f"with the text of each row: {_shown(place.report)}")
        return error
    raise InternalError(f"'{place.broken}' was loaded although it is full of mistakes")


def prove_unchanged(graph: Graph, head: str, counts: Mapping[str, int], log: Log) -> bool:
    """True when head and counts are what they were before the refused load; InternalError otherwise."""
    now = {key: graph.count(key) for key in counts}
    if next(iter(graph.commits(limit=1))).id != head or now != dict(counts):
        raise InternalError("the refused load changed the graph")
    log(f"the graph is as it was: head {head}, {sum(now.values()):,} rows.")
    return True


def _show_conversion(converted: Converted, seconds: float, log: Log) -> None:
    _heading("1. Convert the films of bokeh-sampledata (Wikidata, CC0)", log)
    files = " and ".join(path.name for path in converted.files)
    log(f"{converted.total:,} records in {files}, {seconds:.1f} s. Cleaned on the way:")
    _table(("what", "times"), list(_cleaned(converted.cleaning)), log)


def _cleaned(cleaning: Cleaning) -> Iterator[tuple[str, int]]:
    yield "1 January that only means the year", cleaning.days_unknown
    yield "name with a comma inside, kept whole", cleaning.names_joined
    yield "title and year shared by two films, told apart", cleaning.titles_told_apart
    yield "box office with a misplaced decimal point", cleaning.grosses_dropped
    yield "IMDb number of another film", cleaning.imdb_repeats_dropped
    yield "running time under five minutes", cleaning.runtimes_dropped
    yield "'multiple languages', which is no language", cleaning.not_languages
    yield "person named twice for one film", cleaning.repeats_dropped


def _show_load(loaded: LoadReport, counts: Mapping[str, int], seconds: float, log: Log) -> None:
    _heading("2. Load them", log)
    total = sum(counts.values())
    log(f"{total:,} rows checked and loaded in one commit, {seconds:.1f} s ({total / seconds:,.0f} rows/s)")
    _table(("type", "rows"), list(counts.items()), log)
    log(f"commit {loaded.commit}, manifest version {loaded.manifest_version}")


def _show_next(place: Place, log: Log) -> None:
    _heading("What to try next", log)
    graph, broken = _shown(place.graph), _shown(place.broken)
    for line in (
        f"spark-omnigraph describe --graph {graph}",
        f"spark-omnigraph commits --graph {graph}",
        f"spark-omnigraph export --graph {graph} --type Genre",
        f"spark-omnigraph ingest --graph {graph} --branch trial --input {broken} --max-bad-rows 20",
    ):
        log(f"  {line}")
    log("and in pyspark")
    log(f"  {_read_films(place)}.show()")
    log(f"The schema is {_shown(place.schema)}, the records are in {_shown(place.data)}: a pattern for your own.")


def _read_films(place: Place) -> str:
    return f'spark.read.format("omnigraph").option("node", "Film").load("{_shown(place.graph)}")'


def _shown(path: Path) -> Path:
    """The path as a person here would type it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _by_size(counts: Mapping[str, int]) -> list[str]:
    """Table keys, nodes before edges, large ones first."""
    return sorted(counts, key=lambda key: (key.startswith("edge:"), -counts[key]))


def _bad_row(row: BadRow) -> tuple[Cell, ...]:
    where = ".".join(part for part in (row.record_type, row.field) if part)
    return row.line, str(row.rule), where, row.message


def _heading(text: str, log: Log) -> None:
    log("")
    log(text)
    log("-" * len(text))


def _table(headers: Sequence[str], rows: Sequence[tuple[Cell, ...]], log: Log) -> None:
    """A small table: text to the left, numbers to the right with separators between thousands, years as they are."""
    cells = [[_cell(header, value) for header, value in zip(headers, row)] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(headers, *cells)]
    right = [bool(rows) and isinstance(value, int | float) for value in rows[0]] if rows else [False] * len(headers)
    for line in (list(headers), *cells):
        padded = (text.rjust(n) if flush else text.ljust(n) for text, n, flush in zip(line, widths, right))
        log("  " + "  ".join(padded).rstrip())


def _cell(header: str, value: Cell) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and header not in ("first", "last", "line") else str(value)
