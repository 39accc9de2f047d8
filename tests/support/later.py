"""Graphs of later formats: samples that the reference engine wrote, and graphs of ours made over into such layouts."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from collections.abc import Iterable
from pathlib import Path

import lance
import pyarrow as pa

from spark_omnigraph.graph.handle import Graph
from spark_omnigraph.manifest.lineage import Commit
from spark_omnigraph.storage.rebase import rebased
from tests.support.cases import Json
from tests.support.graph_files import internal

SAMPLES = Path(__file__).parents[1] / "format" / "samples"
STAMP = "omnigraph:internal_schema_version"
RELEASES = ("0.8.0", "0.9.0")
DOMAIN = "01M8HAXTNZN7AA51TCEE3KGMC0"
_ID_FIELDS = [pa.field("stable_table_id", pa.uint64()), pa.field("table_incarnation_id", pa.uint64())]
_KEY = {"lance-schema:unenforced-primary-key": "true"}


def sample(folder: Path, release: str) -> Path:
    """A sample, unpacked, with forks that begin where it stands now; the folder that holds `graph/`."""
    with tarfile.open(SAMPLES / f"release-{release}.tar.gz") as packed:
        packed.extractall(folder, filter="data")
    root = folder / "graph"
    for file in root.rglob("*.manifest"):
        path = file.relative_to(root).as_posix()
        location = path.partition("/_versions/")[0].partition("/tree/")[0]
        file.write_bytes(rebased(file.read_bytes(), location, str(root)))
    return folder


def records(lines: Iterable[str]) -> list[Json]:
    """Exported records in a fixed order; instants as milliseconds, which releases spell in different ways."""
    found = [json.loads(line) for line in lines]
    for each in found:
        if each["data"].get("seen") in ("1969-12-31T23:59:59.999", "1969-12-31T23:59:59.999Z"):
            each["data"]["seen"] = -1
    return sorted(found, key=lambda each: json.dumps(each, sort_keys=True))


def recorded_commits(folder: Path, branch: str) -> list[Commit]:
    """What the engine itself told of a branch, oldest first."""
    told = json.loads((folder / f"commits-{branch}.json").read_text())["commits"]
    found = [
        Commit(
            c["graph_commit_id"],
            c["manifest_branch"],
            c["manifest_version"],
            c["parent_commit_id"],
            c["merged_parent_commit_id"],
            c["created_at"],
            c["actor_id"],
        )
        for c in told
    ]
    return sorted(found, key=lambda c: c.manifest_version)


def made_over(root: Path, stamp: int) -> Path:
    """A graph of ours on main alone becomes one of a later stamp in its place, version by version of its manifest."""
    graph = Graph.open(root)
    commits, newest = graph.commits(), graph.snapshot().version
    states = {v: internal(root, "__manifest", version=max(v, 3)).to_table().to_pylist() for v in range(1, newest + 1)}
    ids = {key: (10 + i, 100 + i) for i, key in enumerate(sorted({r["table_key"] for r in states[newest]} - {""}))}
    if stamp >= 5:
        for key, pair in ids.items():
            place = next(r["location"] for r in states[newest] if r["object_id"] == key)
            (root / place).rename(root / _path(key, pair))
        _write_documents(graph, root, ids)
    for name in ("_graph_commits.lance", "_graph_commit_actors.lance", "__manifest"):
        shutil.rmtree(root / name)
    for version, rows in states.items():
        shown = [_row(row, ids if stamp >= 5 else None) for row in rows if row["object_type"].startswith("table")]
        shown += [_commit(commit) for commit in commits if commit.manifest_version <= version]
        write_manifest(root, shown, stamp, first=version == 1)
    return root


def write_manifest(root: Path, rows: list[Json], stamp: int | str | None, *, first: bool = False) -> None:
    """One more version of a manifest, or the first; without a stamp where there is None."""
    columns = [pa.field(*f) for f in _FIELDS]
    columns[0] = columns[0].with_metadata(_KEY)
    columns[6:6] = _ID_FIELDS if str(stamp) in ("5", "6") or any("stable_table_id" in row for row in rows) else []
    schema = pa.schema(columns, metadata={} if stamp is None else {STAMP: str(stamp)})
    table = pa.Table.from_pylist([{"table_key": "", **row} for row in rows], schema=schema)
    lance.write_dataset(
        table,
        root / "__manifest",
        schema=schema,
        mode="create" if first else "overwrite",
        data_storage_version="2.2",
        enable_stable_row_ids=True,
    )


_FIELDS: list[tuple[str, pa.DataType, bool]] = [
    ("object_id", pa.string(), False),
    ("object_type", pa.string(), False),
    ("location", pa.string(), True),
    ("metadata", pa.string(), True),
    ("base_objects", pa.list_(pa.string()), True),
    ("table_key", pa.string(), False),
    ("table_version", pa.uint64(), True),
    ("table_branch", pa.string(), True),
    ("row_count", pa.uint64(), True),
]


def table_id(kind: str, pair: tuple[int, int], version: int | None = None) -> str:
    """The object id of a row from stamp 5 on."""
    return f"{kind}:{pair[0]:016x}:{pair[1]:016x}" + ("" if version is None else f":{version:020d}")


def _row(row: Json, ids: dict[str, tuple[int, int]] | None) -> Json:
    shown = {name: row[name] for name, _, _ in _FIELDS if name != "base_objects"}
    if ids is not None:
        key, pair = row["table_key"], ids[row["table_key"]]
        shown |= {"object_id": table_id(row["object_type"], pair, row["table_version"])}
        shown |= {"stable_table_id": pair[0], "table_incarnation_id": pair[1]}
        if row["location"] is not None:
            shown["location"] = _path(key, pair)
    return shown


def _path(key: str, pair: tuple[int, int]) -> str:
    return f"{key.partition(':')[0]}s/{pair[0]:016x}-{pair[1]:016x}"


def _commit(commit: Commit) -> Json:
    told = {
        "parent_commit_id": commit.parent,
        "merged_parent_commit_id": commit.merged_parent,
        "actor_id": commit.actor,
        "created_at": commit.created_micros,
    }
    metadata = json.dumps({name: value for name, value in told.items() if value is not None})
    return {
        "object_id": commit.id,
        "object_type": "graph_commit",
        "metadata": metadata,
        "table_version": commit.manifest_version,
    }


def _write_documents(graph: Graph, root: Path, ids: dict[str, tuple[int, int]]) -> None:
    """Version 2 of both documents, with what readers go by and the members beside it."""
    former = json.loads((root / "_schema.ir.json").read_text())
    made: dict[str, Json] = {"ir_version": 2, "schema_identity_domain": DOMAIN, "next_identity_id": 1000}
    made["interfaces"] = former["interfaces"]
    for kind in ("node", "edge"):
        made[f"{kind}s"] = [
            {**each, **dict(zip(("type_id", "table_incarnation_id"), ids[f"{kind}:{each['name']}"], strict=True))}
            for each in former[f"{kind}s"]
        ]
    write_documents(root, made)


def write_documents(root: Path, document: Json, **state: Json) -> None:
    """The document, and a state that names it, with members of the state that are to be others."""
    compact = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    told = {
        "format_version": 2,
        "schema_shape_hash": "sha256:0",
        "schema_ir_hash": f"sha256:{hashlib.sha256(compact.encode()).hexdigest()}",
        "schema_identity_version": 2,
        "schema_identity_domain": DOMAIN,
    }
    (root / "_schema.ir.json").write_text(json.dumps(document, indent=2, ensure_ascii=False))
    (root / "__schema_state.json").write_text(json.dumps({**told, **state}))


def fingerprint(root: Path) -> dict[str, str]:
    """Every file of a folder and what it holds."""
    return {
        str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }
