"""The session that docs/querying.md shows is what happens."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "querying.md"


def test_the_session_of_the_page() -> None:
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert (found.failed, found.attempted > 10) == (0, True)
