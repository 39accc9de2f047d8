"""How fast a provider may be asked: what a minute allows, less after it said that this is too much."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from threading import Lock
from time import monotonic

_SLOWEST = 1 / 64
_RECOVERY = 1 / 20
"""What each answer gives back of the whole speed."""
_A_MINUTE = 60.0
_LONGEST = 86_400.0
"""Seconds that a provider may ask to wait, for arithmetic alone."""


class Pace:
    """Turns of the requests of one process, evenly spaced, in whichever threads they are."""

    def __init__(
        self,
        requests_per_minute: float | None,
        tokens_per_minute: float | None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._request = _A_MINUTE / requests_per_minute if requests_per_minute else 0.0
        self._token = _A_MINUTE / tokens_per_minute if tokens_per_minute else 0.0
        self._clock = clock
        self._lock = Lock()
        self._began = self._next = clock()
        self._sent = 0
        self._learned = 0.0
        self._part = 1.0
        self._slowed = -math.inf
        self._held_until = -math.inf

    def held(self) -> float:
        """Seconds for which the provider wants no request at all, 0 where it said nothing of the kind."""
        with self._lock:
            return max(0.0, self._held_until - self._clock())

    def turn(self, tokens: float) -> float:
        """Seconds until a request of about so many tokens may be sent; its place is taken."""
        with self._lock:
            now = self._clock()
            at = max(now, self._next)
            self._next = at + max(self._request, tokens * self._token, self._learned) / self._part
            self._sent += 1
            return at - now

    def too_fast(self, sent: float, wait: float) -> None:
        """A request that was sent at `sent` was refused for its speed: half of it from now on, and nothing for `wait`
        seconds. Refusals of what had been sent before are the same news.
        """
        with self._lock:
            now = self._clock()
            self._held_until = max(self._held_until, now + wait)
            self._next = max(self._next, self._held_until)
            if sent < self._slowed:
                return
            if not (self._request or self._token or self._learned):
                self._learned = max(now - self._began, 0.001) / max(self._sent, 1)
            self._part = max(self._part / 2, _SLOWEST)
            self._slowed = now

    def went_well(self) -> None:
        """An answer came: a little faster again, up to what was allowed."""
        with self._lock:
            self._part = min(1.0, self._part + _RECOVERY)
            if self._part == 1.0:
                self._learned = 0.0


def retry_after(text: str | None) -> float | None:
    """Seconds that a provider asks to wait: a number, or a date. None where it asks for nothing that is understood."""
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            at = parsedate_to_datetime(text)
        except ValueError:
            return None
        if at.tzinfo is None:
            at = at.replace(tzinfo=timezone.utc)
        seconds = (at - datetime.now(timezone.utc)).total_seconds()
    return min(max(seconds, 0.0), _LONGEST) if math.isfinite(seconds) else None
