"""Schemas and records of the format tests."""

from __future__ import annotations

import json

from tests.support.cases import Json

APPENDIX_SCHEMA = """\
node Person {
    name: String @key
    age: I32?
}

edge Knows: Person -> Person {
    since: Date?
}
"""

WIDE_SCHEMA = """\
// Every property type, keys of three kinds, a keyless type, an interface.
interface Labelled { label: String? }

node Person implements Labelled {
    name: String @key
    zip: I32?
    age: I32? @index
}
node Gauge {
    tag: String @key
    bool: Bool?
    i32: I32?
    i64: I64?
    u32: U32?
    u64: U64?
    f32: F32?
    f64: F64?
    day: Date?
    at: DateTime?
    vector: Vector(3)? @index
    blob: Blob?
    words: [String]?
    times: [DateTime]?
    color: enum(red, amber, green)? @index
    must: I32
}
node Note { text: String }
node Lot {
    num: I32
    area: String
    @key(num, area)
}
edge Knows: Person -> Person { since: Date? }
edge Wrote: Person -> Note
edge Idle: Lot -> Lot
"""

GAUGE = {
    "tag": "g1",
    "bool": True,
    "i32": -2147483648,
    "i64": 9223372036854775807,
    "u32": 4294967295,
    "u64": 18446744073709551615,
    "f32": 0.1,
    "f64": 0.1,
    "day": "1970-01-02",
    "at": "1970-01-01T00:00:01.5Z",
    "vector": [1, 2.5, -3],
    "blob": "base64:AQID",
    "words": ["a", None],
    "times": ["1970-01-01T00:00:00Z"],
    "color": "red",
    "must": 1,
}


def node(kind: str, /, **data: Json) -> str:
    return json.dumps({"type": kind, "data": data})


def edge(kind: str, source: str, target: str, /, **data: Json) -> str:
    return json.dumps({"edge": kind, "from": source, "to": target, "data": data})
