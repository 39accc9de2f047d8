"""Splits an argument list into a verb and the texts of its options, and writes the help texts."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Mapping, Sequence
from typing import NoReturn

from spark_omnigraph.cli.options import GRAPH, Option, Shape
from spark_omnigraph.cli.values import shortened
from spark_omnigraph.cli.verb import Verb
from spark_omnigraph.errors import UsageError
from spark_omnigraph.words import nearest

PROGRAM = "spark-omnigraph"
HELP = "help"
"""The word that shows the help of the verb after it."""
_ARGUMENT = "argument "
"""Before the key of an option whose value stands without its flag."""
EXIT_CODES = (
    "exit codes: 0 done, 1 failed, 2 usage, 3 refused (bad rows, constraint, schema),\n"
    "            4 conflict (run again, unless two branches disagree), 5 recovery required,\n"
    "            6 not found (graph, branch, type, version, file), 130 interrupted, 143 terminated"
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


class _Switch(argparse.BooleanOptionalAction):
    """On by its flag and off by the other one; the base class takes every flag that begins with `--no-` as off."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, option_string == self.option_strings[0])


_INSTEAD = {
    name: f"the plan of a query is shown by `query --{name}`, that of a statement by `sql --{name}`"
    for name in ("explain", "analyze")
}
"""What is no verb, and how to do what its name says."""


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
    word = shortened(argv[0])
    seconds = [name.partition(" ")[2] for name in family(argv[:1], verbs)]
    if seconds:
        second = shortened(argv[1]) if len(argv) > 1 and not argv[1].startswith("-") else ""
        near = nearest(second, seconds) if second else ""
        after = f", not '{second}'{near}" if second else ""
        raise UsageError(f"'{word}' needs one of {', '.join(seconds)} after it{after}")
    if word in _INSTEAD:
        raise UsageError(f"unknown verb '{word}': {_INSTEAD[word]}")
    raise UsageError(f"unknown verb '{word}'{nearest(word, (*verbs, HELP))} (verbs: {', '.join(verbs)})")


def family(argv: Sequence[str], verbs: Mapping[str, Verb]) -> dict[str, Verb]:
    """The verbs of two words that begin with the one word given: those of `branch`; none for any other."""
    return {name: verb for name, verb in verbs.items() if len(argv) == 1 and name.startswith(f"{argv[0]} ")}


def split_arguments(
    verb: Verb, argv: Sequence[str], verbs: Mapping[str, Verb] | None = None
) -> tuple[dict[str, list[str]], list[str]]:
    """Texts of the given options by key, and the mistakes found: arguments that the verb does not have.

    With `verbs`, mistakes also tell which of these has an option that this verb lacks.
    """
    namespace, rest = build(verb).parse_known_args(argv)
    given = {key: _texts(value) for key, value in vars(namespace).items()}
    _fill_arguments(verb, given, rest)
    mistakes = _arguments_too(verb, given)
    # `--storage-option KEY SECRET`: what follows a setting without its value is not repeated.
    halves = any("=" not in text for text in given.get("storage_options", ()))
    return given, mistakes + _unknown(verb, rest, verbs or {}, given, show=not halves)


def _fill_arguments(verb: Verb, given: dict[str, list[str]], rest: list[str]) -> None:
    """Gives words that stand after options to the arguments that are still missing: argparse takes them in one row."""
    if any(word.startswith("-") for word in rest):
        return
    for option in verb.all_options:
        key = option.key if option.positional else _ARGUMENT + option.key
        if rest and (option.positional or option.argument_too) and key not in given:
            given[key] = [rest.pop(0), *(rest if option.shape is Shape.MANY else ())]
            if option.shape is Shape.MANY:
                rest.clear()


def _arguments_too(verb: Verb, given: dict[str, list[str]]) -> list[str]:
    """Puts values that stand without their flag under the key of the option; both ways at once are a mistake."""
    mistakes = []
    for option in verb.all_options:
        texts = given.pop(_ARGUMENT + option.key, None)
        if texts is not None and option.key in given:
            mistakes.append(f"'{shortened(texts[0])}' is given besides {option.flag_name}: one of the two is enough")
        elif texts is not None:
            given[option.key] = texts
    return mistakes


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


def overview(verbs: Mapping[str, Verb], words: Mapping[str, str] | None = None) -> str:
    """Help of the program as a whole; `words` are what it prints without doing any work."""
    helps = {**{name: verb.help for name, verb in verbs.items()}, **(words or {})}
    width = max(len(name) for name in helps) + 2
    lines = [f"  {name:<{width}}{said}" for name, said in helps.items()]
    hint = f"{PROGRAM} {HELP} VERB, or {PROGRAM} VERB --help, shows the options of a verb."
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
        several = option.shape is Shape.MANY
        group.add_argument(option.key, nargs="*" if several else "?", metavar=option.metavar, help=text)
        return
    if option.argument_too:
        same = f"the same as {option.flag_name} {option.metavar}"
        group.add_argument(_ARGUMENT + option.key, nargs="?", metavar=option.metavar, help=same)
    if option.shape is Shape.SWITCH:
        group.add_argument(option.flag_name, dest=option.key, action=_Switch, help=text)
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
        notes.append(f"required without {option.way_out}" if option.unless else "required")
    elif option.default is not None:
        notes.append(f"default: {option.default}")
    if option.env:
        notes.append(f"environment: {option.env_name}")
    return option.help + (f" [{'; '.join(notes)}]" if notes else "")


def _texts(value: object) -> list[str]:
    if isinstance(value, list):
        return [str(item) for item in value]
    return [str(value).lower() if isinstance(value, bool) else str(value)]


def _unknown(
    verb: Verb, rest: Sequence[str], verbs: Mapping[str, Verb], given: Mapping[str, list[str]], *, show: bool
) -> list[str]:
    flags = [option.flag_name for option in verb.all_options if not option.positional]
    mistakes: list[str] = []
    after_unknown = False
    for word in rest:
        if len(mistakes) == NAMED:
            mistakes.append("and more")
            break
        if word.startswith("-") and word != "-":
            flag = shortened(word.partition("=")[0])
            if not any(_begins(mistake, flag) for mistake in mistakes):
                mistakes.append(f"unknown option {flag}{_instead(verb, flag, flags, verbs)}")
            after_unknown = True
        elif not after_unknown:
            named = f": the graph is named by {GRAPH.flag_name}" if "graph" in verb.required - set(given) else ""
            mistakes.append(f"unexpected argument '{shortened(word)}'{named}" if show else "unexpected argument")
    return mistakes


def _begins(mistake: str, flag: str) -> bool:
    return mistake.startswith((f"unknown option {flag};", f"unknown option {flag}:"))


def _instead(verb: Verb, flag: str, flags: Sequence[str], verbs: Mapping[str, Verb]) -> str:
    """What to do about an option that a verb does not have: those that have it, the nearest one, or the help."""
    having = [other.name for other in verbs.values() if any(o.flag_name == flag for o in other.all_options)]
    if having:
        return f": {verb.name} does not take it, {', '.join(having)} {'do' if len(having) > 1 else 'does'}"
    near = nearest(flag.removeprefix("--"), [each.removeprefix("--") for each in flags if each.startswith("--")])
    return near.replace("mean '", "mean '--") or f"; {PROGRAM} {HELP} {verb.name} lists those of {verb.name}"
