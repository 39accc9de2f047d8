"""Who is called dead: only a process that provably is; whatever cannot be read means that nobody knows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from spark_omnigraph.commit import process as room
from spark_omnigraph.commit.process import Process, is_dead, parse_process, this_process
from tests.crash.victim import may_unshare

pytestmark = pytest.mark.skipif(this_process() is None, reason="this system does not say which process is which")

ROOT = Path(__file__).parents[3]
SAY = "import json; from spark_omnigraph.commit.process import this_process as t; p = t(); "
SAY += "print(json.dumps(p and p.to_json()), flush=True); "
STAY = "import sys; sys.stdin.read()"
THREAD_STAYS = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@contextmanager
def child(program: str = STAY, *before: str) -> Iterator[tuple[subprocess.Popen[str], Process | None]]:
    """A process that says who it is, and goes on with a program."""
    command = [*before, sys.executable, "-c", SAY + ("\n" if "\n" in program else "") + program]
    ends = subprocess.PIPE
    running = subprocess.Popen(command, stdin=ends, stdout=ends, stderr=ends, text=True, cwd=ROOT)
    assert running.stdout is not None
    try:
        yield running, parse_process(json.loads(running.stdout.readline() or "null"))
    finally:
        running.kill()
        running.communicate()


@cache
def gone() -> Process:
    """A process of this machine that was killed and reaped."""
    with child() as (_, said):
        assert said is not None
    return said


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def wait_for(pid: int, state: str) -> None:
    done = threading.Event()
    for _ in range(2000):
        if state_of(pid) == state:
            return
        done.wait(0.005)
    raise AssertionError(state_of(pid))


def test_a_process_is_told_from_all_others_and_is_alive() -> None:
    here = this_process()
    assert here is not None
    assert here.pid == os.getpid()
    assert here == this_process()
    assert not is_dead(here)
    assert here.machine not in Path("/etc/machine-id").read_text(), "the machine id itself is confidential"


def test_a_killed_process_is_dead_and_one_that_stands_still_is_not() -> None:
    with child() as (running, said):
        assert said is not None
        assert said.pid == running.pid
        assert not is_dead(said)
        running.send_signal(signal.SIGSTOP)
        wait_for(running.pid, "T")
        assert not is_dead(said)
        running.kill()
        running.wait()
        assert is_dead(said)


def test_a_process_that_nobody_reaped_is_dead_once_its_last_thread_is() -> None:
    with child() as (running, said):
        assert said is not None
        running.kill()
        wait_for(running.pid, "Z")
        assert is_dead(said)
    with child(THREAD_STAYS) as (running, said):
        assert said is not None
        wait_for(running.pid, "Z")
        assert not is_dead(said), "a thread of it may still send a request"


def test_a_process_id_that_was_used_again_is_another_process() -> None:
    with child() as (_, said):
        assert said is not None
        assert is_dead(replace(said, start=said.start - 1))


@pytest.mark.parametrize(
    "other",
    [
        {"boot_id": "6f9619ff-8b86-d011-b42d-00cf4fc964ff"},
        {"namespace": "pid:[4026532999] time:[4026531834]"},
        {"host": "container-2"},
        {"machine": "0" * 32},
        {"host": "clone-2", "machine": "0" * 32},
    ],
    ids="+".join,
)
def test_a_process_of_other_surroundings_is_never_called_dead(other: dict[str, Any]) -> None:
    """Another boot, a container on this host, a clone of this machine that has its boot id."""
    assert is_dead(gone())
    assert not is_dead(replace(gone(), **other))


def no_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(room, "PROC", tmp_path / "proc")


def no_machine_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(room, "MACHINE_ID", tmp_path / "machine-id")


def empty_machine_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "machine-id").write_text("\n")
    monkeypatch.setattr(room, "MACHINE_ID", tmp_path / "machine-id")


def table_of_another_namespace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(room, "_ids_of_this_process", lambda: ["4711", str(os.getpid())])


@pytest.mark.parametrize("blind", [no_table, no_machine_id, empty_machine_id, table_of_another_namespace])
def test_where_the_system_does_not_say_nobody_is_dead(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, blind: object
) -> None:
    dead = gone()
    assert callable(blind)
    blind(monkeypatch, tmp_path)
    assert this_process() is None
    assert not is_dead(dead)


@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError])
def test_a_table_that_hides_the_processes_of_others_proves_nothing(
    monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    plain = room._stat

    def hide(pid: int) -> object:
        if pid != os.getpid():
            raise error(pid)
        return plain(pid)

    monkeypatch.setattr(room, "_stat", hide)
    assert this_process() is not None
    assert not is_dead(gone())


NOBODY = """
import json, os, sys
from spark_omnigraph.commit.process import is_dead, parse_process, this_process
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
print(this_process() is not None, *(is_dead(parse_process(json.loads(word))) for word in sys.argv[1:]))
"""


@pytest.mark.skipif(not may_unshare() or os.getuid() != 0, reason="no right to mount a process table")
@pytest.mark.parametrize(
    ("hidepid", "said"), [(0, "True False True"), (1, "True False False"), (2, "True False False")]
)
def test_a_process_without_rights_calls_nobody_dead_where_it_does_not_see_others(hidepid: int, said: str) -> None:
    here = this_process()
    assert here is not None
    told = [json.dumps(each.to_json()) for each in (here, gone())]
    mount = f'mount -t proc -o hidepid={hidepid} proc /proc && exec "$@"'
    words = ["unshare", "--mount", "sh", "-c", mount, "sh", sys.executable, "-c", NOBODY, *told]
    assert subprocess.run(words, check=True, capture_output=True, text=True, cwd=ROOT).stdout.strip() == said


def test_a_process_that_the_table_does_not_show_is_asked_for_at_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = room._stat
    with child() as (running, said):
        assert said is not None

        def hide(pid: int) -> object:
            if pid == running.pid:
                raise FileNotFoundError(pid)
            return plain(pid)

        monkeypatch.setattr(room, "_stat", hide)
        assert not is_dead(said)
        running.kill()
        running.wait()
        assert is_dead(said)


def test_containers_see_neither_each_other_nor_their_host() -> None:
    if not may_unshare():
        pytest.skip("no right to make a process namespace")
    inside = ("unshare", "--pid", "--fork", "--mount-proc")
    with child(STAY, *inside) as (_, first):
        assert first is not None
        assert first.pid == 1
        assert not is_dead(first)
    assert not is_dead(first), "it is gone, but this table cannot show it"
    look = f"from spark_omnigraph.commit.process import *; print(is_dead(Process(**{gone().to_json()})))"
    with child(look, *inside) as (running, second):
        assert running.stdout is not None
        assert running.stdout.readline() == "False\n"
    assert second is not None
    assert second.namespace != gone().namespace
    with child(STAY, *inside[:-1]) as (_, third):
        assert third is None, "the table that it sees is that of the host"


GOOD = Process("b", "n", "h", "m", 7, 8)


@pytest.mark.parametrize(
    "raw",
    [
        None, [], "text", 7, {}, {"pid": 7},
        *({**GOOD.to_json(), "pid": pid} for pid in (0, -1, 2**31, 1.0, "7", True, None)),
        *({**GOOD.to_json(), "start": start} for start in (-1, 2**63, 1.5, "8", None, float("inf"))),
        *({**GOOD.to_json(), name: value} for name in ("host", "boot_id") for value in ("", 1, None, "x" * 300)),
    ],
)  # laid out as a table  # fmt: skip
def test_what_is_no_process_is_none(raw: object) -> None:
    assert parse_process(raw) is None
    assert parse_process(json.loads(json.dumps({**GOOD.to_json(), "more": 1}))) == GOOD
