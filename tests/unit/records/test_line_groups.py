from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from spark_omnigraph.records.jsonl.line_groups import LineSorter, SortedLines
from spark_omnigraph.records.jsonl.lines import TextLines
from tests.unit.records.builders import CATALOG


def sort(lines: Sequence[str | bytes], ignore_unknown: bool = False) -> SortedLines:
    raw = [line.encode() if isinstance(line, str) else line for line in lines]
    return LineSorter(CATALOG, ignore_unknown).sort(TextLines.joined(raw))


def groups(found: SortedLines) -> dict[str, tuple[list[int], list[bytes]]]:
    return {g.entity.table_key: (g.lines.tolist(), [t.strip() for t in g.texts.to_pylist()]) for g in found.groups}


def test_lines_are_grouped_by_beginning_and_lose_it() -> None:
    lines = [
        '{"type":"Reed","data":{"tag":"a"}}',
        '{"edge":"Tied","from":"a","to":"b"}',
        '{"type":"Reed","data":{"tag":"b"}}\r',
        '{"type":"Free","data":{}}',
    ]
    found = sort(lines)
    assert groups(found) == {
        "node:Reed": ([0, 2], [b'{"data":{"tag":"a"}}', b'{"data":{"tag":"b"}}']),
        "edge:Tied": ([1], [b'{"from":"a","to":"b"}']),
        "node:Free": ([3], [b'{"data":{}}']),
    }
    assert (found.unusual.tolist(), found.doubtful.tolist()) == ([], [])


def test_spaces_make_groups_of_their_own() -> None:
    lines = ['{"type": "Free", "data": {}}', '{"type":"Free","data":{}}', '{ "type" :"Free" ,"data":{}}'] * 2
    found = sort(lines)
    assert [(g.entity.name, g.lines.tolist()) for g in found.groups] == [
        ("Free", [0, 3]),
        ("Free", [1, 4]),
        ("Free", [2, 5]),
    ]
    assert {t.strip() for g in found.groups for t in g.texts.to_pylist()} == {b'{ "data": {}}', b'{"data":{}}'}


def test_texts_are_separated_lines() -> None:
    """Texts that ran into each other would still be read; blocks of them would not."""
    found = sort(['{"type":"Free","data":{}}'] * 3)
    assert found.groups[0].texts.to_pylist() == [b'{"data":{}}\n', b'{"data":{}}\n', b'{"data":{}}']


def test_lines_of_other_shapes_are_unusual() -> None:
    lines = [
        '{"data":{},"type":"Free"}',
        '{"type":"Free"}',
        ' {"type":"Free","data":{}}',
        '{"type":"Free","data":{}} ',
        '{"type":"Nobody","data":{}}',
        '{"type":"Fr\\u0065e","data":{}}',
        "{}",
        "[]",
        "x",
        '{"type":"Free","data":{}}',
    ]
    found = sort(lines)
    assert found.unusual.tolist() == list(range(9))
    assert groups(found)["node:Free"][0] == [9]


def test_blank_lines_and_comments_are_nowhere() -> None:
    found = sort(["", "  ", "\r", "// {}", "\t// x", '{"type":"Free","data":{}}', ""])
    assert groups(found)["node:Free"][0] == [5]
    assert (found.unusual.tolist(), found.doubtful.tolist()) == ([], [])


def test_lines_that_are_not_utf8_are_doubtful() -> None:
    good, bad = '{"type":"Free","data":{"name":"é"}}'.encode(), b'{"type":"Free","data":{"name":"\xff"}}'
    found = sort([good, bad, good, b"// \xff"])
    assert found.doubtful.tolist() == [1]
    assert groups(found)["node:Free"][0] == [0, 2]


def test_many_strange_lines_do_not_hide_the_others() -> None:
    strange = [f'{{"a{n}":1}}' for n in range(30)]
    usual = [json.dumps({"type": name, "data": {}}) for name in ("Free", "Reed", "Lists", "Flag")] * 500
    found = sort([*strange[:15], *usual, *strange[15:]])
    assert sum(len(g.lines) for g in found.groups) == 2000
    assert len(found.unusual) == 30


def test_more_strange_lines_than_are_tried() -> None:
    lines = [f'{{"a{n}":1}}' for n in range(500)] + ['{"type":"Free","data":{}}'] * 3
    found = sort(lines)
    assert len(found.unusual) + sum(len(g.lines) for g in found.groups) == 503


@pytest.mark.parametrize("length", range(1, 24))
def test_short_lines_at_the_end_of_the_block(length: int) -> None:
    line = '{"type":"Free","data":{}}'
    found = sort([line, line[:length] + "}"])
    grouped = [at for g in found.groups for at in g.lines.tolist()]
    assert sorted([*grouped, *found.unusual.tolist()]) == [0, 1]
    assert 0 in grouped


def test_long_type_names() -> None:
    name = "L" * 199
    found = sort(
        [f'{{"type":"{name}","data":{{}}}}', f'{{"type":"{name}2","data":{{}}}}', f'{{"type":"{name}23","data":{{}}}}']
    )
    assert found.unusual.tolist() == [0, 1, 2]


def test_what_ignored_members_may_hide() -> None:
    lines = [
        '{"type":"Free","data":{"zzz":1}}',
        '{"type":"Free","data":{"zzz":NaN}}',
        '{"type":"Free","data":{"zzz":-Infinity}}',
        '{"type":"Free","data":{"zzz":' + "[" * 150 + "]" * 150 + "}}",
        '{"type":"Free","data":{},"type":null}',
        '{"type":"Free","data":{},"\\u0065dge":null}',
    ]
    found = sort(lines, ignore_unknown=True)
    assert groups(found)["node:Free"][0] == [0]
    assert found.doubtful.tolist() == [1, 2, 3]
    assert found.unusual.tolist() == [4, 5]
    assert [g.lines.tolist() for g in sort(lines).groups] == [[0, 1, 2, 3, 4, 5]]


def test_text_lines_behave_like_a_list() -> None:
    for text in (b"", b"a", b"a\n", b"\n", b"a\n\nbc\r\n", b"\xff\n"):
        lines, expected = TextLines(text), text.split(b"\n")
        assert list(lines) == expected
        assert len(lines) == len(expected)
        assert [lines[-n - 1] for n in range(len(lines))] == expected[::-1]
        assert lines[0:2] == expected[0:2]
        assert lines.ends().tolist() == [int(s) + len(e) for s, e in zip(lines.starts, expected)]
        with pytest.raises(IndexError):
            lines[len(lines)]
        assert TextLines.joined(lines) is lines
        assert TextLines.joined(expected).text == text
