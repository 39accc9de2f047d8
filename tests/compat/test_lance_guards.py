"""Every Lance fact that the write path stands on. When an upgrade of pylance changes one, it fails here first."""

from __future__ import annotations

import dataclasses
import json
import pickle
import uuid
from collections.abc import Callable
from pathlib import Path

import datafusion
import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from lance.commit import CommitConflictError
from lance.file import LanceFileReader
from lance.fragment import FragmentMetadata, RowIdSequence, write_fragments

ROWS = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("n", pa.int64())])
KEYED = pa.schema(
    [
        pa.field("object_id", pa.string(), False, {"lance-schema:unenforced-primary-key": "true"}),
        pa.field("value", pa.string()),
    ]
)
SENTINEL = "x:publish"

Stage = Callable[[LanceDataset, str], Transaction]


def rows(*ids: str, n: int = 0) -> pa.Table:
    return pa.table({"id": list(ids), "n": [n] * len(ids)}, schema=ROWS)


def create(path: Path, data: pa.Table) -> LanceDataset:
    return lance.write_dataset(
        data, str(path), mode="create", data_storage_version="2.2", enable_stable_row_ids=True, schema=data.schema
    )


def update_operation(
    ds: LanceDataset, new: list[FragmentMetadata], updated: list[FragmentMetadata], removed: list[int]
) -> LanceOperation.Update:
    """An Update that lists the lowest fragment of its snapshot, changed or not: the anchor."""
    anchor = min(ds.get_fragments(), key=lambda fragment: fragment.fragment_id)
    if anchor.fragment_id not in {fragment.id for fragment in updated} | set(removed):
        updated = [*updated, anchor.metadata]
    fields = [field.id() for field in ds.lance_schema.fields()]
    return LanceOperation.Update(removed, updated, new, [], fields, "rewrite_rows")


def staged_append(ds: LanceDataset, key: str) -> Transaction:
    fresh = write_fragments(rows(key), ds, mode="append", schema=ROWS)
    return Transaction(ds.version, update_operation(ds, list(fresh), [], []))


def staged_delete(ds: LanceDataset, key: str) -> Transaction:
    """Deletes one row of the last fragment, so that it never touches the anchor by itself."""
    last = max(ds.get_fragments(), key=lambda fragment: fragment.fragment_id)
    changed = last.delete_rows([0])
    removed = [] if changed is not None else [last.fragment_id]
    updated = [changed] if changed is not None else []
    return Transaction(ds.version, update_operation(ds, [], updated, removed))


def staged_upsert(ds: LanceDataset, key: str) -> Transaction:
    """Replaces the first row of the last fragment, keeping its row id."""
    last = max(ds.get_fragments(), key=lambda fragment: fragment.fragment_id)
    found = last.scanner(columns=["id"], with_row_id=True, limit=1).to_table()
    (fresh,) = write_fragments(rows(found["id"][0].as_py(), n=7), ds, mode="append", schema=ROWS)
    kept = RowIdSequence(found["_rowid"].combine_chunks()).to_inline_metadata()
    fresh = dataclasses.replace(fresh, row_id_meta=kept)
    changed = last.delete_rows([0])
    updated = [changed] if changed is not None else []
    removed = [last.fragment_id] if changed is None else []
    return Transaction(ds.version, update_operation(ds, [fresh], updated, removed))


STAGES: dict[str, Stage] = {"append": staged_append, "upsert": staged_upsert, "delete": staged_delete}


@pytest.fixture
def table(tmp_path: Path) -> LanceDataset:
    """Three fragments of two rows."""
    ds = create(tmp_path / "t", rows("a0", "a1"))
    for prefix in "bc":
        ds = lance.write_dataset(rows(f"{prefix}0", f"{prefix}1"), ds.uri, mode="append")
    return ds


# --- staging ------------------------------------------------------------------------------------------------------


def test_tables_go_to_the_datafusion_that_is_installed(tmp_path: Path) -> None:
    """Of one major release alone; a condition and a limit break where the optimizer goes into the plans of Lance."""
    provider = lance.FFILanceTableProvider(create(tmp_path / "t", rows("a", "b", "c", n=1)))
    setting = {"datafusion.optimizer.enable_round_robin_repartition": "false"}
    context = datafusion.SessionContext(datafusion.SessionConfig(setting))
    frame = context.read_table(provider)
    context.register_table("t", datafusion.catalog.Table(frame.select(datafusion.col("id"), datafusion.col("n"))))
    assert context.sql("SELECT id FROM t WHERE n = 1 LIMIT 2").to_arrow_table().num_rows == 2


