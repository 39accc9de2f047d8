"""When answers are kept, by a clock that goes on while a provider is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from spark_omnigraph.embed.embedder import Embedded, Patience, Role
from spark_omnigraph.embed.mock import MockEmbedder
from spark_omnigraph.errors import EmbeddingError
from spark_omnigraph.staging.asking import EVERY_SECONDS, Asking
from spark_omnigraph.storage.vectors import VectorStore

BATCH = 4
TEXTS = [f"text {number}" for number in range(60)]


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
