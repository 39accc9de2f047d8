"""Parsing by columns where some texts spoil the others: what is good still comes out, in few calls."""

from __future__ import annotations

import numpy as np
import pytest

from spark_omnigraph.catalog.types import EntityType
from spark_omnigraph.records.jsonl import parse
from spark_omnigraph.records.jsonl.column_prefilter import ColumnPrefilter
from spark_omnigraph.records.jsonl.envelope import EnvelopeReader
from spark_omnigraph.records.jsonl.parse import TextParser, joined_texts
from spark_omnigraph.records.jsonl.record_layout import EndForm, RecordLayout, guess_layout
from tests.unit.records.builders import CATALOG

REED, LOT_EDGE = CATALOG.nodes["Reed"], CATALOG.edges["Placed"]


class CountingParser(TextParser):
    """Notes the sizes of what it tries to read."""

    tried: list[int]

    def _read(self, given: parse._Texts, plan: RecordLayout) -> parse.ParsedTexts | None:
        self.tried.append(len(given.positions))
        return super()._read(given, plan)


def parser(entity: EntityType = REED, refuse_unknown: bool = True) -> CountingParser:
    made = CountingParser(CATALOG, entity, refuse_unknown)
    made.tried = []
    return made


def positions(made: TextParser, texts: list[bytes]) -> list[int]:
    return sorted(np.concatenate([[], *(p.positions for p in made.parse(joined_texts(texts)))]).astype(int).tolist())


def good(count: int) -> list[bytes]:
    return [b'{"data":{"tag":"%d","a":1}}' % n for n in range(count)]


def test_good_texts_are_read_at_once() -> None:
    made = parser()
    assert positions(made, good(5000)) == list(range(5000))
    assert made.tried == [5000]


def test_nothing_to_read() -> None:
    assert positions(parser(), []) == []


def test_one_bad_text_costs_its_block_a_second_look() -> None:
    made, texts = parser(), good(5000)
    texts[3000] = b'{"data":{"tag":5}}'
    assert positions(made, texts) == [n for n in range(5000) if n != 3000]
    assert made.tried == [5000, 2048, 2048, 904, 2047]
    made.tried.clear()
    assert positions(made, texts) == [n for n in range(5000) if n != 3000]
    assert made.tried == [2048, 2048, 904, 2047], "the second chunk expects bad texts"
    made.tried.clear()
    positions(made, good(5000))
    positions(made, good(5000))
    assert made.tried == [2048, 2048, 904, 5000], "and is at ease again after a good one"


def test_bad_texts_everywhere_are_filtered_first_from_the_second_chunk_on() -> None:
    made, texts = parser(), good(5000)
    for n in range(0, 5000, 100):
        texts[n] = b'{"data":{"tag":"x","a":"1"}}'
    expected = [n for n in range(5000) if n % 100]
    assert positions(made, texts) == expected
    made.tried.clear()
    assert positions(made, texts) == expected
    assert made.tried == [len(expected)]
    positions(made, good(5000))
    made.tried.clear()
    positions(made, good(5000))
    assert made.tried == [5000]


@pytest.mark.parametrize("bad", [b'{"data":{"tag":"x","d":18446744073709551616}}', b'{"data":{"tag":"x","tag":"y"}}'])
def test_what_the_prefilter_lets_pass_is_halved_off(bad: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "_LEAF", 4)
    texts = good(200)
    texts[77] = bad
    found = positions(parser(), texts)
    assert 77 not in found
    assert set(range(200)) - set(found) <= set(range(70, 85))
    assert len(found) >= 196


def test_texts_that_add_up_to_the_right_number_of_rows_are_refused() -> None:
    texts = [b'{"data":{"tag":"x"}}', b'{"data":{"tag":"y"}}{"data":{"tag":"z"}}', b'{"data":{"tag":"w"}} null}']
    assert positions(parser(), texts) == [0]
    assert positions(parser(refuse_unknown=False), texts) == [0]