def test_staged_fragments_move_nothing(table: LanceDataset) -> None:
    before = table.version
    (fragment,) = write_fragments(rows("z"), table, mode="append", schema=ROWS)
    assert lance.dataset(table.uri).version == before
    assert (Path(table.uri) / "data" / fragment.files[0].path).is_file()


def test_fragment_metadata_survives_json_and_pickle(table: LanceDataset) -> None:
    (fragment,) = write_fragments(rows("z"), table, mode="append", schema=ROWS)
    fragment = dataclasses.replace(fragment, row_id_meta=RowIdSequence(pa.array([4], pa.uint64())).to_inline_metadata())
    assert FragmentMetadata.from_json(json.dumps(fragment.to_json())) == fragment
    assert pickle.loads(pickle.dumps(fragment)) == fragment


def test_a_staged_file_can_be_read_back_before_its_commit(table: LanceDataset) -> None:
    (fragment,) = write_fragments(rows("y", "z", n=5), table, mode="append", schema=ROWS)
    path = str(Path(table.uri) / "data" / fragment.files[0].path)
    read = LanceFileReader(path, columns=["id"]).read_all(batch_size=1024).to_table()
    assert read.column_names == ["id"]
    assert read["id"].to_pylist() == ["y", "z"]


def test_a_commit_does_not_look_at_the_staged_files(table: LanceDataset) -> None:
    """Why recovery checks staged files itself before it rolls forward."""
    (fragment,) = write_fragments(rows("z"), table, mode="append", schema=ROWS)
    (Path(table.uri) / "data" / fragment.files[0].path).unlink()
    moved = LanceDataset.commit(
        table, Transaction(table.version, update_operation(table, [fragment], [], [])), max_retries=0
    )
    assert moved.version == table.version + 1
    with pytest.raises(pa.ArrowInvalid, match=r"Not found"):
        moved.to_table()


# --- commits ------------------------------------------------------------------------------------------------------


def test_commit_returns_the_landed_version_and_leaves_the_handle_alone(table: LanceDataset) -> None:
    before = table.version
    moved = LanceDataset.commit(table, staged_append(table, "z"), max_retries=0)
    assert moved.version == before + 1
    assert table.version == before
    assert lance.dataset(table.uri).version == before + 1


def test_a_transaction_keeps_the_uuid_and_the_properties_that_we_chose(table: LanceDataset) -> None:
    name = str(uuid.uuid4())
    staged = staged_append(table, "z")
    tx = Transaction(staged.read_version, staged.operation, uuid=name, transaction_properties={"op": "one"})
    moved = LanceDataset.commit(table, tx, max_retries=0)
    stored = lance.dataset(table.uri).read_transaction(moved.version)
    assert stored is not None
    assert stored.uuid == name
    assert stored.transaction_properties == {"op": "one"}


@pytest.mark.parametrize("first", STAGES)
@pytest.mark.parametrize("second", STAGES)
def test_anchored_updates_exclude_each_other(table: LanceDataset, first: str, second: str) -> None:
    one, other = STAGES[first](table, "k1"), STAGES[second](table, "k2")
    winner = LanceDataset.commit(table, one, max_retries=0)
    assert winner.version == table.version + 1
    with pytest.raises(CommitConflictError):
        LanceDataset.commit(table, other, max_retries=0)
    assert lance.dataset(table.uri).version == winner.version


@pytest.mark.parametrize("stage", STAGES)
def test_an_anchored_update_is_refused_after_the_anchor_was_removed(table: LanceDataset, stage: str) -> None:
    late = STAGES[stage](table, "k")
    anchor = min(table.get_fragments(), key=lambda fragment: fragment.fragment_id)
    gone = Transaction(table.version, update_operation(table, [], [], [anchor.fragment_id]))
    LanceDataset.commit(table, gone, max_retries=0)
    with pytest.raises(CommitConflictError):
        LanceDataset.commit(table, late, max_retries=0)


