"""What one question may take and what it took, and a thread for it that its caller can leave."""

from __future__ import annotations

import atexit
import ctypes
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from queue import Empty, Queue
from threading import Event, Lock, Thread
from threading import enumerate as enumerate_threads
from time import monotonic, perf_counter
from typing import Any, Generic, TypeVar

from spark_omnigraph.errors import BadRequestError, LimitError, OmnigraphError
from spark_omnigraph.native_work import is_at_work
from spark_omnigraph.redaction import as_shown
from spark_omnigraph.words import counted

T = TypeVar("T")
E = TypeVar("E", bound=OmnigraphError)
AHEAD = 2
"""Items that are made before somebody asks for them."""
_THREAD = "omnigraph-answer"
NAMES = ("time_limit", "max_rows")
"""Arguments that are limits."""


def beyond(kind: Callable[[str], E], message: str, bound: str, needed: int = 0) -> E:
    """The error for what is refused because of a bound, which is an argument: it says that this would allow more."""
    error = kind(f"{message}, or allow more by {bound}")
    error.bound, error.needed = bound, needed
    return error


def name_option(error: OmnigraphError) -> None:
    """Makes the message one for whoever typed a command: the argument is named as its option."""
    if error.bound is not None:
        error.message = f"{error.message.removesuffix(error.bound)}--{error.bound.replace('_', '-')}"


class Abandoned(Exception):  # noqa: N818 - nobody's error: it ends a thread to which nobody listens any more
    """The caller of this work has left."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds and rows of one answer; None is no limit."""

    seconds: float | None = None
    rows: int | None = None

    @classmethod
    def of(cls, time_limit: object = None, max_rows: object = None) -> Limits:
        """BadRequestError for what is no length of time, or no number of rows."""
        seconds = time_limit.total_seconds() if isinstance(time_limit, timedelta) else time_limit
        if seconds is not None and not _is_time(seconds):
            raise BadRequestError(
                f"time_limit is a timedelta, or a number of seconds above 0, not {as_shown(time_limit)}"
            )
        if max_rows is not None and (not isinstance(max_rows, int) or isinstance(max_rows, bool) or max_rows < 0):
            raise BadRequestError(f"max_rows is a whole number, not {as_shown(max_rows)}")
        return cls(None if seconds is None else float(seconds), max_rows)  # type: ignore[arg-type]  # it is a number

    def check_rows(self, count: int) -> None:
        """LimitError for an answer of more rows than are allowed."""
        if self.rows is not None and count > self.rows:
            raise beyond(LimitError, f"the answer has more than {self.rows:,} rows: limit it", "max_rows")


def _is_time(seconds: object) -> bool:
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    return is_number and 0 < seconds < math.inf  # type: ignore[operator]  # it is a number


def split_limits(choices: Mapping[str, object]) -> tuple[Limits, Any]:
    """The limits among the arguments of a call, and the others, typed by whoever takes them."""
    others = dict(choices)
    return Limits.of(*(others.pop(name, None) for name in NAMES)), others


def is_left_behind(seconds: float = 2.0) -> bool:
    """Whether threads that nobody listens to are still at work after waiting this long for them to look, those of
    native libraries too. One that came back to Python while the interpreter ends would end the process as a crash.
    """
    until = monotonic() + seconds
    threads = [thread for thread in enumerate_threads() if thread.name == _THREAD]
    for thread in threads:
        thread.join(max(until - monotonic(), 0))
    return any(thread.is_alive() for thread in threads) or is_at_work(until)


atexit.register(is_left_behind)


