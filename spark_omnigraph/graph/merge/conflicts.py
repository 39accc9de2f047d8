"""Conflicts as data: a JSON object a line, with the rows of all sides."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from spark_omnigraph.branch.conflicts import OnConflict
from spark_omnigraph.errors import MergeConflict
from spark_omnigraph.graph.merge.rows import RowConflict
from spark_omnigraph.storage.objects.whole_file import whole_path


def write_conflicts(
    path: str,
    rows: Iterable[tuple[str, RowConflict]],
    broken: Iterable[MergeConflict],
    on_conflict: OnConflict,
    options: Mapping[str, str],
) -> None:
    """Writes rows on which branches disagree, tables and ids in order, then rules that the merged graph would break.

    Members of a line: `table`, `id`, `kind`, `message`, `decided` (source, target, or null), and `base`, `source` and
    `target`: the row on each side as a record that could be loaded, null where there is none. IoError when the file
    cannot be written.
    """
    decided = None if on_conflict is OnConflict.FAIL else str(on_conflict)
    with whole_path(path, options) as part, open(part, "w", encoding="utf-8") as file:
        for table, row in rows:
            head = {"table": table, "id": row.id, "kind": str(row.kind), "message": row.message, "decided": decided}
            sides = ", ".join(f'"{name}": {record or "null"}' for name, record in _sides(row))
            file.write(f"{json.dumps(head, ensure_ascii=False)[:-1]}, {sides}}}\n")
        for each in broken:
            line = {"table": each.table_key, "id": each.row_id, "kind": each.kind, "message": each.message}
            nothing = dict.fromkeys(("decided", "base", "source", "target"))
            file.write(json.dumps({**line, **nothing}, ensure_ascii=False) + "\n")


def _sides(row: RowConflict) -> Iterable[tuple[str, str | None]]:
    return (("base", row.base), ("source", row.source), ("target", row.target))
