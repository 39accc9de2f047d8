"""Times and peak memory of contenders that take turns, so that a busy machine slows all of them alike."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

_PROC = Path("/proc")
_SAMPLE_SECONDS = 0.05


@dataclass
class Peak:
    """Highest resident size in MiB of the JVM, of this process, and of any other single child; and how long the
    processor has worked for all of them.
    """

    jvm: float = 0.0
    driver: float = 0.0
    worker: float = 0.0
    ticks: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of a process: what it had used when the block began, and at the last look; it may have gone since."""
    watching: float = 0.0

    @property
    def seconds(self) -> float:
        """Seconds of the processor, without those of watching."""
        used = sum(last - first for first, last in self.ticks.values())
        return used / os.sysconf("SC_CLK_TCK") - self.watching

    def note(self, kind: str, mib: float) -> None:
        setattr(self, kind, max(getattr(self, kind), mib))

    def __str__(self) -> str:
        return f"JVM {self.jvm:.0f} MiB, driver {self.driver:.0f} MiB, largest worker {self.worker:.0f} MiB"


@contextmanager
def watched() -> Iterator[Peak]:
    """Peak memory while the block runs. Needs Linux; elsewhere all peaks stay 0."""
    peak = Peak()
    if not _PROC.joinpath("self", "clear_refs").exists():
        yield peak
        return
    for pid in _family():
        # Value 5 sets the high-water mark back to the present size.
        with suppress(OSError):
            _PROC.joinpath(str(pid), "clear_refs").write_text("5")
    _note(peak)
    peak.ticks = {process: (last, last) for process, (_, last) in peak.ticks.items()}
    stop = threading.Event()
    sampler = threading.Thread(target=_sample, args=(peak, stop), daemon=True)
    sampler.start()
    try:
        yield peak
    finally:
        stop.set()
        sampler.join()
        _note(peak)


def _sample(peak: Peak, stop: threading.Event) -> None:
    while not stop.wait(_SAMPLE_SECONDS):
        _note(peak)
        peak.watching = time.thread_time()


def _note(peak: Peak) -> None:
    for pid in _family():
        with suppress(OSError):
            folder = _PROC / str(pid)
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            process, used = f"{pid} {fields[19]}", int(fields[11]) + int(fields[12])
            peak.ticks[process] = peak.ticks.get(process, (0, 0))[0], used
            kind = "driver" if pid == os.getpid() else "worker"
            if kind == "worker" and (folder / "comm").read_text().strip() == "java":
                kind = "jvm"
            for line in (folder / "status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    peak.note(kind, int(line.split()[1]) / 1024)


def _family() -> list[int]:
    """This process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for folder in _PROC.glob("[0-9]*"):
        with suppress(OSError, IndexError):
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(int(folder.name))
    found = [os.getpid()]
    for pid in found:
        found.extend(children.get(pid, ()))
    return found


@dataclass
class Contender:
    """One way to do the work. `run` does it once, from a clean start, and returns its seconds."""

    name: str
    run: Callable[[], float]
    seconds: list[float] = field(default_factory=list)
    peak: Peak = field(default_factory=Peak)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def race(contenders: list[Contender], rounds: int) -> None:
    """A first round that is thrown away, then `rounds` rounds in which the contenders take turns."""
    for number in range(rounds + 1):
        for each in contenders:
            with watched() as peak:
                seconds = each.run()
            if number:
                each.seconds.append(seconds)
                for kind in ("jvm", "driver", "worker"):
                    each.peak.note(kind, getattr(peak, kind))


def table(contenders: list[Contender], records: int, against: str) -> str:
    """A Markdown table: median, spread, rate, ratio to one of them, memory."""
    base = next(each for each in contenders if each.name == against).median
    lines = [
        f"| way | median s | min-max s | records/s | ratio to {against} | peak MiB: JVM / driver / worker |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for each in contenders:
        low, high, peak = min(each.seconds), max(each.seconds), each.peak
        lines.append(
            f"| {each.name} | {each.median:.2f} | {low:.2f}-{high:.2f} | {records / each.median:,.0f} "
            f"| {each.median / base:.2f} | {peak.jvm:.0f} / {peak.driver:.0f} / {peak.worker:.0f} |"
        )
    return "\n".join(lines)


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def phases(found: Mapping[str, float]) -> str:
    """Seconds per phase in one line."""
    return ", ".join(f"{name} {seconds:.2f}" for name, seconds in found.items())
