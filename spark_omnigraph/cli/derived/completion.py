"""Scripts that complete verbs, options and their words at a prompt. They hold all they need: no program runs for it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from string import Template

from spark_omnigraph.cli.options import Option, Shape
from spark_omnigraph.cli.parser import HELP, PROGRAM
from spark_omnigraph.cli.verb import Verb

COMPLETION, SCHEMA = "completion", "config-schema"
"""Words that print something, and are completed as verbs are."""
SHELLS = ("bash", "zsh", "fish")
_BASH = Template("""\
_spark_omnigraph() {
    local cur prev verb options
    COMPREPLY=()
    cur="$${COMP_WORDS[COMP_CWORD]}"
    prev="$${COMP_WORDS[COMP_CWORD-1]}"
    if [ "$$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($$(compgen -W "$firsts" -- "$$cur"))
        return
    fi
    verb="$${COMP_WORDS[1]}"
    case "$$verb" in
$seconds
    esac
    case "$$verb $$prev" in
$choices
    esac
    case "$$verb" in
$options
        *) return ;;
    esac
    case "$$cur" in
        -*) COMPREPLY=($$(compgen -W "$$options" -- "$$cur")) ;;
    esac
}
complete -o default -F _spark_omnigraph $program
""")
_ZSH = f"#compdef {PROGRAM}\nautoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
_FISH = Template("""\
function __spark_omnigraph_is
    set -l words (commandline -opc)
    test "$$words[2]" = "$$argv[1]"; and test (count $$argv) -eq 1 -o "$$words[3]" = "$$argv[2]"
end
function __spark_omnigraph_at
    test (count (commandline -opc)) -eq $$argv[1]
end
""")


def script(shell: str, verbs: Mapping[str, Verb]) -> str:
    """The script of bash, zsh (which runs that of bash) or fish."""
    if shell == "fish":
        return _FISH.substitute() + "\n".join(_fish(verbs))
    return (_ZSH if shell == "zsh" else "") + _bash(verbs)


def _bash(verbs: Mapping[str, Verb]) -> str:
    return _BASH.substitute(
        firsts=" ".join(_firsts(verbs)),
        seconds="\n".join(_second(first, words) for first, words in _families(verbs).items()),
        choices="\n".join(_choices(verbs)),
        options="\n".join(_case(name, f"options={shlex.quote(' '.join(_flags(v)))}") for name, v in verbs.items()),
        program=PROGRAM,
    )


def _second(first: str, words: Sequence[str]) -> str:
    found = f'if [ "$COMP_CWORD" -eq 2 ]; then {_words(words)}; return; fi'
    return f'        {first})\n            {found}\n            verb="$verb ${{COMP_WORDS[2]}}" ;;'


def _choices(verbs: Mapping[str, Verb]) -> Iterator[str]:
    """The words of options: once where all verbs that have the option take the same, else by verb."""
    having: dict[str, dict[str, tuple[str, ...]]] = {}
    for verb in verbs.values():
        for option in verb.all_options:
            if option.choices and not option.positional:
                having.setdefault(option.flag_name, {})[verb.name] = option.choices
    for flag, by_verb in having.items():
        if len(set(by_verb.values())) == 1:
            yield f"        *' {flag}') {_words(next(iter(by_verb.values())))}; return ;;"
        else:
            yield from (_case(f"{name} {flag}", f"{_words(words)}; return") for name, words in by_verb.items())


def _words(words: Sequence[str]) -> str:
    return f'COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$cur"))'


def _case(pattern: str, what: str) -> str:
    return f"        {shlex.quote(pattern)}) {what} ;;"


def _fish(verbs: Mapping[str, Verb]) -> Iterator[str]:
    begin = f"complete -c {PROGRAM}"
    for first in _firsts(verbs):
        said = verbs[first].help if first in verbs else ""
        yield f"{begin} -f -n '__spark_omnigraph_at 1' -a {first}{_said(said)}"
    for first, words in _families(verbs).items():
        for word in words:
            where = f"'__spark_omnigraph_is {first}; and __spark_omnigraph_at 2'"
            verb_of = verbs.get(f"{first} {word}")
            yield f"{begin} -f -n {where} -a {word}{_said(verb_of.help if verb_of else '')}"
    for verb in verbs.values():
        for option in verb.all_options:
            if not option.positional:
                yield f"{begin} -n '__spark_omnigraph_is {verb.name}'{_fish_flag(option)}{_said(option.help)}"


def _fish_flag(option: Option) -> str:
    name = option.flag_name
    flag = f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}"
    if option.choices:
        return f"{flag} -x -a {shlex.quote(' '.join(option.choices))}"
    return flag if option.shape is Shape.SWITCH else f"{flag} -r"


def _said(text: str) -> str:
    return " -d '{}'".format(text.replace("\\", "\\\\").replace("'", "\\'")) if text else ""


def _flags(verb: Verb) -> list[str]:
    switches = [f"--no-{o.flag_name[2:]}" for o in verb.all_options if o.shape is Shape.SWITCH and o.default == "true"]
    return [option.flag_name for option in verb.all_options if not option.positional] + switches + ["--help"]


def _firsts(verbs: Mapping[str, Verb]) -> list[str]:
    return [*dict.fromkeys(name.partition(" ")[0] for name in verbs), HELP, COMPLETION, SCHEMA]


def _families(verbs: Mapping[str, Verb]) -> dict[str, list[str]]:
    """Second words by first ones: `create`, `list`, … of `branch`."""
    found = {COMPLETION: [*SHELLS], HELP: [*dict.fromkeys(name.partition(" ")[0] for name in verbs)]}
    for name in verbs:
        first, _, second = name.partition(" ")
        if second:
            found.setdefault(first, []).append(second)
    return found
