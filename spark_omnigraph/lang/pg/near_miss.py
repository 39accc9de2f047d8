"""Names of annotations that look like a known one.

An unknown annotation is kept and ignored, so a misspelt `@key` would lose the key without a word. A name counts as a
near miss of a known one when it

- differs in case or underscores alone (`@Key`, `@renameFrom`);
- has one letter more, one less, or two neighbours swapped (`@keys`, `@indx`, `@uniuqe`);
- has one other letter, for names of five letters and more (`@rangr`); two edits for eight and more;
- is the beginning of a longer one, from four letters on (`@uniq`, `@desc`);
- is one of a few other spellings (`@idx`, `@primary_key`, `@cardinality`, `@embedding`).
"""

from __future__ import annotations

FORMS = {
    "key": "@key after a property, or @key(property, …) in the body of a node",
    "unique": "@unique after a property, or @unique(property, …) in the body of a node or edge",
    "index": "@index after a property, or @index(property, …) in the body of a node or edge",
    "range": "@range(property, min..max) in the body of a node",
    "check": '@check(property, "regex") in the body of a node',
    "card": "@card(min..max) or @card(min..) right after the target type of an edge",
    "embed": '@embed("source") after a Vector property',
    "description": '@description("text") on a node, edge or property',
    "instruction": '@instruction("text") on a node or edge',
    "rename_from": '@rename_from("old_name") on a type or property',
}
"""The known annotations and how each is written."""

_OTHER_SPELLINGS = {
    "cardinality": "card",
    "embedded": "embed",
    "embedding": "embed",
    "idx": "index",
    "indexed": "index",
    "pk": "key",
    "primarykey": "key",
}


def resembles(name: str) -> str | None:
    """The known annotation that an unknown name is a near miss of.

    >>> resembles("Key"), resembles("uniqe"), resembles("team"), resembles("key")
    ('key', 'unique', None, None)
    """
    if name in FORMS:
        return None
    plain = name.replace("_", "").lower()
    if plain in _OTHER_SPELLINGS:
        return _OTHER_SPELLINGS[plain]
    return next((known for known in FORMS if _near(plain, known.replace("_", ""))), None)


def advice(known: str) -> str:
    """How a known annotation is written, as a sentence."""
    return f"write {FORMS[known]}"


def _near(name: str, known: str) -> bool:
    if name == known or (len(known) >= 6 and len(name) >= 4 and known.startswith(name)):
        return True
    if len(known) < 5 and len(name) == len(known):
        return sorted(name) == sorted(known) and _distance(name, known) == 1
    return _distance(name, known) <= (2 if len(known) >= 8 else 1)


def _distance(left: str, right: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours between two short words, or 3 for more than that."""
    if abs(len(left) - len(right)) > 2:
        return 3
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        earlier, before, row = before, row, [i]
        for j, b in enumerate(right, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return min(row[-1], 3)
