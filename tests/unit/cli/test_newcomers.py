"""What somebody new gives the program by mistake: each message names the thing, its place and the way out."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest

from spark_omnigraph.cli.program import main
from spark_omnigraph.graph.handle import Graph

SCHEMA = "node Film { name: String @key  year: I32? }\nedge Follows: Film -> Film\n"
QUERY = "query all() { match { $f: Film } return { $f.name } }"
ALIEN = '{"type": "Film", "data": {"name": "Alien", "year": 1979}}'
AS_NOBODY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can stop being root, and sees no permissions else")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of every wrong kind, and graphs in every wrong state."""
    root = tmp_path_factory.mktemp("newcomer")
    Graph.init(root / "g", SCHEMA).load([ALIEN])
    for name in ("half", "scrambled"):
        shutil.copytree(root / "g", root / name)
    shutil.rmtree(root / "half" / "__manifest")
    (root / "scrambled" / "_schema.pg").write_bytes(b"\xff")
    (root / "folder").mkdir()
    (root / "binary").write_bytes(b"\xff\xfe\x00")
    (root / "films.pg").write_text(SCHEMA)
    (root / "empty.pg").write_text("")
    (root / "q.gq").write_text(QUERY)
    (root / "films.jsonl").write_text(ALIEN + "\n")
    (root / "array.jsonl").write_text(f"[{ALIEN}]\n")
    (root / "no.jsonl.gz").write_text(ALIEN)
    return root


@pytest.fixture
def place(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(made)
    monkeypatch.delenv("OMNIGRAPH_GRAPH", raising=False)
    return made


def ended(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    """Exit code, message of the error, and standard error."""
    code = main(line.split())
    out, err = capsys.readouterr()
    [summary] = (last for last in (*out.splitlines()[-1:], *err.splitlines()[-1:]) if last.startswith('{"job"'))
    error = json.loads(summary)["error"]
    return code, error["error"] if error else "", err


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("init --graph films.jsonl --schema films.pg", 3, "films.jsonl' is a file; a graph needs a folder"),
        ("init --graph films.jsonl/g --schema films.pg", 1, "cannot make the folder"),
        ("init --graph g --schema films.pg --dry-run", 3, "graph already initialized"),
        ("init --graph x --schema folder", 2, "--schema: 'folder' is a folder, not a file"),
        ("init --graph x --schema binary", 2, "--schema: 'binary' is not UTF-8 text (byte 1)"),
        ("ingest --graph g --input s3://", 3, "'s3://' names no bucket"),
        ("ingest --graph g --input gs://b/x", 3, "unsupported scheme"),
        ("ingest --graph g --input gone.jsonl", 6, "input 'gone.jsonl' not found"),
        ("ingest --graph g --input no.jsonl.gz", 3, "is no gzip file, as its name says"),
        ("ingest --graph g --input array.jsonl", 3, "looks like a JSON array, not like JSON lines"),
        ("ingest --graph folder --input films.jsonl", 6, "no _schema.pg is there; init makes a graph"),
        ("ingest --graph g --input films.jsonl --summary folder", 2, "--summary: 'folder' is a folder"),
        ("query --graph g --file folder", 2, "--file: 'folder' is a folder, not a file"),
        ("query --graph g --file q.gq --output folder", 2, "'folder' is a folder already; name a new file"),
        ("query --graph g --file q.gq --format parquet --output q.gq/x", 2, "q.gq' is a file, not a folder"),
        ("query --graph half --file q.gq", 1, "half' lacks __manifest: it was removed, or init did not end"),
        ("query --graph scrambled --file q.gq", 3, "_schema.pg of"),
        ("export --graph g --type node:Film", 6, "unknown export type 'node:Film'; did you mean 'Film'?"),
        ("diff main main --graph g --type Flim", 3, "unknown type 'Flim'; did you mean 'Film'?"),
        ("cleanup --graph g --report folder", 2, "--report: 'folder' is a folder"),
        ("lint binary --schema films.pg", 2, "--file: 'binary' is not UTF-8 text"),
        ("lint q.gq --schema binary", 2, "--schema: 'binary' is not UTF-8 text"),
    ],
)  # laid out as a table  # fmt: skip
def test_a_mistake(place: Path, capsys: pytest.CaptureFixture[str], line: str, code: int, says: str) -> None:
    before = sorted(place.iterdir())
    capsys.readouterr()
    found, message, err = ended(capsys, line)
    assert (found, says in message) == (code, True), message
    assert "Traceback" not in err
    assert ".rs:" not in message
    assert sorted(place.iterdir()) == before


def test_a_schema_without_types_is_warned_about(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = ended(capsys, "init --graph x --schema empty.pg --dry-run")
    assert code == 0
    assert "the schema has no types" in err
    assert not (place / "x").exists()


def test_a_dry_run_of_init_goes_by_the_place(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for root in ("x", "folder"):
        assert ended(capsys, f"init --graph {root} --schema films.pg --dry-run")[0] == 0
    assert ended(capsys, "init --graph g --schema films.pg --dry-run --force")[0] == 0
    assert Graph.open("g").count("node:Film") == 1


@pytest.fixture
def nobody(made: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another user, who may read the graph, and not what is called secret."""
    with TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        shutil.copytree(made, root, dirs_exist_ok=True)
        root.chmod(0o755)
        for folder in ("secrets", "secret-graph"):
            shutil.copytree(made / "g", root / folder)
        for path in (root / "secret.gq", root / "secret.jsonl", root / "secrets" / "a.jsonl"):
            path.write_text(ALIEN)
        for path in root.glob("secret*"):
            path.chmod(0)
        monkeypatch.chdir(root)
        # As root, what is imported late is imported now: another user may not be able to.
        for line in ("describe --graph g", "query --graph g --file q.gq", "recover --graph g --dry-run"):
            assert main(line.split()) == 0
        os.seteuid(65534)
        try:
            if not os.access(pa.__file__, os.R_OK, effective_ids=True):
                pytest.skip("this Python is for root alone")
            yield
        finally:
            os.seteuid(0)


@AS_NOBODY
@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("describe --graph g", 0, ""),
        ("describe --graph secret-graph", 1, "cannot read"),
        ("describe --graph secret-graph/g", 1, "secret-graph/g: Permission denied"),
        ("query --graph g --file q.gq", 0, ""),
        ("query --graph g --file secret.gq", 2, "--file: cannot read 'secret.gq': Permission denied"),
        ("query --graph g --file q.gq --format csv --output g/x.csv", 2, "'g/x.csv' lies inside the graph g"),
        ("ingest --graph g --input secret.jsonl", 1, "g cannot be written: Permission denied"),
        ("ingest --graph g --input secrets", 1, "cannot read input 'secrets': Permission denied"),
        ("ingest --graph g --input secrets/a.jsonl", 1, "cannot read input 'secrets/a.jsonl': Permission denied"),
        ("init --graph g/new --schema films.pg", 1, "g/new (Permission denied"),
        ("recover --graph g", 1, "opening with mode 'r' does not"),
        ("recover --graph g --dry-run", 0, ""),
        ("cleanup --graph g", 0, ""),
    ],
)  # laid out as a table  # fmt: skip
def test_a_missing_permission(
    nobody: None, capsys: pytest.CaptureFixture[str], line: str, code: int, says: str
) -> None:
    capsys.readouterr()
    found, message, err = ended(capsys, line)
    assert (found, says in message) == (code, True), message
    assert "Traceback" not in err
