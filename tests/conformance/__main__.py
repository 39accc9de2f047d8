"""Writes `docs/deliberate-differences.md` anew: `python -m tests.conformance`."""

from __future__ import annotations

from tests.support.differences import PAGE, page, read_differences

PAGE.write_text(page(read_differences()), encoding="utf-8")