def test_committing_an_anchored_update_twice_is_refused(table: LanceDataset) -> None:
    tx = staged_append(table, "z")
    LanceDataset.commit(table, tx, max_retries=0)
    with pytest.raises(CommitConflictError):
        LanceDataset.commit(table, tx, max_retries=0)
    assert lance.dataset(table.uri).count_rows() == 7


def test_a_plain_append_is_not_a_compare_and_swap(table: LanceDataset) -> None:
    """The reason for the anchor. A Lance that refuses the second one would let us drop it."""
    one, other = (write_fragments(rows(k), table, mode="append", schema=ROWS) for k in ("k1", "k2"))
    LanceDataset.commit(table, LanceOperation.Append(one), read_version=table.version, max_retries=0)
    landed = LanceDataset.commit(table, LanceOperation.Append(other), read_version=table.version, max_retries=0)
    assert landed.version == table.version + 2


def test_an_index_commit_pushes_an_anchored_update_past_the_next_version(table: LanceDataset) -> None:
    """Why the landed version is compared with the one the sidecar names."""
    tx = staged_append(table, "z")
    lance.dataset(table.uri).create_scalar_index("id", "BTREE")
    landed = LanceDataset.commit(table, tx, max_retries=0)
    assert landed.version == table.version + 2


def test_an_overwrite_without_retries_is_strict(table: LanceDataset) -> None:
    new = write_fragments(rows("only"), table, mode="overwrite", schema=ROWS)
    tx = Transaction(table.version, LanceOperation.Overwrite(table.schema, new))
    LanceDataset.commit(table, staged_append(table, "z"), max_retries=0)
    with pytest.raises(CommitConflictError):
        LanceDataset.commit(table, tx, max_retries=0)
    head = lance.dataset(table.uri)
    fresh = Transaction(head.version, LanceOperation.Overwrite(head.schema, new))
    assert LanceDataset.commit(head, fresh, max_retries=0).version == head.version + 1


def test_two_overwrites_of_an_empty_table_have_one_winner(tmp_path: Path) -> None:
    ds = create(tmp_path / "t", rows())
    staged = [
        Transaction(ds.version, LanceOperation.Overwrite(ds.schema, write_fragments(rows(k), ds, schema=ROWS)))
        for k in ("one", "two")
    ]
    assert LanceDataset.commit(ds, staged[0], max_retries=0).version == ds.version + 1
    with pytest.raises(CommitConflictError):
        LanceDataset.commit(ds, staged[1], max_retries=0)
    assert lance.dataset(ds.uri).to_table()["id"].to_pylist() == ["one"]


def test_an_overwrite_keeps_stable_row_ids_and_drops_indexes(table: LanceDataset) -> None:
    table.create_scalar_index("id", "BTREE")
    head = lance.dataset(table.uri)
    new = write_fragments(rows("only"), head, mode="overwrite", schema=ROWS)
    moved = LanceDataset.commit(
        head, Transaction(head.version, LanceOperation.Overwrite(head.schema, new)), max_retries=0
    )
    assert moved.has_stable_row_ids
    assert moved.describe_indices() == []


def test_an_upsert_with_a_row_id_sequence_keeps_row_id_and_creation_version(table: LanceDataset) -> None:
    columns = ["id", "n", "_row_created_at_version", "_row_last_updated_at_version"]

    def by_id(ds: LanceDataset) -> dict[str, dict[str, object]]:
        return {row["id"]: row for row in ds.scanner(columns=columns, with_row_id=True).to_table().to_pylist()}

    before = by_id(table)
    moved = LanceDataset.commit(table, staged_upsert(table, ""), max_retries=0)
    after = by_id(moved)
    assert after["c0"] == {**before["c0"], "n": 7, "_row_last_updated_at_version": moved.version}
    assert {k: v for k, v in after.items() if k != "c0"} == {k: v for k, v in before.items() if k != "c0"}


def test_a_branch_starts_at_the_number_of_the_version_it_was_made_from(table: LanceDataset) -> None:
    branch = table.create_branch("team/x", ("main", 2))
    assert branch.version == 2
    by_path = lance.dataset(f"{table.uri}/tree/team/x")
    assert by_path.version == 2
    moved = LanceDataset.commit(by_path, staged_append(by_path, "z"), max_retries=0)
    assert moved.version == 3
    assert moved.count_rows() == 5
    assert lance.dataset(table.uri).count_rows() == 6
    assert lance.dataset(table.uri).checkout_version(("team/x", None)).version == 3


