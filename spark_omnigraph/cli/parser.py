"""Splits an argument list into a verb and the texts of its options, and writes the help texts."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Mapping, Sequence
from typing import NoReturn

from spark_omnigraph.cli.options import Option, Shape
from spark_omnigraph.cli.values import shortened
from spark_omnigraph.cli.verb import Verb
from spark_omnigraph.errors import UsageError
from spark_omnigraph.words import nearest

PROGRAM = "spark-omnigraph"
EXIT_CODES = (
    "exit codes: 0 done, 1 failed, 2 usage, 3 refused (bad rows, constraint, schema),\n"
    "            4 conflict (run again), 5 recovery required, 6 not found, 130 interrupted"
)
LAST_LINE = (
    "The last line of standard output is a JSON summary (at a terminal a sentence); messages go to standard error."
)
ROWS_ALONE = (
    "Rows stand alone on standard output; the JSON summary (at a terminal a sentence) is the last line of standard "
    "error then."
)
NAMED = 20
"""Mistakes that are named."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raises; the base class would print and leave the process."""
        raise UsageError(message)


def find_verb(argv: Sequence[str], verbs: Mapping[str, Verb]) -> tuple[Verb, list[str]]:
    """The verb that the arguments begin with, of one word or two, and the arguments after it."""
    for words in (2, 1):
        verb = verbs.get(" ".join(argv[:words]))
        if verb is not None and len(argv) >= words:
            return verb, list(argv[words:])
    if not argv:
        raise UsageError(f"a verb is missing: one of {', '.join(verbs)}")
    if argv[0].startswith("-"):
        raise UsageError(f"the verb comes first: {PROGRAM} VERB {shortened(argv[0])} …")
    seconds = [name.partition(" ")[2] for name in verbs if name.startswith(f"{argv[0]} ")]
    if seconds:
        raise UsageError(f"'{argv[0]}' needs one of {', '.join(seconds)} after it")
    word = shortened(argv[0])
    raise UsageError(f"unknown verb '{word}'{nearest(word, verbs)} (verbs: {', '.join(verbs)})")


def split_arguments(verb: Verb, argv: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Texts of the given options by key, and the mistakes found: arguments that the verb does not have."""
    namespace, rest = build(verb).parse_known_args(argv)
    given = {key: _texts(value) for key, value in vars(namespace).items()}
    # `--storage-option KEY SECRET`: what follows a setting without its value is not repeated.
    halves = any("=" not in text for text in given.get("storage_options", ()))
    return given, _unknown(verb, rest, show=not halves)


def build(verb: Verb) -> argparse.ArgumentParser:
    """Parser of one verb. It takes texts as they come: values are checked where those of the file are, too."""
    parser = _Parser(
        prog=f"{PROGRAM} {verb.name}",
        description=f"{verb.help} {ROWS_ALONE if verb.has_rows else LAST_LINE}",
        epilog=f"example:\n{textwrap.indent(textwrap.dedent(verb.example).strip(), '  ')}\n\n{EXIT_CODES}",
        formatter_class=_Formatter,
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
        add_help=False,
    )
    groups = ((f"options of {verb.name}", verb.options), ("common options", verb.common))
    for title, options in groups:
        group = parser.add_argument_group(title)
        for option in options:
            _add(group, option)
    group.add_argument("-h", "--help", action="help", help="show this text and leave")
    return parser


def overview(verbs: Mapping[str, Verb]) -> str:
    """Help of the program as a whole."""
    width = max(len(name) for name in verbs) + 2
    lines = [f"  {name:<{width}}{verb.help}" for name, verb in verbs.items()]
    hint = f"{PROGRAM} VERB --help shows the options of a verb."
    return "\n".join((f"usage: {PROGRAM} VERB [OPTION…]", "", "verbs:", *lines, "", hint, LAST_LINE, EXIT_CODES))


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32, width=110)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("example:"):
            return super()._fill_text(text, width, indent)
        return textwrap.fill(text, width)


def _add(group: argparse._ArgumentGroup, option: Option) -> None:
    text = help_text(option).replace("%", "%%")
    if option.positional:
        group.add_argument(option.key, nargs="?", metavar=option.metavar, help=text)
    elif option.shape is Shape.SWITCH:
        group.add_argument(option.flag_name, dest=option.key, action=argparse.BooleanOptionalAction, help=text)
    elif option.shape is Shape.MANY:
        group.add_argument(
            option.flag_name, dest=option.key, action="extend", nargs="+", metavar=option.metavar, help=text
        )
    elif option.shape is Shape.PAIRS:
        group.add_argument(option.flag_name, dest=option.key, action="append", metavar=option.metavar, help=text)
    else:
        group.add_argument(option.flag_name, dest=option.key, metavar=option.metavar, help=text)


def help_text(option: Option) -> str:
    """Help of an option with its default and its variable."""
    notes = []
    if option.required:
        notes.append("required")
    elif option.default is not None:
        notes.append(f"default: {option.default}")
    if option.env:
        notes.append(f"environment: {option.env_name}")
    return option.help + (f" [{'; '.join(notes)}]" if notes else "")


def _texts(value: object) -> list[str]:
    if isinstance(value, list):
        return [str(item) for item in value]
    return [str(value).lower() if isinstance(value, bool) else str(value)]


def _unknown(verb: Verb, rest: Sequence[str], *, show: bool) -> list[str]:
    flags = [option.flag_name for option in verb.all_options if not option.positional]
    mistakes: list[str] = []
    after_unknown = False
    for word in rest:
        if len(mistakes) == NAMED:
            mistakes.append("and more")
            break
        if word.startswith("-") and word != "-":
            flag = shortened(word.partition("=")[0])
            mistakes.append(f"unknown option {flag}{nearest(flag, flags)}")
            after_unknown = True
        elif not after_unknown:
            mistakes.append(f"unexpected argument '{shortened(word)}'" if show else "unexpected argument")
    if after_unknown:
        mistakes[-1] += f" (options of {verb.name}: {', '.join(sorted(flags))})"
    return mistakes
