"""DataFusion's errors become ours here, once: each in one line, without the names of its layers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from spark_omnigraph.errors import (
    BadRequestError,
    LimitError,
    OmnigraphError,
    ParameterError,
    QueryEngineError,
    QueryParseError,
    QueryTypeError,
    StorageError,
    is_panic,
)
from spark_omnigraph.lang.source import Region, SourceText, clip
from spark_omnigraph.limits import beyond

READS_ALONE = "sql reads, and does nothing else: give one SELECT, VALUES, EXPLAIN, SHOW or DESCRIBE"

GROWING = (
    "repeat", "lpad", "rpad", "array_repeat", "list_repeat", "array_resize", "list_resize", "range", "generate_series",
)  # laid out as a table  # fmt: skip
"""Functions that make values of any size from small ones, in memory that nothing bounds: they are absent."""
_AS_TABLES = frozenset(("range", "generate_series"))
"""Those that are there in FROM, where they give one row after the other."""

_LAYER = re.compile(
    r"(?:(?:DataFusion|FFI|External|Execution|Arrow|Cast|Schema|Internal|SQL|Context) error: |Error during planning: "
    r"|LanceError\(\w+\): |(?:Optimizer rule '\w+' failed|\w+)\s+caused by\s+)+"
)
_NOT_BUILT = "This feature is not implemented: "
_SYNTAX = re.compile(r"(Unsupported (?:ast node(?: in sqltorel:)?|JOIN operator|Value)) ?'?(\w+).*", re.DOTALL)
"""What follows is the parser's own notation of the statement."""
_OUTER = re.compile(r"\bouter_ref\(([^)]*)\) is not yet supported|OuterReferenceColumn\(Field \{ name: \"([^\"]*)\"")
_MISPLACED = re.compile(
    r"support logical expression (?:InSubquery|Exists|SetComparison)\(|subquery can only be used in "
    r"|\(<subquery>\) is not"
)
"""A subquery where the planner turns none into a join."""
_REPORT = re.compile(r"\s*This issue was likely caused by a bug in DataFusion's code\..*", re.DOTALL)
_LANCE_SOURCE = re.compile(r",?\s*/\S+\.rs:\d+(:\d+)?")
_NOT_READING = re.compile(
    r"(?:DDL|DML|Statement) not supported: (.*)|Unsupported SQL statement: (.*)|(SET variant) not implemented"
    r"|(only supports a single SQL statement)|(No SQL statements were provided)|(Query (?:INSERT|UPDATE|DELETE|MERGE) )"
)
_PARSER = re.compile(r'(?:ParserError|TokenizerError)\("(.*)"\)', re.DOTALL)
_PLACE = re.compile(r"\s*at Line: (\d+), Column: (\d+)")
_PLACEHOLDER = re.compile(r"(?:Placeholder '\$?|No value found for placeholder with name \$?)([^\s']+)")
_NO_TABLE = re.compile(r"\btable '([^']*)' not found|failed to resolve (?:schema|catalog): (.*)")
_NO_FUNCTION = re.compile(r"\bInvalid function '([^']*)'")
_EXHAUSTED = "Resources exhausted: "
_OVERFLOW = "offset overflow"
_DISK = "used disk space during the spilling process"
_LOST = ("LanceError(IO)", "Object at location", "Generic S3", "No such file")


@contextmanager
def planning(text: str, faults: Sequence[OmnigraphError]) -> Iterator[None]:
    """Errors of a text that has not run: QueryParseError, QueryTypeError, ParameterError, BadRequestError for what does
    more than read; or the fault that was met when its tables were looked for.
    """
    try:
        yield
    except (OmnigraphError, MemoryError):
        raise
    except Exception as error:
        is_lost = _NO_TABLE.search(str(error)) is not None and faults
        raise faults[-1] if is_lost else _of_text(str(error), text) from error
    except BaseException as error:
        raise _panic(error) from error


@contextmanager
def running(faults: Sequence[OmnigraphError]) -> Iterator[None]:
    """Errors of a statement that runs: QueryEngineError, LimitError, StorageError; or the fault that was met when it
    looked for tables, as `information_schema` does.
    """
    try:
        yield
    except (OmnigraphError, MemoryError):
        raise
    except Exception as error:
        if faults:
            raise faults[0] from error
        raise _of_run(str(error)) from error
    except BaseException as error:
        raise _panic(error) from error
    if faults:
        raise faults[0]


