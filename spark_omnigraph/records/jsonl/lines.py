"""Lines of a block of text, cut out only when somebody asks for one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]


class TextLines(Sequence[bytes]):
    r"""The lines of `text`, which are separated by single line breaks.

    Decoding works on the block as a whole; cutting it into a list of lines first costs as much as a fifth of it.

    >>> lines = TextLines(b"a\n\nbc")
    >>> len(lines), lines[2], lines.starts.tolist()
    (3, b'bc', [0, 2, 3])
    """

    def __init__(self, text: bytes, starts: Int64s | None = None) -> None:
        if starts is None:
            breaks = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n"))
            starts = np.concatenate([np.zeros(1, dtype=np.int64), breaks + 1])
        self.text = text
        self.starts = starts

    @classmethod
    def joined(cls, lines: Sequence[bytes]) -> TextLines:
        """The same lines as one block; a block stays as it is."""
        return lines if isinstance(lines, TextLines) else cls(b"\n".join(lines))

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[bytes]: ...

    def __getitem__(self, at: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self)))]
        place = at + len(self) if at < 0 else at
        if not 0 <= place < len(self):
            raise IndexError(f"line {at} of {len(self)}")
        stop = int(self.starts[place + 1]) - 1 if place + 1 < len(self) else len(self.text)
        return self.text[int(self.starts[place]) : stop]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.text.split(b"\n"))

    def ends(self) -> Int64s:
        """Where each line ends, its line break not counted."""
        return np.append(self.starts[1:] - 1, len(self.text))
