"""What the engine weighs when there are several ways to the same rows. No answer depends on any of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spark_omnigraph.errors import QueryEngineError
from spark_omnigraph.words import TextEnum


class Strategy(TextEnum):
    """How walks find neighbours: an index of all edges in memory, look-ups in the edge table, or what costs less."""

    BY_COST = "by cost"
    ADJACENCY = "adjacency"
    LOOKUP = "lookup"


def _go_on() -> None:
    """Somebody waits for the answer."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Figures measured on one machine; where two ways cost about the same, a figure that is off costs little."""

    walks: Strategy = Strategy.BY_COST

    key_rows: int = 20_000
    """Rows up to which an index is asked for keys alone: looking at all values takes no longer."""
    index_share: int = 64
    """An index is asked when at most one row in so many is expected."""
    sample_rows: int = 512
    """Rows by which shares of a table are estimated, in runs of neighbours."""

    many_share: int = 16
    """Rows are many, and whole columns are read for them, from one row in so many of a table on."""
    column_share: int = 12
    """A column that takes more than one part in so many of the memory is not kept."""
    request_rows: int = 25
    """What asking for any rows costs, in single rows that could be read meanwhile."""
    row_bytes: int = 5_000
    """Bytes of a whole column that are read in the time of one row by its place."""

    index_rows: int = 8_192
    """Texts of a column that are put into an index in memory in the time in which Lance looks one up."""
    first_asked: int = 4
    """Look-ups before the first such index of a larger table is made,"""
    first_share: int = 128
    """or one in so many of those that would pay for it, if these are more."""
    first_part: int = 6
    """A column of a table is first read whole when one part in so many of what that costs was spent on its rows."""
    texts_asked: int = 8
    """Further texts of one look-up by Lance that take as long as the first."""

    lookup_nodes: int = 512
    """Nodes from which a walk by look-ups may go on; each look-up of a batch costs some milliseconds."""
    lookup_share: int = 64
    """A look-up is chosen for at most one node in so many edges: reading all edges is cheaper otherwise."""
    lookup_fan_out: int = 64
    """Edges for each node that may be asked for, above which a walk takes another way: here each costs a look at it."""
    filter_ids: int = 5_000
    """Ids of one filter."""
    walk_entries: int = 2_048
    """Edges and nodes that are put into an index in the time of one walk by look-ups."""
    index_entries: int = 1 << 20
    """Edges and nodes above which walks from few nodes build no index: who asks for a few rows should not wait."""

    scored_rows: int = 10_000
    """Rows from which Lance looks for the best of a scan; of smaller tables all rows are scored here."""
    spare: int = 64
    """Candidates besides the wanted ones, so that equal scores are told apart by the rules of the plan."""
    spare_texts: int = 4_096
    """The same for texts, which often score alike: so all rows of all but common words come at once."""

    pairs: int = 1 << 20
    """Pairs that are made before predicates are asked of them."""
    most_rows: int = 1 << 28
    """Rows of one step above which it is refused: each variable takes eight bytes a row."""
    check: Callable[[], None] = _go_on
    """Called between steps, also of those whose number nothing bounds; ends the work by what it raises."""

    def check_size(self, count: int, what: str) -> None:
        """QueryEngineError when a step would make more rows than fit; whatever `check` raises."""
        self.check()
        if count > self.most_rows:
            raise QueryEngineError(
                f"{what} gives {count:,} rows, and at most {self.most_rows:,} fit: narrow the pattern, or walk less far"
            )


DEFAULT = Costs()
