"""What an object needs to show itself."""

from __future__ import annotations

from abc import abstractmethod

from spark_omnigraph.draw.card import LINE, Card, shown
from spark_omnigraph.draw.html import card_html


class Displayed:
    """An object with a `repr` of one line, and HTML for notebooks, which ask for `_repr_html_`.

    A dataclass that is shown so says `repr=False`.
    """

    __slots__ = ()

    @abstractmethod
    def _card(self) -> Card:
        """What there is to show."""

    def __repr__(self) -> str:
        card = self._card()
        return f"<{card.title}: {shown(card.line, LINE)}>"

    def _repr_html_(self) -> str:
        return card_html(self._card())
