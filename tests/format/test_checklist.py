"""The minimum that the reference engine needs to open a graph, item by item, read with pylance alone."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from tests.format.sample import GAUGE, WIDE_SCHEMA
from tests.support.graph_files import Pin, commit_rows, internal, manifest_rows, pins, recovery_files, schema_files

ITEM = {name: pa.field("item", kind, nullable=True) for name, kind in (("f", pa.float32()), ("s", pa.string()))}
MANIFEST_SCHEMA = pa.schema(
    [
        pa.field("object_id", pa.string(), False, {"lance-schema:unenforced-primary-key": "true"}),
        pa.field("object_type", pa.string(), False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.field("item", pa.string()))),
        pa.field("table_key", pa.string(), False),
        pa.field("table_version", pa.uint64()),
        pa.field("table_branch", pa.string()),
        pa.field("row_count", pa.uint64()),
    ]
)
COMMIT_SCHEMA = pa.schema(
    [
        pa.field("graph_commit_id", pa.string(), False),
        pa.field("manifest_branch", pa.string()),
        pa.field("manifest_version", pa.uint64(), False),
        pa.field("parent_commit_id", pa.string()),
        pa.field("merged_parent_commit_id", pa.string()),
        pa.field("created_at", pa.timestamp("us"), False),
    ]
)
ACTOR_SCHEMA = pa.schema(
    [
        pa.field("graph_commit_id", pa.string(), False),
        pa.field("actor_id", pa.string(), False),
        pa.field("created_at", pa.timestamp("us"), False),
    ]
)
BLOB = pa.struct([pa.field("data", pa.large_binary()), pa.field("uri", pa.string())])
ID = pa.field("id", pa.string(), False)
ENDS = [pa.field("src", pa.string(), False), pa.field("dst", pa.string(), False)]
TABLE_SCHEMAS = {
    "node:Person": [
        ID,
        pa.field("age", pa.int32()),
        pa.field("label", pa.string()),
        pa.field("name", pa.string(), False),
        pa.field("zip", pa.int32()),
    ],
    "node:Gauge": [
        ID,
        pa.field("at", pa.date64()),
        pa.field("blob", BLOB, True, {"ARROW:extension:name": "lance.blob.v2"}),
        pa.field("bool", pa.bool_()),
        pa.field("color", pa.string()),
        pa.field("day", pa.date32()),
        pa.field("f32", pa.float32()),
        pa.field("f64", pa.float64()),
        pa.field("i32", pa.int32()),
        pa.field("i64", pa.int64()),
        pa.field("must", pa.int32(), False),
        pa.field("tag", pa.string(), False),
        pa.field("times", pa.list_(pa.field("item", pa.date64()))),
        pa.field("u32", pa.uint32()),
        pa.field("u64", pa.uint64()),
        pa.field("vector", pa.list_(ITEM["f"], 3)),
        pa.field("words", pa.list_(ITEM["s"])),
    ],
    "node:Note": [ID, pa.field("text", pa.string(), False)],
    "node:Lot": [ID, pa.field("area", pa.string(), False), pa.field("num", pa.int32(), False)],
    "edge:Knows": [ID, *ENDS, pa.field("since", pa.date32())],
    "edge:Wrote": [ID, *ENDS],
    "edge:Idle": [ID, *ENDS],
}


def fnv1a64(text: str) -> str:
    state = 0xCBF29CE484222325
    for byte in text.encode():
        state = ((state ^ byte) * 0x100000001B3) % 2**64
    return f"{state:016x}"


@pytest.fixture(scope="module")
def snapshot(loaded: Path) -> dict[str, Pin]:
    return pins(loaded)


# 1, 2: schema files


def test_schema_source_is_kept_as_given(loaded: Path) -> None:
    assert (loaded / "_schema.pg").read_bytes() == WIDE_SCHEMA.encode()


def test_schema_state_names_the_hash_of_the_compact_ir(loaded: Path) -> None:
    _, ir, state = schema_files(loaded)
    compact = json.dumps(ir, separators=(",", ":"), ensure_ascii=False)
    assert state == {
        "format_version": 1,
        "schema_ir_hash": f"sha256:{hashlib.sha256(compact.encode()).hexdigest()}",
        "schema_identity_version": 1,
    }


@pytest.mark.parametrize("name", ["_schema.ir.json", "__schema_state.json"])
def test_schema_json_is_pretty_printed_in_key_order(loaded: Path, name: str) -> None:
    text = (loaded / name).read_text(encoding="utf-8")
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False)


# 3: the manifest dataset


def test_manifest_dataset_parameters(loaded: Path) -> None:
    ds = internal(loaded, "__manifest")
    assert ds.schema.equals(MANIFEST_SCHEMA, check_metadata=False)
    assert ds.schema.field("object_id").metadata[b"lance-schema:unenforced-primary-key"] == b"true"
    assert [f.name for f in ds.schema if f.metadata] == ["object_id"]
    assert ds.has_stable_row_ids
    assert ds.data_storage_version == "2.2"
    assert ds.schema.metadata == {b"omnigraph:internal_schema_version": b"3"}
    assert ds.config() == {"table_version_management": "true"}


# 4, 5: tables


def test_every_type_has_its_dataset_and_its_manifest_rows(loaded: Path, snapshot: dict[str, Pin]) -> None:
    assert snapshot.keys() == TABLE_SCHEMAS.keys()
    for key, pin in snapshot.items():
        kind, name = key.split(":")
        assert pin.location == f"{kind}s/{fnv1a64(name)}"
        assert (loaded / pin.location / "_versions").is_dir()
    registered = [row for row in manifest_rows(loaded) if row["object_type"] == "table"]
    assert sorted(row["object_id"] for row in registered) == sorted(TABLE_SCHEMAS)
    for row in registered:
        assert row["object_id"] == row["table_key"]
        assert [row[c] for c in ("metadata", "table_version", "table_branch", "row_count")] == [None] * 4


@pytest.mark.parametrize("table_key", TABLE_SCHEMAS)
def test_table_columns(loaded: Path, snapshot: dict[str, Pin], table_key: str) -> None:
    ds = snapshot[table_key].open(loaded)
    stored = pa.schema([as_written(field) for field in ds.schema])
    assert stored.equals(pa.schema(TABLE_SCHEMAS[table_key]), check_metadata=True)
    assert not ds.schema.metadata
    assert ds.has_stable_row_ids
    assert ds.data_storage_version == "2.2"
    assert ds.config() == {}


def as_written(field: pa.Field) -> pa.Field:
    """Blob columns come back as an extension type; what is compared is their storage."""
    if isinstance(field.type, pa.BaseExtensionType):
        name = {"ARROW:extension:name": field.type.extension_name}
        return pa.field(field.name, field.type.storage_type, field.nullable, name)
    return field


def test_a_vector_is_a_fixed_size_list_that_any_lance_reader_knows(loaded: Path, snapshot: dict[str, Pin]) -> None:
    ds = lance.dataset(str(loaded / snapshot["node:Gauge"].location))
    assert str(ds.schema.field("vector").type) == "fixed_size_list<item: float>[3]"
    rows = {row["id"]: row["vector"] for row in ds.to_table(columns=["id", "vector"]).to_pylist()}
    assert rows == {"g1": [1.0, 2.5, -3.0], "g2": None}


def test_values_are_stored_as_declared(loaded: Path, snapshot: dict[str, Pin]) -> None:
    columns = [name for name in GAUGE if name not in ("blob", "at", "times", "day")]
    (row,) = snapshot["node:Gauge"].open(loaded).to_table(columns=columns, filter="id = 'g1'").to_pylist()
    expected = {name: GAUGE[name] for name in columns}
    assert row == {**expected, "f32": pytest.approx(0.1, rel=1e-7)}
    times = snapshot["node:Gauge"].open(loaded).to_table(columns=["at", "day", "times"], filter="id = 'g1'")
    assert times["at"].cast(pa.int64()).to_pylist() == [1500]
    assert times["day"].cast(pa.int32()).to_pylist() == [1]
    assert times["times"].combine_chunks().flatten().cast(pa.int64()).to_pylist() == [0]


def test_blob_bytes_are_read_back(loaded: Path, snapshot: dict[str, Pin]) -> None:
    ds = snapshot["node:Gauge"].open(loaded)
    ids = ds.to_table(columns=["id"])["id"].to_pylist()
    (blob,) = ds.take_blobs("blob", indices=[ids.index("g1")])
    assert blob is not None
    assert blob.readall() == b"\x01\x02\x03"


# 6, 7: versions


def test_version_rows_carry_the_manifest_path_of_their_dataset(loaded: Path) -> None:
    rows = [row for row in manifest_rows(loaded) if row["object_type"] == "table_version"]
    located = {row["table_key"]: row["location"] for row in manifest_rows(loaded) if row["object_type"] == "table"}
    for row in rows:
        version = row["table_version"]
        assert row["object_id"] == f"{row['table_key']}${version:020d}"
        assert (row["location"], row["base_objects"]) == (None, None)
        metadata = json.loads(row["metadata"])
        assert list(metadata) == ["manifest_path", "manifest_size", "e_tag", "naming_scheme"]
        assert json.dumps(metadata, separators=(",", ":"), ensure_ascii=False) == row["metadata"]
        file = f"_versions/{2**64 - 1 - version:020d}.manifest"
        assert metadata["manifest_path"] == f"{loaded}/{located[row['table_key']]}/{file}".lstrip("/")
        assert metadata["naming_scheme"] == "V2"
        if metadata["manifest_size"] is not None:
            assert metadata["manifest_size"] == Path("/" + metadata["manifest_path"]).stat().st_size


def test_every_head_is_pinned(loaded: Path, snapshot: dict[str, Pin]) -> None:
    for pin in snapshot.values():
        assert pin.head(loaded).version == pin.version, pin
        assert pin.open(loaded).count_rows() == pin.row_count, pin


def test_tables_that_no_load_touched_stay_at_version_one(snapshot: dict[str, Pin]) -> None:
    assert snapshot["edge:Idle"].version == 1


# 8: nothing left behind


def test_the_root_holds_nothing_else(loaded: Path) -> None:
    names = {path.name for path in loaded.iterdir()}
    required = {"_schema.pg", "_schema.ir.json", "__schema_state.json", "__manifest", "nodes", "edges"}
    history = {"_graph_commits.lance", "_graph_commit_actors.lance"}
    assert required | history <= names
    assert names - required - history <= {"__recovery", "_graph_commit_recoveries.lance"}
    assert recovery_files(loaded) == []
    assert [b for b in internal(loaded, "__manifest").branches.list() if b.startswith("__")] == []


# 9: identity


def test_ids_are_keys_and_unique_and_edges_end_at_nodes(loaded: Path, snapshot: dict[str, Pin]) -> None:
    tables = {key: pin.open(loaded) for key, pin in snapshot.items()}
    ids = {}
    for key, ds in tables.items():
        found = ds.to_table(columns=["id"])["id"].to_pylist()
        ids[key] = set(found)
        assert len(ids[key]) == len(found), key
    people = tables["node:Person"].to_table(columns=["id", "name"])
    assert people["id"].to_pylist() == people["name"].to_pylist()
    assert ids["node:Lot"] == {'["n","7"]'}
    for edge_key, source, target in (
        ("edge:Knows", "node:Person", "node:Person"),
        ("edge:Wrote", "node:Person", "node:Note"),
    ):
        ends = tables[edge_key].to_table(columns=["src", "dst"])
        assert set(ends["src"].to_pylist()) <= ids[source]
        assert set(ends["dst"].to_pylist()) <= ids[target]
    assert ids["node:Note"] == {"n2"}


def test_generated_edge_ids_are_ulids(loaded: Path, snapshot: dict[str, Pin]) -> None:
    (made,) = snapshot["edge:Wrote"].open(loaded).to_table(columns=["id"])["id"].to_pylist()
    assert len(made) == 26
    assert set(made) <= set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


# 10: history


def test_history_datasets(loaded: Path) -> None:
    for name, schema in (("_graph_commits.lance", COMMIT_SCHEMA), ("_graph_commit_actors.lance", ACTOR_SCHEMA)):
        ds = internal(loaded, name)
        assert ds.schema.equals(schema, check_metadata=True)
        assert (ds.has_stable_row_ids, ds.data_storage_version, ds.config()) == (True, "2.2", {})


def test_one_commit_a_publish_in_one_line(loaded: Path) -> None:
    rows = commit_rows(loaded)
    assert len(rows) == 6
    assert [row["parent_commit_id"] for row in rows] == [None] + [row["graph_commit_id"] for row in rows[:-1]]
    assert rows[0]["manifest_version"] == 3
    assert len({row["manifest_version"] for row in rows}) == 6
    assert {row["manifest_branch"] for row in rows} == {None}
    named = internal(loaded, "_graph_commit_actors.lance").to_table().to_pylist()
    actors = {row["graph_commit_id"]: row["actor_id"] for row in named}
    assert [actors.get(row["graph_commit_id"]) for row in rows] == [None, "act-one", None, None, "act-two", None]


def test_every_commit_can_be_read_again(loaded: Path) -> None:
    people = [pins(loaded, version=row["manifest_version"])["node:Person"].row_count for row in commit_rows(loaded)]
    assert people == [0, 4, 4, 4, 5, 5]


# 11: publishes


def test_the_manifest_changes_only_through_merge_insert(loaded: Path) -> None:
    ds = internal(loaded, "__manifest")
    for version in range(4, ds.version + 1):
        transaction = ds.read_transaction(version)
        assert transaction is not None
        assert type(transaction.operation).__name__ == "Update", version


def test_rows_of_our_own_kind_are_ignorable(loaded: Path) -> None:
    known = {"table", "table_version", "table_tombstone"}
    own = [row for row in manifest_rows(loaded) if row["object_type"] not in known]
    assert {row["object_type"] for row in own} >= {"x_publish"}
    for row in own:
        assert row["object_type"].startswith("x_")
        assert row["object_id"].startswith("x:")
    (sentinel,) = [row for row in own if row["object_id"] == "x:publish"]
    assert sentinel["table_key"] == ""
    assert {"operation", "commit", "parent", "actor", "base"} <= json.loads(sentinel["metadata"]).keys()


# 10 and 5.8: branches


def test_a_branch_has_its_refs_and_forks_only_what_it_wrote(loaded: Path, snapshot: dict[str, Pin]) -> None:
    for name in ("__manifest", "_graph_commits.lance"):
        assert "team/draft" in internal(loaded, name).branches.list()
        assert (loaded / name / "_refs" / "branches" / "team%2Fdraft.json").is_file()
    draft = pins(loaded, "team/draft")
    assert {key: pin.branch for key, pin in draft.items()} == {
        key: "team/draft" if key == "node:Person" else None for key in TABLE_SCHEMAS
    }
    forked = draft["node:Person"]
    assert forked.version > snapshot["node:Person"].version
    assert forked.head(loaded).version == forked.version
    assert forked.open(loaded).count_rows() == 6
    assert snapshot["node:Person"].open(loaded).count_rows() == 5
    own = commit_rows(loaded, "team/draft")[-1]
    assert own["manifest_branch"] == "team/draft"
    assert own["parent_commit_id"] == commit_rows(loaded)[-1]["graph_commit_id"]


# indexes: what a load builds after its publish


@pytest.mark.parametrize(
    ("table_key", "expected"),
    [
        ("node:Person", {"id": "BTree", "name": "Inverted", "age": "BTree"}),
        ("node:Gauge", {"id": "BTree", "tag": "Inverted", "vector": "IVF_FLAT", "color": "BTree"}),
        ("node:Note", {"id": "BTree"}),
        ("node:Lot", {"id": "BTree"}),
        ("edge:Knows", {"id": "BTree", "src": "BTree", "dst": "BTree"}),
        ("edge:Idle", {}),
    ],
)
def test_declared_indexes_exist_under_their_default_names(
    loaded: Path, snapshot: dict[str, Pin], table_key: str, expected: dict[str, str]
) -> None:
    described = snapshot[table_key].open(loaded).describe_indices()
    found = {index.field_names[0]: (index.index_type, index.name) for index in described}
    assert {column: kind for column, (kind, _) in found.items()} == expected
    assert all(name == f"{column}_idx" for column, (_, name) in found.items())
