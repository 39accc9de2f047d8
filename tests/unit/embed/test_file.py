"""Vectors for the records of a file: what is written besides them is what was read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spark_omnigraph.embed.callables import embedder_of
from spark_omnigraph.embed.embedder import Embedder
from spark_omnigraph.embed.file import FileChoice, FileCounts, FileMode, FileSpec, Target, embed_lines, read_spec
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.embed.record_texts import Selector, parse_selector, rendered
from spark_omnigraph.errors import BadRequestError, EmbeddingError

SPEC = FileSpec(2, {"Memo": Target("vec", ("a", "b"))})


def run(lines: list[str], embedder: Embedder | None, **choices: Any) -> tuple[list[str], FileCounts]:
    counts = FileCounts()
    return list(embed_lines(lines, FileChoice(SPEC, **choices), embedder, counts)), counts


def asked(lines: list[str], **choices: Any) -> list[str]:
    """The texts that are asked for."""
    texts: list[str] = []

    def of(given: list[str]) -> list[list[float]]:
        texts.extend(given)
        return [[1.0, 0.0]] * len(given)

    run(lines, embedder_of(of), **choices)
    return texts


def test_numbers_and_names_stay_as_they_were_spelt() -> None:
    line = '{"type":"Memo","x":1.10,"data":{"vec":null,"a":1e2,"n":12345678901234567890123,"s":"\\u00e9/\\/"}}'
    kept = '{"edge":"E", "from":"a","to":"b" ,"data":{"w":0.50}}'
    (first, second), _ = run([line, f"  {kept}\n"], embedder_of(lambda texts: [[0, 2]]))
    assert first == (
        '{"type":"Memo","x":1.10,"data":{"vec":[0.0,1.0],"a":1e2,"n":12345678901234567890123,"s":"\\u00e9/\\/"}}'
    )
    assert second == kept


def test_equal_texts_are_asked_for_once() -> None:
    line = '{"type":"Memo","data":{"a":"x","b":[true,null,{"k":[1,"é"]},2.50,""]}}'
    assert asked([line] * 5) == ['type: Memo\na: x\nb: true, {"k":[1,"é"]}, 2.5']


def test_values_are_rendered_for_a_reader() -> None:
    values: list[object] = [None, True, 3, 1e16, " x ", [], {}, [[1], [None]]]
    assert [rendered(each) for each in values] == [
        "", "true", "3", "1e+16", "x", "", "{}", "1",
    ]  # laid out as a table  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "selectors", "wanted"),
    [
        (FileMode.FILL_MISSING, [], ["x", "z"]),
        (FileMode.REEMBED_ALL, [], ["x", "y", "z"]),
        (FileMode.FILL_MISSING, ["a=y"], ["y"]),
        (FileMode.FILL_MISSING, ["Memo:a= y ", "a=x"], ["x", "y"]),
        (FileMode.FILL_MISSING, ["Other:a=y"], []),
        (FileMode.FILL_MISSING, ["c=y"], []),
    ],
)
def test_which_rows_are_chosen(mode: FileMode, selectors: list[str], wanted: list[str]) -> None:
    rows = [{"a": "x"}, {"a": "y", "vec": [1, 2]}, {"a": " z", "vec": []}]
    lines = [json.dumps({"type": "Memo", "data": row}) for row in rows]
    texts = asked(lines, mode=mode, selectors=[parse_selector(text) for text in selectors])
    assert texts == [f"type: Memo\na: {each}" for each in wanted]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["", '{"type":"Memo","data":{}}', "", "{"], "line 2 is not valid JSON"),
        (['{"type":"Memo"}'], "line 1 is missing object field 'data'"),
        (['{"type":"Memo","data":[1]}'], "line 1 is missing object field 'data'"),
        (['{"type":"Memo","data":{"a":nul}}'], "line 1 is not valid JSON"),
        (['{"type":"Memo","data":{"a":1e999}}'], "line 1 is not valid JSON: Number out of range"),
        (['{"type":"Memo","data":{"title":' + "[" * 9000 + "]" * 9000 + "}}"], "line 1 is not valid JSON: .*recursion"),
        (["[" * 9000], "line 1 is not valid JSON"),
        (["[1, 2", '{"type":"Memo","data":{}}'], "line 1 is not valid JSON"),
    ],
)
def test_a_line_that_is_no_record_is_named(lines: list[str], message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        run(lines, MockEmbedder())


@pytest.mark.parametrize(
    "line", ["[1]", "3", '"x"', "{}", '{"type":3}', '{"type":"Other"}', '{"type":"Other","data":1}']
)
def test_what_is_no_entity_passes_through(line: str) -> None:
    lines, counts = run([line], MockEmbedder(), mode=FileMode.REEMBED_ALL)
    assert (lines, counts.rows, counts.selected_rows) == ([line], 1, 0)


def test_rows_without_a_vector_stay_within_a_bound() -> None:
    lines = [json.dumps({"type": "Memo", "data": {"a": str(number)}}) for number in range(4)]
    broken = embedder_of(lambda texts: [[0, 0], [1, 0], [0, 0], [0, 1]])
    counts = FileCounts()
    found = list(embed_lines(lines, FileChoice(SPEC), broken, counts, 2))
    assert [json.loads(line)["data"].get("vec") for line in found] == [None, [1, 0], None, [0, 1]]
    assert (counts.wanted_rows, counts.embedded_rows, counts.failed_rows) == (4, 2, 2)
    with pytest.raises(EmbeddingError, match=r"2 rows got no vector: line 1: embedding has zero norm.*; line 3: "):
        list(embed_lines(lines, FileChoice(SPEC), broken, FileCounts(), 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "the specification is not"),
        ('{"dimension": 2}', "`types`"),
        ('{"dimension": "2", "types": {}}', "dimension"),
        ('{"dimension": 0, "types": {}}', "embedding dimension must be greater than zero"),
        ('{"dimension": 2, "types": {"T": {"target": "v"}}}', "fields"),
        ('{"dimension": 2, "types": {}, "modle": 1}', "modle"),
    ],
)
def test_a_specification_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        read_spec(text)


def test_selectors() -> None:
    assert parse_selector("a=b=c") == Selector(None, "a", "b=c")
    assert parse_selector("T: a = x:y ") == Selector("T", "a", "x:y")
    for text in ("=x", "T:=x", " : =x"):
        with pytest.raises(BadRequestError, match="selector field cannot be empty"):
            parse_selector(text)
