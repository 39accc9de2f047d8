"""Arguments of another kind than a call takes: each is refused with words of its own, before anything is written."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from spark_omnigraph.errors import BadRequestError, IoError, OmnigraphError
from spark_omnigraph.graph.embed.request import EmbedChoices
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.inputs import InputArguments
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.graph.merge.merge import MergeChoices
from spark_omnigraph.graph.restore.restore import RestoreChoices
from spark_omnigraph.graph.schema.preview import SchemaChoices
from spark_omnigraph.graph.sync.sync import SyncChoices

LINE = '{"type":"P","data":{"k":"a"}}'


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = Graph.init(tmp_path_factory.mktemp("arguments") / "g", "node P { k: String @key }\nedge E: P -> P")
    made.load([LINE])
    return made


graphs: Any = Graph
options: Any = LoadOptions
WRONG: list[tuple[Callable[[Any], object], str]] = [
    (lambda g: g.load([LINE], "merge", actor=5), "actor is a text, not 5"),
    (lambda g: g.load([LINE], "merge", actor="\ud800"), r"an actor is a text in UTF-8, not '\ud800'"),
    (lambda g: g.load([LINE], "merge", branch=5), "branch is a text, not 5"),
    (lambda g: g.load("/x/\ud800"), "half of a surrogate pair"),
    (lambda g: options(max_bad_rows="5%"), "max_bad_rows is a number"),
    (lambda g: options(max_bad_rows=True), "max_bad_rows is a number"),
    (lambda g: options(bad_rows="\0"), "zero byte"),
    (lambda g: options(bad_rows=5), "bad_rows is the path of a file, not 5"),
    (lambda g: options(executor=5), "executor is an executor, such as LocalExecutor(4) or SparkExecutor(spark), not 5"),
    (lambda g: options(progress="x"), "progress is a function, not 'x'"),
    (lambda g: options(dry_run="no"), "dry_run is True or False, not 'no'"),
    (lambda g: options(build_indexes=None), "build_indexes is True or False, not None"),
    (lambda g: options(batch="7"), "batch is a whole number, not '7'"),
    (lambda g: g.load([LINE], options={}), "options is of the class LoadOptions, not {}"),
    (lambda g: g.load([LINE], 5), "mode is a text, not 5"),
    (lambda g: g.commits(limit="x"), "limit is a whole number, not 'x'"),
    (lambda g: g.commits(limit=1.5), "limit is a whole number, not 1.5"),
    (lambda g: g.commits(branch=[]), "branch is a text, not []"),
    (lambda g: g.commits(actor=["a"]), "actor is a text, not ['a']"),
    (lambda g: g.diff(1, only="Film"), "only is of the class DiffFilter, not 'Film'"),
    (lambda g: g.entity([], "a"), "table is a text, not []"),
    (lambda g: g.repair(confirm="no"), "confirm is True or False, not 'no'"),
    (lambda g: g.cleanup(confirm=1), "confirm is True or False, not 1"),
    (lambda g: graphs.init(g.uri, "", force="false"), "force is True or False, not 'false'"),
    (lambda g: list(g.export(types=iter(["P"]))), "types is a list of names such as ['…'], not "),
    (lambda g: list(g.export(types=5)), "types is a list of names such as ['…'], not 5"),
    (
        lambda g: g.count("node:P", version=10**5000),
        "version is a number, as `commits` shows it, not a number of 16610",
    ),
    (lambda g: g.diff(10**5000), "not a number of 16610 bits"),
    (lambda g: g.entity("node:P", 10**5000), "the id of a 'node:P' is a text, not a number of 16610 bits"),
    (lambda g: g.delete("node:P", 10**5000), "must be a list of texts, not a number of 16610 bits"),
    (lambda g: options(max_bad_rows=-(10**5000)), "got a number of 16610 bits"),
    (lambda g: options(bad_rows=[10**5000]), "not a list of numbers that are too long"),
    (lambda g: options(blob_schemes="file"), "blob_schemes is a list"),
    (lambda g: g.delete("node:P", 5), "must be a list of texts, not 5"),
    (lambda g: g.delete(None, ["a"]), "table is a text, not None"),
    (lambda g: g.count(5), "table is a text, not 5"),
    (
        lambda g: g.count("node:P", brnach="draft"),
        "'brnach' names no state; there are branch, version, snapshot, as_of",
    ),
    (lambda g: g.diff({"zz": 1}), "'zz' names no state"),
    (lambda g: g.entity("node:P", 5), "the id of a 'node:P' is a text, not 5"),
    (lambda g: g.at(version="1"), "version is a number, as `commits` shows it, not '1'"),
    (lambda g: g.at(version=True), "version is a number"),
    (lambda g: g.at(version=1.5), "version is a number"),
    (lambda g: g.at(snapshot=5), "snapshot is the id of a commit, not 5"),
    (lambda g: g.at(as_of=date(2024, 1, 1)), "as_of is a datetime or a text"),
    (lambda g: g.at(snapshot="\ud800"), "the id of a commit is a text"),
    (lambda g: g.query(None), "a query is a text, not None"),
    (lambda g: g.mutate([]), "a query is a text, not []"),
    (lambda g: g.query("query q() { match { $p: P } return { $p.k } }", 5), "the name of a query is a text, not 5"),
    (lambda g: g.cleanup("7d"), "older_than is a timedelta"),
    (lambda g: graphs.open(None), "a path or URI is a text, not None"),
    (lambda g: graphs.open(g.uri, storage_options="x"), "a dictionary of texts, not a str"),
    (lambda g: graphs.open(g.uri, storage_options={"key": 1}), "the storage option 'key' is a int"),
    (lambda g: graphs.init(f"{g.uri}2", None), "a path or URI is a text, not None"),
    (lambda g: g.commit(None), "the id of a commit is a text, not None"),
    (lambda g: list(g.export(tables="node:P")), "tables is a list of names such as ['…'], not 'node:P'"),
    (lambda g: list(g.export(types=[5])), "types is a list of names such as ['…'], not [5]"),
]


@pytest.mark.parametrize(("call", "words"), WRONG, ids=[words for _, words in WRONG])
def test_an_argument_of_another_kind_is_refused(graph: Graph, call: Callable[[Any], object], words: str) -> None:
    before = graph.snapshot().version
    with pytest.raises(BadRequestError) as refused:
        call(graph)
    assert words in str(refused.value)
    assert graph.snapshot().version == before


CHOICES = {
    "apply_schema": SchemaChoices,
    "plan_schema": SchemaChoices,
    "load": InputArguments,
    "ingest": InputArguments,
    "load_table": InputArguments,
    "embed": EmbedChoices,
    "merge_branch": MergeChoices,
    "restore": RestoreChoices,
    "sync": SyncChoices,
}


def switches() -> Iterator[tuple[str, str]]:
    """Every argument of a method that is True or False, also among those that come as `**`."""
    for method, function in inspect.getmembers(Graph, callable):
        if not method.startswith("_"):
            parameters = inspect.signature(function).parameters.values()
            yield from ((method, each.name) for each in parameters if isinstance(each.default, bool))
            choices = CHOICES[method].__annotations__ if method in CHOICES else {}
            yield from ((method, name) for name, kind in choices.items() if "bool" in str(kind))


def test_every_switch_is_true_or_false(graph: Graph) -> None:
    """A text is true, also one that says no: it would drop for good what was to stay."""
    found = list(switches())
    assert {"allow_data_loss", "force", "break_lock", "rewind_apps", "incremental"} < {name for _, name in found}
    for method, name in found:
        call = getattr(Graph if method == "init" else graph, method)
        parameters = inspect.signature(call).parameters.values()
        needed = {
            each.name: "x" for each in parameters if each.default is each.empty and each.kind is not each.VAR_KEYWORD
        }
        with pytest.raises(BadRequestError, match=f"^{name} is True or False, not 'no'"):
            call(**needed, **{name: "no"})


def test_one_line_after_a_byte_order_mark_is_no_path(graph: Graph) -> None:
    report = graph.load(["\ufeff" + LINE.replace('"a"', '"after a mark"')])
    assert report.nodes_loaded == {"P": 1}
    assert graph.entity("node:P", "after a mark") is not None


def test_a_refused_actor_leaves_nothing_behind(graph: Graph) -> None:
    before = sorted((Path(graph.uri) / "__recovery").glob("*"))
    with pytest.raises(OmnigraphError):
        graph.load([LINE], "merge", actor="\ud800")
    assert sorted((Path(graph.uri) / "__recovery").glob("*")) == before


def test_a_schema_that_is_no_path_either_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(IoError, match="cannot read the schema file"):
        Graph.init(tmp_path / "g", "node " * 9999)
