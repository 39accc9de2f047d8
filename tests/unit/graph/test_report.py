"""Bad rows that only the whole graph shows: all in the report, and no more looked up than is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_omnigraph import BadRowsError, Graph, LoadOptions
from spark_omnigraph.graph.load.bad_rows import SAMPLE
from spark_omnigraph.graph.load.second_pass import ByRange, InputAgain, Located
from spark_omnigraph.staging import located
from spark_omnigraph.staging.located import LocatedRowsBuilder

SCHEMA = "node Part { tag: String @key  code: I32? @unique } edge In: Part -> Part"


def part(tag: str, code: int) -> str:
    return json.dumps({"type": "Part", "data": {"tag": tag, "code": code}})


def edge(src: str, dst: str) -> str:
    return json.dumps({"edge": "In", "from": src, "to": dst})


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    counts: list[int] = []
    locate = InputAgain.locate

    def counted(self: InputAgain, wanted: ByRange) -> dict[int, Located]:
        counts.append(sum(len(rows) for tables in wanted.values() for rows in tables.values()))
        return locate(self, wanted)

    monkeypatch.setattr(InputAgain, "locate", counted)
    monkeypatch.setattr(located, "TEXTS", 7)
    monkeypatch.setattr("spark_omnigraph.graph.load.bad_rows.TEXTS", 7)
    return counts


def write_inputs(folder: Path) -> tuple[list[Path], list[tuple[str, int, str]]]:
    """Three files with bad rows of three rules, and what a report has to say: file, line, rule."""
    files, expected = [], []
    for number in range(3):
        lines = []
        for i in range(40):
            kinds = [part(f"p{number}-{i}", 5), edge(f"p{number}-0", "ghost"), "{", edge("ghost", "p0-0")]
            lines.append(kinds[i % 4] if number or i else part("p0-0", 4))
        files.append(folder / f"{number}.jsonl")
        files[-1].write_text("\n".join(lines))
        rules = ["unique", "endpoint", "invalid_json", "endpoint"]
        expected += [(str(files[-1]), i + 1, rules[i % 4]) for i in range(40)]
    # The first two parts have new codes, the others repeat the second one's.
    return files, [row for row in expected if row not in {(str(files[0]), 1, "unique"), (str(files[0]), 5, "unique")}]


def test_a_report_has_every_row_in_input_order(tmp_path: Path, looked_up: list[int]) -> None:
    files, expected = write_inputs(tmp_path)
    graph = Graph.init(tmp_path / "g", SCHEMA)
    with pytest.raises(BadRowsError) as refused:
        graph.load(files, options=LoadOptions(bad_rows=str(tmp_path / "bad.jsonl")))
    rows = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert [(row["file"], row["line"], row["rule"]) for row in rows] == expected
    for row in rows:
        text = Path(row["file"]).read_bytes()
        assert text[row["offset"] :].split(b"\n", 1)[0].decode() == row["raw"]
    assert refused.value.summary.per_rule == {"endpoint": 80, "invalid_json": 30, "unique": 28}
    assert refused.value.summary.total == len(expected) == 118
    assert looked_up == [89]


def test_without_a_report_only_the_rows_of_the_sample_are_looked_up(tmp_path: Path, looked_up: list[int]) -> None:
    files, expected = write_inputs(tmp_path)
    graph = Graph.init(tmp_path / "g", SCHEMA)
    with pytest.raises(BadRowsError) as refused:
        graph.load(files)
    sample = [(row.file, row.line, str(row.rule)) for row in refused.value.summary.sample]
    assert sample == expected[:SAMPLE]
    assert refused.value.summary.per_rule == {"endpoint": 80, "invalid_json": 30, "unique": 28}
    assert looked_up[0] <= 2 * SAMPLE


def test_located_rows_are_small() -> None:
    builder = LocatedRowsBuilder()
    for i in range(10_000):
        builder.add(i, i, i * 100, edge(f"person-{i:08d}", f"person-{i * 7 % 10_000:08d}"))
    rows = builder.built()
    size = rows.ordinals.nbytes + rows.lines.nbytes + rows.offsets.nbytes + sum(map(len, rows.packed))
    assert size < 60 * 10_000
    assert rows.texts(1)[0] == edge(f"person-{located.TEXTS:08d}", f"person-{located.TEXTS * 7 % 10_000:08d}")