def test_ids_that_the_sample_does_not_show_are_still_found() -> None:
    texts = good(100)
    texts[50] = b'{"data":{"tag":"50","id":"50"}}'
    made = parser()
    found = list(made.parse(joined_texts(texts)))
    assert sorted(np.concatenate([p.positions for p in found]).tolist()) == list(range(100))
    assert any(p.layout.has_ids for p in found)


def test_the_layout_follows_the_sample() -> None:
    sample = [
        b'{"data":{"tag":"x"}}',
        b"broken",
        b'{"data":{"tag":"x","a":1,"h":null,"id":"x"},"note":1}',
        b'{"data":{"tag":"x","a":2.0,"h":19727,"i":"2024-01-05"}}',
    ]
    plan = guess_layout(CATALOG, REED, sample)
    wide = {reading.prop.name for reading in plan.readings if reading.wide}
    whole = {reading.prop.name for reading in plan.readings if reading.whole}
    assert (wide, whole, plan.has_ids, plan.extra) == ({"a"}, {"h"}, True, True)
    edges = [b'{"from":["n",1],"to":5}']
    assert guess_layout(CATALOG, LOT_EDGE, edges).ends == (EndForm.LIST, EndForm.WHOLE)
    assert guess_layout(CATALOG, LOT_EDGE, [b'{"from":"x","to":true}']).ends == (EndForm.TEXT, EndForm.TEXT)
    assert not guess_layout(CATALOG, REED, []).extra


def test_the_prefilter_finds_wrong_kinds() -> None:
    plan = guess_layout(CATALOG, REED, [])
    texts = [
        b'{"data":{"tag":"x","a":1,"v":[1,2.5],"k":[1,null],"g":true}}',
        b'{"data":{"tag":"x","a":"1"}}',
        b'{"data":{"tag":"x","a":2147483648}}',
        b'{"data":{"a":1}}',
        b'{"data":{"tag":"x","v":[1]}}',
        b'{"data":{"tag":"x","zzz":1}}',
        b'{"data":{"tag":"x"},"zzz":1}',
        b'{"data":{"tag":"x"}',
        b'{"data":{"tag":"\xff"}}',
        b"{}",
        b'{"data":' + b"[" * 100_000,
    ]
    assert ColumnPrefilter(REED, plan, refuse_unknown=True).passing(texts) == [0]
    assert ColumnPrefilter(REED, plan, refuse_unknown=False).passing(texts) == [0, 5, 6]


def test_envelopes_are_taken_apart() -> None:
    reader = EnvelopeReader(CATALOG)
    read = reader.read(b' {"to":null,"data": {"tag" : "a"} ,"type":"Reed"} ')
    assert read is not None
    assert (read[0].name, read[1]) == ("Reed", b'{"data":{"tag" : "a"}}')
    read = reader.read(b'{"to":"b","edge":"tied","from":"a"}')
    assert read is not None
    assert (read[0].name, read[1]) == ("Tied", b'{"from":"a","to":"b"}')
    for line in (
        b'{"type":"Nobody"}',
        b'{"type":5}',
        b"{}",
        b"[]",
        b'{"type":"Reed"',
        b'{"type":"Reed"} x',
        b'{"x":' + b"[" * 200 + b"]" * 200 + b',"type":"Reed"}',
        b'{"type":"Re\xff"}',
        b'{"type":"Reed","x":1}',
        b'{"type":"Reed","edge":"Tied","from":"a","to":"b"}',
        b'{"type":"Reed","to":"b","data":{"tag":"a"}}',
        b'{"type":"Reed","data":{"tag":"a"},"data":{"tag":"b"}}',
        b'{"edge":"Tied","from":"a","fr\\u006fm":"b","to":"b"}',
    ):
        assert reader.read(line) is None
    assert reader.strip(b'{"data":{},"x":1}', is_edge=False) is None
    assert reader.strip(b'{"data":{},"type":"Reed"}', is_edge=False) is None
    assert reader.strip(b'{"data":{},"from":null}', is_edge=False) == b'{"data":{}}'
    assert reader.strip(b'{"data":{},"type":null,"from":null}', is_edge=False) is None, "a second type, and a null one"
