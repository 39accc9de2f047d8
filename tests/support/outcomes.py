"""Compares our errors with the reference's: kind, words that must stay, HTTP status, JSON body."""

from __future__ import annotations

import re
from collections.abc import Collection

from spark_omnigraph import errors
from spark_omnigraph.errors import BadRowsError, OmnigraphError
from tests.support.cases import Json, Step

HTTP_STATUS = {"bad_request": 400, "forbidden": 403, "not_found": 404, "conflict": 409, "internal": 500}
"""HTTP status of each `code`, as a server in front of the library answers."""

_ENVELOPE = ("type", "edge")
"""Members of a record that another wording need not name."""

ACCEPTED_KINDS: dict[str, tuple[type[OmnigraphError], ...]] = {
    "parse": (errors.SchemaParseError, errors.QueryParseError),
    "type": (errors.QueryTypeError,),
    "plan": (errors.QueryTypeError, errors.QueryEngineError, errors.BadRequestError),
    "catalog": (errors.CatalogError,),
    "bad_request": (errors.InputError,),
    "param": (errors.InputError,),
    "not_found": (errors.NotFoundError,),
    "conflict": (errors.ConflictError,),
    "internal": (errors.InternalError, errors.EmbeddingError, errors.EmbeddingConfigError),
    "storage": (errors.StorageError,),
}
"""Our classes for each kind of the reference. Its `bad_request` is every refusal of data or options, its
`internal` also what a provider of embeddings refuses or fails at.
"""


def problems(error: OmnigraphError, expected: Json, schema: str) -> list[str]:
    """What of an expected `error` object does not hold; wording may differ, names and values may not."""
    found = []
    kind = expected.get("kind")
    if kind is not None and not isinstance(error, ACCEPTED_KINDS[kind]):
        found.append(f"kind {kind!r} expected, got {type(error).__name__}: {error}")
    said = spoken(error)
    code = expected.get("code")
    if code is not None and not said.startswith(f"type error: {code}:"):
        found.append(f"rule {code} expected, got: {said}")
    for text in expected.get("message_contains", ()):
        if text not in said:
            missing = [word for word in kept_words(text, schema) if not _says(said, word)]
            found.extend(f"{word!r} (of {text!r}) is not in: {said}" for word in missing)
    for rule, count in expected.get("rules", {}).items():
        seen = error.summary.per_rule.get(rule, 0) if isinstance(error, BadRowsError) else 0
        if seen != count:
            found.append(f"{count} bad rows of rule {rule} expected, got {seen}: {said}")
    return found


def spoken(error: OmnigraphError) -> str:
    """Everything an error says: its message and those of the bad rows it carries."""
    parts = [str(error)]
    if isinstance(error, BadRowsError):
        for row in error.summary.sample:
            parts.append(f"line {row.line}: {row.record_type}.{row.field}: {row.rule}: {row.message}")
    return "\n".join(parts)


def _says(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def kept_words(text: str, schema: str) -> list[str]:
    """The parts of a reference message that another wording keeps: quoted values, type and property names, numbers."""
    words: list[str] = []
    for quoted in re.findall(r"'([^']*)'", text):
        words.extend(part for part in re.split(r"[(), ]+", quoted) if part and part not in _ENVELOPE)
    bare = re.sub(r"'[^']*'", " ", text)
    for dotted in re.findall(r"\b([A-Za-z_]\w*)\.([a-z_]\w*)", bare):
        words.extend(dotted)
    declared = set(re.findall(r"\b(?:node|edge|interface)\s+([A-Z]\w*)", schema))
    words.extend(word for word in re.findall(r"\b[A-Z]\w*", bare) if word in declared)
    placeless = re.sub(r"\b(?:rows?|record) \d+(?: and \d+)?", " ", bare)
    words.extend(re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?", placeless))
    return list(dict.fromkeys(words))


# --- the error bodies of the HTTP interface -------------------------------------------------------------------------

_BODY_CLASSES: dict[str, str] = {
    "parse": "QueryParseError",
    "catalog": "CatalogError",
    "plan": "BadRequestError",
    "param": "ParameterError",
    "already_initialized": "AlreadyInitializedError",
    "bad_request": "BadRequestError",
    "not_found": "NotFoundError",
    "conflict": "ConflictError",
    "internal": "InternalError",
    "storage": "StorageError",
    "type": "QueryTypeError",
    "io": "IoError",
    "datafusion": "QueryEngineError",
    "policy": "PolicyError",
    "merge_conflicts": "MergeConflictsError",
}


def missing_error_class(step: Step) -> str | None:
    """Kind of an `http_error` step that no class of ours stands for yet, or None."""
    kind: str = step.fields["error"]["kind"]
    return None if hasattr(errors, _BODY_CLASSES.get(kind, "")) else kind


def error_of(raw: Json) -> OmnigraphError:
    """Our error for an engine error of a case file."""
    details = raw.get("details")
    if isinstance(details, dict) and "expected_version_mismatch" in details:
        return errors.ExpectedVersionMismatch(**details["expected_version_mismatch"])
    if raw["kind"] == "already_initialized":
        return errors.AlreadyInitializedError(raw.get("uri") or _quoted(raw["message"]))
    if raw["kind"] == "storage":
        # The reference adds the word when it prints the error, ours carry it from where they are raised.
        return errors.StorageError(f"storage: {raw['message']}")
    if raw["kind"] == "merge_conflicts":
        return errors.MergeConflictsError([errors.MergeConflict(**conflict) for conflict in raw["conflicts"]])
    made: OmnigraphError = getattr(errors, _BODY_CLASSES[raw["kind"]])(raw.get("message") or raw.get("conflicts"))
    return made


def _quoted(text: str) -> str:
    """What stands between the first quotation marks of a message."""
    return text.split("'")[1] if text.count("'") > 1 else text


def body_problems(error: OmnigraphError, expect: Json, compared: Collection[str]) -> list[str]:
    """Differences of status and of the named body members; ours may have more members, never other values."""
    body, found = error.to_dict(), []
    if isinstance(error, errors.AlreadyInitializedError):
        # Ours names the way out in Python too.
        said, wanted = str(body["error"]), str(expect["body"]["error"])
        compared = [member for member in compared if member != "error"]
        found += [
            f"{word!r} is not in: {said}" for word in (_quoted(wanted), "already initialized") if word not in said
        ]
    if HTTP_STATUS[str(body["code"])] != expect["status"]:
        found.append(f"status {expect['status']} expected, got {HTTP_STATUS[str(body['code'])]}")
    for member in compared:
        if body.get(member) != expect["body"].get(member):
            found.append(f"{member}: {expect['body'].get(member)!r} expected, got {body.get(member)!r}")
    return found
