"""Words that print something made from the table of verbs, and do no work: `completion SHELL`, `config-schema`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spark_omnigraph.cli.derived.completion import COMPLETION, SCHEMA, SHELLS, script
from spark_omnigraph.cli.verb import Verb
from spark_omnigraph.errors import UsageError
from spark_omnigraph.words import nearest

WORDS: Mapping[str, str] = {
    f"{COMPLETION} SHELL": f"Prints what completes these words at a prompt of {', '.join(SHELLS)}.",
    SCHEMA: "Prints a JSON schema of configuration files, for editors.",
}


def printed(words: Sequence[str], verbs: Mapping[str, Verb]) -> str | None:
    """What the words ask to be printed; None when they do not. UsageError for a shell that is not known."""
    if words[:1] == [SCHEMA]:
        if len(words) > 1:
            raise UsageError(f"'{SCHEMA}' takes no argument")
        from spark_omnigraph.cli.derived.schema import schema_text  # noqa: PLC0415 - no verb needs it

        return schema_text(verbs)
    if words[:1] != [COMPLETION]:
        return None
    if len(words) != 2 or words[1] not in SHELLS:
        near = nearest(words[1], SHELLS) if len(words) > 1 else ""
        raise UsageError(f"'{COMPLETION}' needs one of {', '.join(SHELLS)} after it{near}")
    return script(words[1], verbs)
