"""SIGTERM ends a job as Ctrl-C does: its lease is given up, so nobody waits for it. Only the program listens to it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from spark_omnigraph import Graph, LoadOptions
from spark_omnigraph.cli.program import main
from spark_omnigraph.commit.crash_points import CrashPoint, stop_at
from spark_omnigraph.commit.lease import lease_facts
from tests.support.sleeping import when_we_sleep

PLAIN = LoadOptions(build_indexes=False)
POINTS = [
    CrashPoint.LEASED,
    CrashPoint.ARMED,
    CrashPoint.LANDED_FIRST,
    CrashPoint.LANDED_ALL,
    CrashPoint.PUBLISHED,
    CrashPoint.RECORDED,
]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("signals")
    Graph.init(folder / "g", "node Film { name: String @key }")
    (folder / "in.jsonl").write_text(film("Heat"))
    return folder


@pytest.fixture
def world(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "w")
    return tmp_path / "w"


def film(name: str) -> str:
    return json.dumps({"type": "Film", "data": {"name": name}}) + "\n"


def merge(world: Path) -> int:
    return main(["merge", "--graph", str(world / "g"), "--input", str(world / "in.jsonl"), "--no-index"])


def send(number: signal.Signals) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def no_waiting(seconds: float, sleep: Callable[[float], None] = time.sleep) -> None:
    if threading.current_thread() is threading.main_thread():
        raise AssertionError("the next writer waits")
    sleep(seconds)  # of other tests' pools


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.value)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
def test_a_signal_gives_the_lease_up(
    world: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    code: int,
    point: CrashPoint,
) -> None:
    with stop_at(point, send(number)):
        assert merge(world) == code
    error = json.loads(capsys.readouterr().out.splitlines()[-1])["error"]
    assert error == {"error": f"stopped by {number.name}{LEFT}", "code": "interrupted", "kind": "interrupted"}
    folder = world / "g" / "__recovery"
    leases = [lease_facts(path.read_bytes()) for path in folder.glob("*.lease")]
    assert [lease is not None and lease.expires_at <= time.time() for lease in leases] == [True]
    when_we_sleep(monkeypatch, no_waiting)
    graph = Graph.open(world / "g")
    assert graph.load([film("Alien")], options=PLAIN).commit
    landed = point in (CrashPoint.LANDED_FIRST, CrashPoint.LANDED_ALL, CrashPoint.PUBLISHED, CrashPoint.RECORDED)
    assert graph.count("node:Film") == 1 + landed
    assert [path.name for path in folder.glob("*.lease")] == []


LEFT = "; a write that was under way, if there was one, is finished or undone by the next read-write open"
KEPT = "; answers of the provider are kept, and the same command goes on with the rest"


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (("query", "-e", "query q() { match { $f: Film } return { $f.name } }"), ""),
        (("sql", "-e", "SELECT name FROM Film"), ""),
        (("export",), ""),
        (("schema", "plan", "s.pg"), ""),
        (("merge", "--input", "in.jsonl", "--dry-run"), ""),
        (("schema", "apply", "s.pg"), LEFT),
        (("optimize",), LEFT),
        (("embed",), LEFT + KEPT),
        (("embed", "--no-cache"), LEFT),
        (("embed", "--clean"), LEFT),
        (("embed", "--dry-run"), ""),
    ],
    ids=" ".join,
)
def test_what_a_stopped_verb_says_that_it_leaves(
    world: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    left: str,
) -> None:
    """One that only reads leaves nothing to be finished."""
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    monkeypatch.chdir(world)
    Path("s.pg").write_text("node Film { name: String @key }")

    def stopped(*_args: object, **_options: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Graph, "open", stopped)
    assert main([*words, "--graph", "g", "--summary", "end.json"]) == 130
    assert json.loads(Path("end.json").read_text())["error"]["error"] == f"stopped by SIGINT{left}"
    assert f"stopped by SIGINT{left}\n" in capsys.readouterr().err


def test_the_handler_of_before_is_put_back(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[object] = []

    def own(_number: int, _frame: FrameType | None) -> None:
        """Of whoever calls the program as a function."""

    before = signal.signal(signal.SIGTERM, own)
    try:
        with stop_at(CrashPoint.ARMED, lambda: seen.append(signal.getsignal(signal.SIGTERM))):
            assert merge(world) == 0
        assert signal.getsignal(signal.SIGTERM) is own
        with stop_at(CrashPoint.ARMED, send(signal.SIGTERM)):
            (world / "in.jsonl").write_text(film("Ran"))
            assert merge(world) == 143
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen != [own]
    capsys.readouterr()


def test_neither_the_library_nor_another_thread_listens(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, seen, codes = signal.getsignal(signal.SIGTERM), [], []

    def look() -> None:
        seen.append(signal.getsignal(signal.SIGTERM))

    with stop_at(CrashPoint.ARMED, look):
        Graph.open(world / "g").load([film("Alien")], options=PLAIN)
    with stop_at(CrashPoint.ARMED, look):
        thread = threading.Thread(target=lambda: codes.append(merge(world)))
        thread.start()
        thread.join()
    assert (seen, codes) == ([before, before], [0])
    capsys.readouterr()