def _of_text(said: str, text: str) -> OmnigraphError:
    refused = _NOT_READING.search(said)
    if refused is not None:
        named = next((found for found in refused.groups() if found), "")
        return BadRequestError(clip(f"{READS_ALONE}; this is refused: {_line(named)}"))
    parser = _PARSER.search(said)
    if parser is not None:
        return _unparsed(parser.group(1), text)
    missing = _NO_TABLE.search(said)
    if missing is not None:
        return QueryTypeError(clip(f"sql: there is no table or schema {missing.group(1) or missing.group(2)}"))
    if "RecursionLimitExceeded" in said:
        return QueryParseError("sql: the statement is nested too deeply")
    return _absent(said) or _missing_value(said) or QueryTypeError(f"sql: {_line(said)}")


def _absent(said: str) -> QueryTypeError | None:
    """For a function that is not there on purpose: of the names that DataFusion proposes none is what was meant."""
    found = _NO_FUNCTION.search(said)
    name = "" if found is None else found.group(1).lower()
    if name not in GROWING:
        return None
    instead = f"; FROM {name}(1, 5) gives the numbers as rows" if name in _AS_TABLES else ""
    return QueryTypeError(f"sql: the function {name} is absent, since it makes values of any size{instead}")


def _unparsed(reason: str, text: str) -> QueryParseError:
    message = f"sql: {_line(_PLACE.sub('', reason))}"
    place = _PLACE.search(reason)
    if place is None:
        end = len(text.rstrip())
        return QueryParseError(message, SourceText(text).span(Region(end, end)))
    line, column = int(place.group(1)), int(place.group(2))
    start = sum(len(each) for each in text.splitlines(keepends=True)[: line - 1]) + column - 1
    return QueryParseError(f"{message} (line {line}, column {column})", SourceText(text).span(Region(start, start + 1)))


def _of_run(said: str) -> OmnigraphError:
    if _DISK in said:
        return beyond(LimitError, "more is spilled to the disk than it may: ask for less", "spill")
    if _EXHAUSTED in said:
        reason = _line(said.partition(_EXHAUSTED)[2])
        return beyond(LimitError, f"it needs more memory than it may take ({reason}): ask for less", "memory")
    if _OVERFLOW in said:
        return LimitError("texts or lists of one batch take more than 2 GiB: ask for less")
    if any(word in said for word in _LOST) and "Execution error" not in said and "Arrow error" not in said:
        return StorageError(f"storage: {_line(said)}")
    return _missing_value(said) or QueryEngineError(_line(said))


def _missing_value(said: str) -> ParameterError | None:
    found = _PLACEHOLDER.search(said)
    if found is None:
        return None
    name = found.group(1)
    if name == "?" or name.startswith(":"):
        return ParameterError(f"'{name}' is no parameter here: write ${name[1:] or 'name'}, and its value in params")
    return ParameterError(f"parameter ${name} has no value: give one in params")


def _panic(error: BaseException) -> BaseException:
    """What to raise for what is no Exception: DataFusion gives up so on statements that it did not foresee."""
    if is_panic(error):
        return QueryEngineError(f"DataFusion gave up on the statement: {_line(str(error))}")
    return error


def _line(said: str) -> str:
    """A message in one line, of bounded length."""
    if _MISPLACED.search(said) is not None:
        return (
            "IN, ANY and EXISTS take a subquery in WHERE and HAVING alone, and none in ORDER BY looks at the query "
            "around it: join it"
        )
    outer = _OUTER.search(said)
    if outer is not None:
        name = outer.group(1) or outer.group(2)
        how = "by = alone, without LIMIT, and within EXISTS in WHERE alone"
        return clip(f"a subquery may look at {name} of the query around it {how}: join it")
    said = said.replace(_NOT_BUILT, "" if "support" in said else "not supported: ")
    bare = _LAYER.sub("", _LANCE_SOURCE.sub("", _SYNTAX.sub(r"\1 \2", _REPORT.sub("", said))))
    return clip(" ".join(bare.split()))
