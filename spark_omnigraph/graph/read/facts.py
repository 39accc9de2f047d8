"""Answers about a graph that are read by field and go as JSON."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping


class Facts(Mapping[str, object]):
    """Facts with named fields, which are also reached by the names and in the values of their JSON form."""

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""

    def __getitem__(self, name: str) -> object:
        return self.to_dict()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __len__(self) -> int:
        return len(self.to_dict())
