"""Receipts are small, travel between processes, and give back what was packed."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from spark_omnigraph.errors import InternalError, NotFoundError
from spark_omnigraph.staging.receipt import RangeReceipt, StagedFragment, packed
from spark_omnigraph.storage.tables.staged import StagedFile
from tests.unit.staging.tables import PERSON, context, target


def test_numbers_come_back_in_their_order_and_neighbours_cost_little() -> None:
    ordinals = np.array([7, 3, 2**31 - 1, 0, 3], np.int32)
    addresses = np.array([2**32 + 5, 5, 2**64 - 1, 0], np.uint64)
    fragment = StagedFragment(
        StagedFile("{}", "x.lance", 5), 4, 7, packed(ordinals), packed(addresses), packed(ordinals)
    )
    assert fragment.row_ordinals().tolist() == fragment.row_lines().tolist() == ordinals.tolist()
    assert fragment.removed_addresses().tolist() == addresses.tolist()
    assert len(packed(np.arange(1_000_000, dtype=np.int32))) < 20_000


def test_a_file_without_gaps_carries_no_numbers() -> None:
    fragment = StagedFragment(StagedFile("{}", "x.lance", 3), 0, 40, None, None)
    assert fragment.row_ordinals().tolist() == fragment.row_lines().tolist() == [40, 41, 42]
    assert fragment.removed_addresses().tolist() == []


def test_a_receipt_travels_and_counts_its_bad_rows() -> None:
    receipt = RangeReceipt(3, 9, {PERSON: 5}, {PERSON: 2, "": 1}, {"enum": 3}, b"", {}, frozenset())
    assert pickle.loads(pickle.dumps(receipt)) == receipt
    assert (receipt.bad_total, receipt.unpack_rejected()) == (3, [])


def test_a_task_knows_its_tables_and_no_others(tmp_path: Path) -> None:
    told = pickle.loads(pickle.dumps(context(target(tmp_path))))
    assert told.target(PERSON).row_count == 0
    with pytest.raises(NotFoundError, match="Knows"):
        told.target("edge:Knows")
    with pytest.raises(InternalError, match="unknown table 'node:Nope'"):
        told.entity("node:Nope")
