"""When answers are kept, by a clock that goes on while a provider is asked; and what is written while it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pyarrow as pa
import pytest

from spark_omnigraph.embed.embedder import Embedded, Patience, Role
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.errors import EmbeddingError, StorageError
from spark_omnigraph.staging.asking import EVERY_SECONDS, EVERY_TEXTS, Asking
from spark_omnigraph.storage.vectors import VectorStore

BATCH = 4
TEXTS = [f"text {number}" for number in range(60)]
HALF = EVERY_TEXTS // 2
PATIENCE = 120.0


@dataclass
class Slow:
    """A provider that is asked in parts, each of which takes its seconds; it looks at what is kept meanwhile."""

    store: VectorStore
    seconds: Sequence[float]
    failing: frozenset[str] = frozenset()
    now: float = 1000.0
    model: str = "m"
    identity: str = "slow/m"
    told: list[float] = field(default_factory=list)
    """When each answer came."""
    asked: int = 0
    latest: float = 0.0
    """How long an answer was not kept at most."""

    def clock(self) -> float:
        return self.now

    def embed(self, texts: Sequence[str], *, dimension: int, role: Role) -> Embedded:
        raise AssertionError("it is asked in parts")

    def parts(
        self, texts: Sequence[str], *, dimension: int, role: Role, patience: Patience
    ) -> Iterator[tuple[int, Embedded]]:
        for start in reversed(range(0, len(texts), BATCH)):  # in any order
            self.asked += 1
            ends = self.now + self.seconds[self.asked % len(self.seconds)]
            while (waits := patience()) is not None and self.now + waits < ends:
                self._go_on(self.now + waits)
                yield 0, Embedded(MockEmbedder().embed([], dimension=dimension, role=role).vectors)
            self._go_on(ends)
            found = MockEmbedder().embed(texts[start : start + BATCH], dimension=dimension, role=role)
            failures = {at: "no" for at, text in enumerate(texts[start : start + BATCH]) if text in self.failing}
            self.told += [self.now] * (BATCH - len(failures))
            yield start, Embedded(found.vectors, failures)

    def _go_on(self, now: float) -> None:
        self.now = now
        answers = self.store.answers(2)
        kept = 0 if answers.table is None else sum(len(part) for part in answers.all())
        self.latest = max([self.latest, *(now - at for at in self.told[kept:])])


@pytest.mark.parametrize(
    "seconds", [[1.0], [9.0], [25.0, 0.1], [60.0, 0.1, 0.1], [0.1] * 14 + [600.0], [EVERY_SECONDS]]
)
def test_no_answer_waits_longer_than_ten_seconds(tmp_path: Path, seconds: list[float]) -> None:
    store = VectorStore(str(tmp_path / "cache"))
    slow = Slow(store, seconds)
    asking = Asking(slow, 2, store, at_once=40, clock=slow.clock)
    keys = asking.keys(pa.array(TEXTS))
    done = asking.ask(keys, lambda first, last: TEXTS[first:last], 0)
    assert (done.answered, slow.asked) == (60, 15)
    assert slow.latest <= EVERY_SECONDS == 10
    answers = store.answers(2)
    found = answers.reader().take(answers.find(keys)).to_pylist()
    assert found == MockEmbedder().embed(TEXTS, dimension=2, role=Role.DOCUMENT).vectors.tolist()


def test_what_is_answered_is_kept_when_too_many_fail(tmp_path: Path) -> None:
    store = VectorStore(str(tmp_path / "cache"))
    slow = Slow(store, [0.01], failing=frozenset(TEXTS[20:24]))
    asking = Asking(slow, 2, store, at_once=40, clock=slow.clock)
    keys = asking.keys(pa.array(TEXTS))
    done = asking.ask(keys, lambda first, last: TEXTS[first:last], 3)
    assert (done.answered, len(done.failures), slow.asked) == (16, 4, 5), "nobody is asked any more"
    assert int((store.answers(2).find(keys) >= 0).sum()) == 16
    asking = Asking(Slow(store, [0.01], frozenset(TEXTS)), 2, store, at_once=40)
    with pytest.raises(EmbeddingError, match="none of 40 texts got a vector: no"):
        asking.ask(keys, lambda first, last: TEXTS[first:last], 100)


@dataclass
class Quick:
    """A provider that says when it is asked the how-manieth time."""

    asked: Callable[[int], None]
    model: str = "m"
    identity: str = "quick/m"
    times: int = 0

    def embed(self, texts: Sequence[str], *, dimension: int, role: Role) -> Embedded:
        self.times += 1
        self.asked(self.times)
        return MockEmbedder().embed(texts, dimension=dimension, role=role)


@dataclass(frozen=True)
class Watched(VectorStore):
    """A store that says how many answers it is about to add, and how many it has added."""

    begins: Callable[[int], None] = lambda count: None
    ends: Callable[[int], None] = lambda count: None

    def add(self, dimension: int, answers: Sequence[pa.RecordBatch]) -> None:
        count = sum(part.num_rows for part in answers)
        self.begins(count)
        super().add(dimension, answers)
        self.ends(count)


def ask_quickly(provider: Quick, store: VectorStore, batches: int, clock: Callable[[], float]) -> pa.Array:
    """Asks for half of the bound at a time, whose clock goes on by seconds; the keys, where nothing is raised."""
    texts = [f"text {number}" for number in range(batches * HALF)]
    asking = Asking(provider, 2, store, at_once=HALF, clock=clock)
    keys = asking.keys(pa.array(texts))
    assert asking.ask(keys, lambda first, last: texts[first:last], 0).answered == len(texts)
    return keys


def kept(store: VectorStore, batches: int) -> list[int]:
    """How many answers of each batch are kept."""
    asking = Asking(Quick(lambda _: None), 2, store)
    found = store.answers(2).find(asking.keys(pa.array([f"text {number}" for number in range(batches * HALF)])))
    return [int(count) for count in (found.reshape(batches, HALF) >= 0).sum(axis=1)]


def test_answers_are_written_while_the_next_texts_are_asked(tmp_path: Path) -> None:
    """And no more than the bound are not kept meanwhile."""
    now, asked, waited, added, late = [0.0], Event(), [], [0], [0]

    def when_asked(times: int) -> None:
        late[0] = max(late[0], (times - 1) * HALF - added[0])
        now[0] += 1
        if times == 2:
            asked.set()

    def begins(_: int) -> None:
        waited.append(asked.wait(PATIENCE))

    def ends(count: int) -> None:
        added[0] += count

    store = Watched(str(tmp_path / "cache"), {}, begins, ends)
    ask_quickly(Quick(when_asked), store, 6, lambda: now[0])
    assert waited == [True] * 6
    assert HALF <= late[0] <= EVERY_TEXTS
    assert kept(store, 6) == [HALF] * 6


@pytest.mark.parametrize("error", [KeyboardInterrupt(), EmbeddingError("no more")])
def test_what_is_answered_is_kept_whatever_ends_the_run(tmp_path: Path, error: BaseException) -> None:
    """One part of it is being written then, the next one waits."""
    now, ended = [0.0], Event()

    def when_asked(times: int) -> None:
        now[0] = 1
        if times == 3:
            ended.set()
            raise error

    def begins(_: int) -> None:
        assert ended.wait(PATIENCE)

    store = Watched(str(tmp_path / "cache"), {}, begins)
    with pytest.raises(type(error)):
        ask_quickly(Quick(when_asked), store, 4, lambda: now[0])
    assert kept(store, 4) == [HALF, HALF, 0, 0]


@pytest.mark.parametrize("refused", [1, 2, 4])
@pytest.mark.parametrize("again", [False, True])
def test_a_write_that_fails_ends_the_run_and_is_tried_once_more(tmp_path: Path, refused: int, again: bool) -> None:
    now, begun, provider = [0.0], [0], Quick(lambda _: now.__setitem__(0, now[0] + 1))

    def begins(_: int) -> None:
        begun[0] += 1
        if begun[0] == refused or (again and begun[0] > refused):
            raise StorageError("storage: the disk is full")

    store = Watched(str(tmp_path / "cache"), {}, begins)
    with pytest.raises(StorageError, match="the disk is full"):
        ask_quickly(provider, store, 4, lambda: now[0])
    assert provider.times == min(refused + 1, 4), "at most one part is asked while another one is written"
    stays = refused - 1 if again else provider.times
    assert kept(store, 4) == [HALF] * stays + [0] * (4 - stays)


def test_what_waits_is_written_where_what_was_written_before_it_failed(tmp_path: Path) -> None:
    """Which is known no sooner than at the end."""
    now, ended, begun = [0.0], Event(), [0]

    def when_asked(times: int) -> None:
        now[0] = 1
        if times == 3:
            ended.set()
            raise EmbeddingError("no more")

    def begins(_: int) -> None:
        assert ended.wait(PATIENCE)
        begun[0] += 1
        if begun[0] == 1:
            raise StorageError("storage: the store is busy")

    store = Watched(str(tmp_path / "cache"), {}, begins)
    with pytest.raises(StorageError, match="the store is busy"):
        ask_quickly(Quick(when_asked), store, 4, lambda: now[0])
    assert kept(store, 4) == [HALF, HALF, 0, 0]


def test_of_a_number_that_is_named_no_more_is_not_kept(tmp_path: Path) -> None:
    """Not even while something is written."""
    added = [0]

    def when_asked(times: int) -> None:
        assert (times - 1) * BATCH - added[0] < 2 * BATCH

    store = Watched(str(tmp_path / "cache"), ends=lambda count: added.__setitem__(0, added[0] + count))
    asking = Asking(Quick(when_asked), 2, store, at_once=BATCH, every_texts=2 * BATCH)
    keys = asking.keys(pa.array(TEXTS))
    assert asking.ask(keys, lambda first, last: TEXTS[first:last], 0).answered == added[0] == 60
