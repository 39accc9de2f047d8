"""Schema files that contradict each other: what the refusal says, and that to run it again is not advised."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_omnigraph import Graph, SchemaFilesError


def test_a_schema_that_was_edited_by_hand_is_refused_for_good(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", "node A { k: String @key }")
    text = (tmp_path / "g" / "_schema.pg").read_text()
    (tmp_path / "g" / "_schema.pg").write_text(text + "\nnode B { k: String @key }")
    for mode in ("r", "rw"):
        with pytest.raises(SchemaFilesError, match=r"edited by hand.*Put back the text") as caught:
            Graph.open(graph.uri, mode=mode)
        assert (caught.value.kind, caught.value.exit_code) == ("schema_files", 3)
    (tmp_path / "g" / "_schema.pg").write_text("// a comment changes nothing\n" + text)
    Graph.open(graph.uri).load(['{"type": "A", "data": {"k": "1"}}'])


@pytest.mark.parametrize("name", ["_schema.ir.json", "__schema_state.json"])
def test_a_missing_schema_file_is_named(tmp_path: Path, name: str) -> None:
    graph = Graph.init(tmp_path / "g", "node A { k: String @key }")
    (tmp_path / "g" / name).unlink()
    with pytest.raises(SchemaFilesError, match=name.replace(".", r"\.")):
        Graph.open(graph.uri)
