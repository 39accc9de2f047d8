"""Who may still need files that nothing names: writers that are alive, and interrupted ones that await recovery."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from spark_omnigraph.commit.claim import claimed_since
from spark_omnigraph.commit.lease import SKEW, TERM, lease_facts
from spark_omnigraph.commit.sidecar import Sidecar, pending
from spark_omnigraph.storage.graph_store import GraphStore
from spark_omnigraph.storage.layout import RECOVERY

_LEASE = ".lease"


@dataclass(frozen=True, slots=True)
class Owners:
    """`since`: the earliest start of any of them, in seconds since the epoch; None when there is nobody.
    `alive`: how many live leases there are.
    """

    since: float | None
    alive: int
    sidecars: tuple[Sidecar, ...]

    def spare(self, moment: datetime) -> datetime:
        """The later of two limits: everything modified before it is older than every owner, and than `moment`."""
        if self.since is None:
            return moment
        started = datetime.fromtimestamp(max(self.since - SKEW, 0.0), timezone.utc)
        return min(moment, started - timedelta(seconds=1))

    def covers(self, table_key: str) -> bool:
        """Whether a pending write names the table, on whatever branch."""
        return any(table_key in sidecar.tables for sidecar in self.sidecars)


def find_owners(store: GraphStore) -> Owners:
    """Everybody who has said so in `__recovery/`. RecoveryRequiredError when a sidecar there cannot be read."""
    sidecars = tuple(pending(store))
    leases = _live_leases(store)
    starts = [*leases, *claimed_since(store), *(sidecar.started_at / 1e6 for sidecar in sidecars)]
    return Owners(min(starts, default=None), len(leases), sidecars)


def _live_leases(store: GraphStore) -> list[float]:
    """Starts of all leases that are in force; one that cannot be read counts for its term, from the beginning."""
    now, starts = time.time(), []
    for each in store.objects.walk(RECOVERY):
        content = store.objects.get(each.path) if each.path.endswith(_LEASE) else None
        if content is not None:
            facts = lease_facts(content)
            if facts is None and now < each.modified.timestamp() + TERM + SKEW:
                starts.append(0.0)
            elif facts is not None and facts.is_live(now):
                starts.append(facts.started_at)
    return starts