# --- the publish: row-level compare-and-swap ----------------------------------------------------------------------


def publish(ds: LanceDataset, **values: str) -> None:
    data = pa.table({"object_id": list(values), "value": list(values.values())}, schema=KEYED)
    builder = ds.merge_insert("object_id").when_matched_update_all().when_not_matched_insert_all()
    builder.conflict_retries(0).use_index(False).execute(data)


@pytest.fixture
def manifest(tmp_path: Path) -> LanceDataset:
    return create(tmp_path / "m", pa.table({"object_id": ["seed"], "value": ["0"]}, schema=KEYED))


def two_handles(ds: LanceDataset) -> tuple[LanceDataset, LanceDataset]:
    return lance.dataset(ds.uri), lance.dataset(ds.uri)


def test_two_publishes_of_different_keys_both_land(manifest: LanceDataset) -> None:
    """Why every publish of ours also touches the sentinel."""
    one, other = two_handles(manifest)
    publish(one, a="1")
    publish(other, b="2")
    assert lance.dataset(manifest.uri).version == manifest.version + 2


@pytest.mark.parametrize("existing", [False, True], ids=["first-publish", "later-publish"])
def test_the_sentinel_row_orders_all_publishes(manifest: LanceDataset, existing: bool) -> None:
    if existing:
        publish(lance.dataset(manifest.uri), **{SENTINEL: "0"})
    one, other = two_handles(manifest)
    publish(one, a="1", **{SENTINEL: "one"})
    with pytest.raises(OSError, match="Too many concurrent writers"):
        publish(other, b="2", **{SENTINEL: "other"})
    stored = lance.dataset(manifest.uri).to_table()
    values = dict(zip(stored["object_id"].to_pylist(), stored["value"].to_pylist(), strict=True))
    assert values == {"seed": "0", "a": "1", SENTINEL: "one"}


def test_one_publish_is_one_version(manifest: LanceDataset) -> None:
    ds = lance.dataset(manifest.uri)
    publish(ds, a="1", b="2", **{SENTINEL: "one"})
    assert lance.dataset(manifest.uri).version == manifest.version + 1
    assert ds.version == manifest.version + 1


# --- the fence: what a late owner or a late recoverer can still do --------------------------------------------------


def restored(ds: LanceDataset, version: int) -> LanceDataset:
    return LanceDataset.commit(ds, Transaction(ds.version, LanceOperation.Restore(version)), max_retries=0)


def bumped(ds: LanceDataset) -> LanceDataset:
    change = LanceOperation.UpdateMap({"fence": str(ds.version)})
    return LanceDataset.commit(
        ds, Transaction(ds.version, LanceOperation.UpdateConfig(schema_metadata_updates=change)), max_retries=0
    )


def staged_index(ds: LanceDataset) -> Transaction:
    fragments = [fragment.fragment_id for fragment in ds.get_fragments()]
    index = ds.create_index_uncommitted("id", index_type="BTREE", name="id_idx", fragment_ids=fragments)
    return Transaction(ds.version, LanceOperation.CreateIndex([index], []))


LATE: dict[str, Callable[[LanceDataset], Transaction]] = {
    "anchored update": lambda ds: staged_append(ds, "late"),
    "create index": staged_index,
}


@pytest.mark.parametrize("late", LATE)
def test_a_restored_head_refuses_a_late_step(table: LanceDataset, late: str) -> None:
    tx = LATE[late](table)
    restored(table, table.version)
    with pytest.raises(CommitConflictError):
        LanceDataset.commit(table, tx, max_retries=0)


def test_a_metadata_change_alone_refuses_no_late_update(table: LanceDataset) -> None:
    tx = staged_append(table, "late")
    bumped(table)
    assert LanceDataset.commit(table, tx, max_retries=0).version == table.version + 2


def test_a_late_restore_lands_unless_the_schema_metadata_moved(table: LanceDataset) -> None:
    late = Transaction(table.version, LanceOperation.Restore(table.version))
    LanceDataset.commit(table, staged_append(table, "z"), max_retries=0)
    assert LanceDataset.commit(table, late, max_retries=0).count_rows() == 6
    head = lance.dataset(table.uri)
    late = Transaction(head.version, LanceOperation.Restore(head.version))
    bumped(head)
    with pytest.raises(CommitConflictError):
        LanceDataset.commit(head, late, max_retries=0)
