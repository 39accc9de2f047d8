"""Edges of a load that are known by their ends, and those that no id makes the same the next time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from spark_omnigraph.catalog.identity import TableKey
from spark_omnigraph.errors import ConstraintError
from spark_omnigraph.graph.load.options import LoadOptions, TableCounts
from spark_omnigraph.records.mode import LoadMode
from spark_omnigraph.staging.receipt import KnownEdges, RangeReceipt


def refuse_known_edges(options: LoadOptions, receipts: Sequence[RangeReceipt]) -> None:
    """ConstraintError when stored edges with the ends of new ones have other ids, which are not adopted, when nobody
    can say which of several to adopt, or when new ones would move stored ones to other ends.
    """
    known = sum((receipt.known_edges for receipt in receipts), KnownEdges())
    if known.taken:
        raise ConstraintError(
            f"load refused, nothing changed: {_edges(known.taken)} of the graph would be lost, with an id that follows "
            "from the ends of an edge of the input, and other ends; delete such an edge, or load it under another id, "
            "first"
        )
    if known.foreign and not options.adopt_edges:
        have = "1 stored edge has" if known.foreign == 1 else f"{known.foreign:,} stored edges have"
        raise ConstraintError(
            f"load refused, nothing changed: {have} the ends of edges of the input under other ids, and would be there "
            "twice; --adopt-edges (adopt_edges, adoptEdges) gives those of the input the stored ids"
        )
    if known.ambiguous:
        raise ConstraintError(
            f"load refused, nothing changed: of {_edges(known.ambiguous)} of the input there are several stored ones "
            "with the same ends; tell them apart by properties (--edge-id COLUMNS), or delete all but one of each"
        )


def _edges(count: int) -> str:
    return "1 edge" if count == 1 else f"{count:,} edges"


def edges_added_again(
    mode: LoadMode, receipts: Sequence[RangeReceipt], tables: Mapping[str, TableCounts]
) -> Iterator[str]:
    """Warnings about edges of a load that replaces rows by id, and that came without ids."""
    if not mode.replaces:
        return
    new_ids = sum((Counter(receipt.new_ids) for receipt in receipts), Counter[str]())
    for key, count in sorted(new_ids.items()):
        added = min(count, tables[key].inserted)
        if added and TableKey(key).kind == "edge":
            yield (
                f"{_edges(added)} of {TableKey(key).type_name} had no id: the same input would add them again; "
                "--edge-id (edge_id, edgeId) gives edges ids that follow from their ends"
            )