class Leaving(Generic[T]):
    """Runs work in a thread of its own. Its caller waits only as long as the limit, and an interrupt from the keyboard
    reaches the caller at once, whatever the thread does; left alone, the thread ends where it next looks.

    The limit counts the time that the caller waits, not what the caller does between two items. Work that looks nowhere
    is `breakable`: an exception is raised in it from outside, so it may not be in the middle of what others share.
    """

    def __init__(self, seconds: float | None, is_breakable: bool = False) -> None:
        self.left = Event()
        self._is_breakable = is_breakable
        self._bounds = Lock()
        self._is_at_work = False
        self._seconds = seconds
        self._rest = seconds
        self._queue: Queue[tuple[bool, T | BaseException | None]] = Queue(AHEAD)

    def check(self) -> None:
        """Abandoned, in the thread, when nobody waits any more."""
        if self.left.is_set():
            raise Abandoned

    def items(self, make: Callable[[], Iterator[T]]) -> Iterator[T]:
        """What `make` yields. LimitError when it takes too long; whatever `make` raises."""
        thread = Thread(target=self._run, args=(make,), name=_THREAD, daemon=True)
        goes_on = True
        try:
            thread.start()
            while True:
                goes_on, item = self._next()
                if isinstance(item, BaseException):
                    raise item
                if not goes_on:
                    return
                yield item  # type: ignore[misc]  # None ends the items
        finally:
            self.left.set()
            self._drain()
            if goes_on and self._is_breakable:
                self._break(thread)

    def _break(self, thread: Thread) -> None:
        """Ends a thread at work: one that is not yet will look, and while the lock is held its number is its own."""
        with self._bounds:
            if self._is_at_work and thread.ident is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Abandoned))

    def value(self, make: Callable[[], T]) -> T:
        """What `make` returns; raises as `items`."""
        return next(self.items(lambda: iter([make()])))

    def _run(self, make: Callable[[], Iterator[T]]) -> None:
        with suppress(Abandoned):
            with self._bounds:
                self.check()
                self._is_at_work = True
            try:
                for item in make():
                    self._queue.put((True, item))
                    self.check()
                self._queue.put((False, None))
            except Abandoned:
                pass
            except BaseException as error:  # noqa: BLE001 - the caller's thread raises it
                self._queue.put((False, error))
            with self._bounds:
                self._is_at_work = False

    def _next(self) -> tuple[bool, T | BaseException | None]:
        began = monotonic()
        try:
            found = self._queue.get(timeout=self._rest)
        except Empty:
            told = f"no answer within its time limit of {self._seconds:g} s: ask for less"
            raise beyond(LimitError, told, "time_limit") from None
        if self._rest is not None:
            self._rest = max(self._rest - (monotonic() - began), 0)
        return found

    def _drain(self) -> None:
        """Room in the queue, so that the thread does not wait there for ever."""
        try:
            while True:
                self._queue.get_nowait()
        except Empty:
            return


@dataclass(frozen=True, slots=True)
class Measured:
    """What an operator gave, and the seconds that it took without those below it."""

    rows: int
    seconds: float


@dataclass(slots=True)
class Watch:
    """What was measured; `told` is told how many operators are done. They are told apart by identity: two of a plan may
    be equal.
    """

    told: Callable[[int], object] | None = None
    found: dict[int, Measured] = field(default_factory=dict)
    _below: list[float] = field(default_factory=list)

    def measured(self, operator: object, work: Callable[[], T], count: Callable[[T], int]) -> T:
        """What `work` returns."""
        self._below.append(0.0)
        began = perf_counter()
        try:
            result = work()
        finally:
            spent = perf_counter() - began
            below = self._below.pop()
            if self._below:
                self._below[-1] += spent
        self.found[id(operator)] = Measured(count(result), spent - below)
        if self.told is not None:
            self.told(len(self.found))
        return result

    @property
    def seconds(self) -> float:
        """Of all operators together."""
        return sum(each.seconds for each in self.found.values())

    def note(self, operator: object) -> str:
        """What stands behind an operator in the text of a plan."""
        each = self.found.get(id(operator))
        if each is None:
            return "  [with the line above]"
        return f"  [{counted(each.rows, 'row')}, {each.seconds * 1000:,.1f} ms]"
