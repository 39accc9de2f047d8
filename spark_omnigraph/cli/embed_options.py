"""Options of the verb `embed`."""

from __future__ import annotations

from dataclasses import replace

from spark_omnigraph.cli import values
from spark_omnigraph.cli.options import (
    ACTOR,
    BAD_ROWS,
    BRANCH,
    CACHE,
    DRY_RUN,
    EXECUTOR,
    GRAPH,
    INPUT,
    MAX_BAD_ROWS,
    META,
    OUTPUT,
    PAGE,
    REPORTING,
    SHOW_ROWS,
    STORAGE_OPTION,
    TYPES,
    Option,
    Shape,
)

EMBED_TYPES = replace(
    TYPES,
    help="only this type; of a file, may be repeated. unset: all @embed properties of the graph, all rows of the file",
)
EMBED_INPUT = replace(
    INPUT,
    help="instead of a graph, a file of JSON lines (also .gz) whose records get vectors",
    parse=values.existing_file,
    metavar="FILE",
    required=False,
)
EMBED_OUTPUT = replace(OUTPUT, help="the file that --input becomes, complete or not at all; packed when it ends in .gz")
SPEC = Option(
    "spec",
    'what of a file is embedded (JSON): {"dimension": N, "types": {"T": {"target": "vec", "fields": ["a", "b"]}}}',
    values.existing_file,
    "FILE",
)
SEED = Option("seed", "manifest (YAML) that names input, output and specification", values.existing_file, "FILE")
SELECT = Option(
    "select",
    "only records of a file with this text in a field, also those that have a vector; may be repeated",
    metavar="[T:]FIELD=TEXT",
    shape=Shape.MANY,
)
OF_FILE = (EMBED_INPUT, EMBED_OUTPUT, SPEC, SEED, SELECT)
PROPERTY = Option("property", "only this vector property of the type; unset: all with @embed", metavar="P")
TEXT_SOURCE = Option("source", "the String property that is the text; unset: what @embed names", metavar="S")
TEXT_FIELDS = Option(
    "fields", "properties that make up the text, each a line, instead of one source", values.names, "A,B,…"
)
_MODE_WORDS = {
    "missing": "rows that have a text and no vector (the default)",
    "stale": "besides those whose vector is not the answer to their text",
    "all": "all rows that have a text",
    "clean": "take the vectors away instead",
}
EMBED_MODES = tuple(
    Option(key, words, values.switch, default="false", shape=Shape.SWITCH) for key, words in _MODE_WORDS.items()
)
"""Which rows are embedded; at most one of them can be meant."""
WHERE = Option("where", "only rows of this filter, as in reads: year > 1990 AND title IS NOT NULL", metavar="FILTER")
ADOPT = Option(
    "adopt", "with --stale: a vector that is no answer to any text is up to date", values.switch,
    default="false", shape=Shape.SWITCH,
)  # laid out as a table  # fmt: skip
PROVIDER = Option(
    "provider",
    "who gives vectors: openai-compatible, openai, gemini, local or mock; unset: what OMNIGRAPH_EMBED_PROVIDER says. "
    "The key comes from the environment, or from spark.omnigraph.embed.api_key in the Spark configuration",
    metavar="NAME",
)
EMBED_MODEL = Option("model", "the provider's model; unset: what OMNIGRAPH_EMBED_MODEL says", metavar="NAME")
BATCH = Option("batch", "texts in one request", values.positive, "N", default="64")
PARALLEL = Option("parallel", "requests under way at a time, in all tasks together", values.positive, "N", default="8")
REQUESTS_PER_MINUTE = Option(
    "requests_per_minute",
    "requests a minute, in all tasks together; unset: what OMNIGRAPH_EMBED_REQUESTS_PER_MINUTE says",
    values.positive,
    "N",
)
TOKENS_PER_MINUTE = Option(
    "tokens_per_minute",
    "tokens a minute, in all tasks together; unset: what OMNIGRAPH_EMBED_TOKENS_PER_MINUTE says",
    values.positive,
    "N",
)
NO_CACHE = Option("no_cache", "keep no answers", values.switch, default="false", shape=Shape.SWITCH)
CACHE_EVERY = Option(
    "cache_every",
    "commit answers to the cache after so many at most; unset: 1,000, or as many as come in a fifth of a second",
    values.positive,
    "N",
)
CACHE_SECONDS = Option(
    "cache_seconds", "commit answers to the cache after so many seconds at most", values.positive, "N", default="10"
)
FAILED_ROWS = replace(MAX_BAD_ROWS, help="commit although at most N rows, or P percent, got no vector")
COMMIT_EVERY = Option("commit_every", "make a commit of so many rows at most; unset: one commit", values.positive, "N")
PRICE = Option(
    "price_per_million", "what a million tokens costs: a dry run says what all of them will", values.amount, "PRICE"
)
MAX_TOKENS = Option("max_tokens", "ask nobody where more tokens would be asked for, about", values.positive, "N")
MAX_COST = Option(
    "max_cost", "ask nobody where it would cost more, about; goes with --price-per-million", values.amount, "COST"
)
EMBEDDING = (
    EMBED_TYPES, PROPERTY, *EMBED_MODES, TEXT_SOURCE, TEXT_FIELDS, WHERE, ADOPT, PROVIDER, EMBED_MODEL, BATCH, PARALLEL,
    REQUESTS_PER_MINUTE, TOKENS_PER_MINUTE, CACHE, NO_CACHE, CACHE_EVERY, CACHE_SECONDS, FAILED_ROWS, BAD_ROWS,
    SHOW_ROWS, COMMIT_EVERY, PRICE, MAX_TOKENS, MAX_COST, *OF_FILE,
)  # laid out as a table  # fmt: skip
EMBED_EXECUTOR = replace(
    EXECUTOR,
    help="where texts are asked and vectors written: this process, or Spark; auto takes Spark when the master "
    "is a cluster",
)
TO_EMBED = (
    replace(GRAPH, required=False),
    BRANCH,
    ACTOR,
    META,
    EMBED_EXECUTOR,
    DRY_RUN,
    STORAGE_OPTION,
    PAGE,
    *REPORTING,
)
"""Common options of what embeds the rows of a branch."""
