"""The test vectors of the storage format: hashes, schema IR, manifest rows and commit of a fresh graph."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import lance
import pytest

from spark_omnigraph.catalog.identity import TableKey, fnv1a32, fnv1a64_hex, prop_id, table_path, type_id
from tests.format.sample import APPENDIX_SCHEMA
from tests.support.graph_files import commit_rows, internal, manifest_rows

COMPACT_IR = (
    '{"ir_version":1,"interfaces":[],"nodes":[{"name":"Person","type_id":3227219152,"annotations":[],"implements":[],'
    '"properties":[{"name":"age","prop_id":3446138241,"prop_type":{"scalar":"I32","nullable":true,"list":false,'
    '"enum_values":null},"annotations":[]},{"name":"name","prop_id":1466009789,"prop_type":{"scalar":"String",'
    '"nullable":false,"list":false,"enum_values":null},"annotations":[{"name":"key","value":null}]}],'
    '"constraints":[{"Key":["name"]}]}],"edges":[{"name":"Knows","type_id":2041814322,"from_type":"Person",'
    '"to_type":"Person","cardinality":{"min":0,"max":null},"annotations":[],"properties":[{"name":"since",'
    '"prop_id":2596498354,"prop_type":{"scalar":"Date","nullable":true,"list":false,"enum_values":null},'
    '"annotations":[]}],"constraints":[]}]}'
)
IR_HASH = "sha256:8e46adc503b0cbcdeb913b1109f08992bf2297ca125992020c20bfe4fe069343"


@pytest.mark.parametrize(
    ("name", "digits"),
    [
        ("Person", "40d76f1f51639ec0"),
        ("Company", "7cb4e55c59663b1c"),
        ("Knows", "602a25a3bd0b455b"),
        ("WorksAt", "844eefbe5068b644"),
    ],
)
def test_table_hashes(name: str, digits: str) -> None:
    assert fnv1a64_hex(name) == digits
    assert table_path(TableKey.node(name)) == f"nodes/{digits}"
    assert table_path(TableKey.edge(name)) == f"edges/{digits}"


def test_type_and_property_ids() -> None:
    assert fnv1a32("node:Person") == type_id("node", "Person") == 3227219152
    assert prop_id("node", "Person", "name") == 1466009789
    assert prop_id("node", "Person", "age") == 3446138241
    assert type_id("edge", "Knows") == 2041814322
    assert prop_id("edge", "Knows", "since") == 2596498354


def test_schema_ir_and_state_of_the_sample(fresh: Path) -> None:
    assert f"sha256:{hashlib.sha256(COMPACT_IR.encode()).hexdigest()}" == IR_HASH
    assert (fresh / "_schema.ir.json").read_text(encoding="utf-8") == json.dumps(json.loads(COMPACT_IR), indent=2)
    assert (fresh / "__schema_state.json").read_text(encoding="utf-8") == (
        f'{{\n  "format_version": 1,\n  "schema_ir_hash": "{IR_HASH}",\n  "schema_identity_version": 1\n}}'
    )
    assert (fresh / "_schema.pg").read_text(encoding="utf-8") == APPENDIX_SCHEMA


def test_manifest_rows_of_the_fresh_sample(fresh: Path) -> None:
    columns = ("object_id", "object_type", "location", "table_key", "table_version", "row_count")
    rows = {tuple(row[column] for column in columns) for row in manifest_rows(fresh)}
    assert rows == {
        ("node:Person", "table", "nodes/40d76f1f51639ec0", "node:Person", None, None),
        ("node:Person$00000000000000000001", "table_version", None, "node:Person", 1, 0),
        ("edge:Knows", "table", "edges/602a25a3bd0b455b", "edge:Knows", None, None),
        ("edge:Knows$00000000000000000001", "table_version", None, "edge:Knows", 1, 0),
    }


def test_versions_after_init(fresh: Path) -> None:
    assert internal(fresh, "__manifest").version == 3
    assert internal(fresh, "_graph_commits.lance").version == 1
    assert internal(fresh, "_graph_commit_actors.lance").version == 1
    assert internal(fresh, "_graph_commit_actors.lance").count_rows() == 0
    for location in ("nodes/40d76f1f51639ec0", "edges/602a25a3bd0b455b"):
        ds = lance.dataset(str(fresh / location))
        assert (ds.version, ds.count_rows(), ds.describe_indices()) == (1, 0, [])
        assert (fresh / location / "_versions" / "18446744073709551614.manifest").is_file()


def test_genesis_commit(fresh: Path) -> None:
    (genesis,) = commit_rows(fresh)
    assert genesis["manifest_version"] == 3
    assert genesis["manifest_branch"] is None
    assert (genesis["parent_commit_id"], genesis["merged_parent_commit_id"]) == (None, None)
    assert len(genesis["graph_commit_id"]) == 26


def test_column_order_of_the_sample(fresh: Path) -> None:
    assert lance.dataset(str(fresh / "nodes/40d76f1f51639ec0")).schema.names == ["id", "age", "name"]
    assert lance.dataset(str(fresh / "edges/602a25a3bd0b455b")).schema.names == ["id", "src", "dst", "since"]
