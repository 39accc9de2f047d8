"""Which process holds a lease, told so that others on the same machine can see that it is gone.

A process id alone proves nothing: it is reused, counts anew in every container, and may be of another machine. So the
answer *dead* needs all of this, and whatever cannot be read means that nobody knows:

* boot id, process namespace, host name and machine id are those of whoever asks. Containers on one host differ in the
  namespace, clones of a machine that runs have one boot id and differ in name or machine id;
* the process table is that of this namespace and shows processes of others: process 1 can be read there;
* no process has that id and that start time. One that ended and is not reaped yet counts as gone once its last thread
  has ended: until then a thread may still hand a request to the kernel.

A request that such a process has sent before may still arrive. Whoever takes over relies on its fence, not on this.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

PROC = Path("/proc")
MACHINE_ID = Path("/etc/machine-id")
_SALT = b"omnigraph.lease"
"""A machine id is confidential: a hash of it is stored."""
_UNREADABLE = (OSError, ValueError, IndexError)
_TEXTS, _NUMBERS = ("boot_id", "namespace", "host", "machine"), ("pid", "start")
_LONGEST_TEXT, _LARGEST_ID, _LARGEST = 256, 2**31, 2**63


@dataclass(frozen=True, slots=True)
class Process:
    """A process of one boot of one machine. `start` counts clock ticks since that boot."""

    boot_id: str
    namespace: str
    host: str
    machine: str
    pid: int
    start: int

    def to_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Stat:
    """What the process table says of one process."""

    state: str
    threads: int
    start: int


def owner_text() -> str:
    """Host and id of this process, for people who read a lease or a claim."""
    return f"{socket.gethostname()}:{os.getpid()}"


def this_process() -> Process | None:
    """The process that asks, or None where the system does not say enough: then nobody may call it dead early."""
    try:
        return _this_process()
    except _UNREADABLE:
        return None


def is_dead(process: Process) -> bool:
    """Whether it is proven that the process does nothing any more; False when it lives or nobody can know."""
    here = this_process()
    if here is None or _surroundings(here) != _surroundings(process):
        return False
    if not _shows_others():
        return False
    try:
        found = _stat(process.pid)
    except (FileNotFoundError, ProcessLookupError):
        return _is_absent(process.pid)
    except _UNREADABLE:
        return False
    return found.start != process.start or (found.state in "ZX" and found.threads <= 1)


def parse_process(raw: object) -> Process | None:
    """A process as a lease states it, or None when it states none that makes sense."""
    if not isinstance(raw, Mapping):
        return None
    texts = [text for name in _TEXTS if isinstance(text := raw.get(name), str) and 0 < len(text) <= _LONGEST_TEXT]
    numbers = [number for name in _NUMBERS if type(number := raw.get(name)) is int and 0 <= number < _LARGEST]
    if len(texts) != len(_TEXTS) or len(numbers) != len(_NUMBERS):
        return None
    (boot_id, namespace, host, machine), (pid, start) = texts, numbers
    return Process(boot_id, namespace, host, machine, pid, start) if 0 < pid < _LARGEST_ID else None


def _this_process() -> Process:
    pid = os.getpid()
    if _ids_of_this_process() != [str(pid)]:
        raise ValueError("the process table is that of another namespace")
    texts = [(PROC / "sys/kernel/random/boot_id").read_text(), socket.gethostname(), MACHINE_ID.read_text()]
    boot, host, machine = (text.strip() for text in texts)
    if not (boot and host and machine):
        raise ValueError("a machine without a name")
    hashed = hashlib.blake2b(machine.encode(), key=_SALT, digest_size=16).hexdigest()
    return Process(boot, _namespace(), host, hashed, pid, _stat(pid).start)


def _surroundings(process: Process) -> tuple[str, str, str, str]:
    return process.boot_id, process.namespace, process.host, process.machine


def _ids_of_this_process() -> list[str]:
    """Ids of this process from the namespace of the process table down to its own: one when they are the same."""
    lines = (PROC / "self/status").read_text(errors="replace").splitlines()
    return next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])


def _namespace() -> str:
    """The namespace in which ids count, and the one in which start times do where the kernel has such."""
    namespace = os.readlink(PROC / "self/ns/pid")
    try:
        return f"{namespace} {os.readlink(PROC / 'self/ns/time')}"
    except FileNotFoundError:
        return namespace


def _stat(pid: int) -> _Stat:
    """One line of the process table. The name in it may contain anything, closing brackets too."""
    fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    return _Stat(fields[0].decode("ascii"), int(fields[17]), int(fields[19]))


def _shows_others() -> bool:
    """Whether the table shows processes of others: one that hides them hides the first one."""
    try:
        _stat(1)
    except _UNREADABLE:
        return False
    return True


def _is_absent(pid: int) -> bool:
    """Asks the kernel besides, which answers for processes too that a table hides."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
