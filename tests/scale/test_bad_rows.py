"""Every bad row of a large file is named in one run: file, line, offset, rule; no more and no fewer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from spark_omnigraph.errors import BadRowsError
from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.graph.load.options import LoadOptions
from spark_omnigraph.write.executor import LocalExecutor
from tests.support.cases import Json
from tests.support.graph_files import recovery_files

SCHEMA = """
node Person {
    code: String @key
    age: I32?
    born: Date?
    tier: enum(gold, silver)?
    mail: String?
    @range(age, 0..150)
    @check(mail, "^[a-z0-9]+@[a-z]+$")
}
edge Knows: Person -> Person { since: Date? }
"""


def person(**data: Json) -> str:
    return json.dumps({"type": "Person", "data": data})


def knows(**ends: Json) -> str:
    return json.dumps({"edge": "Knows", **ends, "data": {"since": 1}})


BAD: dict[str, Callable[[int], str]] = {
    "invalid_json": lambda n: f'{{"type": "Person", "data": {{"code": "j{n}"}}',
    "invalid_envelope": lambda n: json.dumps({"kind": "Person", "data": {"code": f"v{n}"}}),
    "unknown_type": lambda n: json.dumps({"type": "Persson", "data": {"code": f"t{n}"}}),
    "missing_endpoint": lambda n: knows(**{"from": "p0"}),
    "unknown_field": lambda n: person(code=f"f{n}", agee=1),
    "wrong_type": lambda n: person(code=f"w{n}", age="old"),
    "out_of_range": lambda n: person(code=f"o{n}", age=2**31 + n),
    "invalid_date": lambda n: person(code=f"d{n}", born="31/12/1999"),
    "key_missing": lambda n: person(age=1),
    "enum": lambda n: person(code=f"e{n}", tier="bronze"),
    "range": lambda n: person(code=f"r{n}", age=151),
    "check": lambda n: person(code=f"c{n}", mail="NOT A MAIL"),
    "key_duplicate": lambda n: person(code="p0", age=1),
    "endpoint": lambda n: knows(**{"from": "p0", "to": f"ghost{n}"}),
}
"""One bad record of each rule; `p0` is a good person on the first line."""


@dataclass(frozen=True)
class Written:
    path: Path
    lines: int
    bad: dict[int, str]
    """Line number → rule."""


def write_input(path: Path, lines: int, bad: int) -> Written:
    """`bad` bad lines spread evenly over the file; every third good line is an edge between two good people."""
    rules = list(BAD)
    stride = lines // bad
    wrong: dict[int, str] = {}
    with path.open("w", encoding="utf-8") as out:
        for number in range(1, lines + 1):
            if number % stride == 0 and len(wrong) < bad:
                rule = rules[len(wrong) % len(rules)]
                wrong[number] = rule
                text = BAD[rule](number)
            elif number % 3 == 0:
                target = number - 1 if (number - 1) % stride else 0
                text = f'{{"edge":"Knows","from":"p0","to":"p{target}","data":{{}}}}'
            else:
                serial = 0 if number == 1 else number
                text = f'{{"type":"Person","data":{{"code":"p{serial}","age":{number % 99}}}}}'
            out.write(text + "\n")
    return Written(path, lines, wrong)


def check(folder: Path, lines: int, bad: int, workers: int) -> None:
    written = write_input(folder / "in.jsonl", lines, bad)
    g = Graph.init(str(folder / "graph"), SCHEMA)
    report = folder / "bad.jsonl"
    with pytest.raises(BadRowsError) as refused:
        g.load(str(written.path), options=LoadOptions(executor=LocalExecutor(workers), bad_rows=str(report)))
    expected = Counter(written.bad.values())
    assert refused.value.summary.total == bad
    assert refused.value.summary.per_rule == expected
    assert refused.value.to_dict()["bad_rows"] == {"total": bad, "per_rule": expected, "report": str(report)}
    named = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert len(named) == bad
    assert [(row["line"], row["rule"]) for row in named] == sorted(written.bad.items())
    _compare_with_the_file(written, named)
    assert (g.count("node:Person"), len(g.commits())) == (0, 1)
    assert recovery_files(folder / "graph") == []

    loaded = g.load(
        str(written.path), options=LoadOptions(executor=LocalExecutor(workers), max_bad_rows=bad, bad_rows=str(report))
    )
    good = lines - bad
    assert sum(loaded.nodes_loaded.values()) + sum(loaded.edges_loaded.values()) == good
    assert g.count("node:Person") + g.count("edge:Knows") == good
    assert loaded.bad_rows.total == bad
    assert len(g.commits()) == 2


def _compare_with_the_file(written: Written, named: list[dict[str, Json]]) -> None:
    with written.path.open("rb") as source:
        for row in named:
            assert row["file"].endswith("in.jsonl")
            source.seek(row["offset"])
            assert source.readline().decode().rstrip("\n") == row["raw"]
            assert row["message"]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("workers", [1, 2])
def test_five_hundred_bad_rows_in_fifty_thousand_lines(tmp_path: Path, workers: int) -> None:
    check(tmp_path, 50_000, 500, workers)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_ten_thousand_bad_rows_in_a_million_lines(tmp_path: Path) -> None:
    check(tmp_path, 1_000_000, 10_000, 2)


def test_one_bad_row_more_than_allowed_refuses(tmp_path: Path) -> None:
    written = write_input(tmp_path / "in.jsonl", 2_000, 28)
    g = Graph.init(str(tmp_path / "graph"), SCHEMA)
    for limit in (27, 0.0139):
        with pytest.raises(BadRowsError):
            g.load(str(written.path), options=LoadOptions(max_bad_rows=limit))
    assert g.count("node:Person") == 0
    assert g.load(str(written.path), options=LoadOptions(max_bad_rows=0.014)).bad_rows.total == 28
