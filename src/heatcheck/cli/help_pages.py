"""The text of `--help`: plain names for what an option takes, words that are never cut, examples as blocks."""

import inspect
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from pathlib import PurePath
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from heatcheck.cli.layout import width, wrapped

_MOST_FOR_NAMES = 30  # a longer name has a line of its own
_INDENT = 2

Rows = Sequence[tuple[str, str]]


class Overview(TyperGroup):
    """The command without a verb."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - classes that typer keeps to itself
        """Write the help page."""
        verbs = [(name, _first_paragraph(command.help or "")) for name, command in self.commands.items()]
        blocks = [_usage(ctx, ["VERB"]), *_paragraphs(self.help or "")]
        blocks += [_table("Verbs", verbs), _table("Options", _options(self.params, ctx)), *_examples(self.epilog)]
        formatter.write("\n\n".join(blocks) + "\n")


class Page(TyperCommand):
    """One verb."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - classes that typer keeps to itself
        """What an error of usage shows behind the verb: as the help page."""
        return [*self._needed(), "[OPTIONS]"]

    def _needed(self) -> list[str]:
        arguments = [_argument(param) for param in self.params if param.param_type_name == "argument"]
        options = [param for param in self.params if param.param_type_name == "option" and param.required]
        return [*arguments, *(f"{param.opts[0]} {_value(param)}" for param in options)]

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - classes that typer keeps to itself
        """Write the help page."""
        arguments = [param for param in self.params if param.param_type_name == "argument"]
        blocks = [_usage(ctx, self._needed())]
        blocks += _paragraphs(inspect.cleandoc(self.help or ""))
        if arguments:
            blocks.append(_table("Arguments", [(_argument(param), _meaning(param)) for param in arguments]))
        blocks += [_table("Options", _options(self.params, ctx)), *_examples(self.epilog)]
        formatter.write("\n\n".join(blocks) + "\n")


def _usage(ctx: Any, words: Iterable[str]) -> str:  # noqa: ANN401
    return "\n".join(wrapped(f"Usage: {ctx.command_path} {' '.join(words)} [OPTIONS]", width(), other=" " * 7))


def _first_paragraph(text: str) -> str:
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())


def _paragraphs(text: str) -> list[str]:
    return ["\n".join(wrapped(part, width())) for part in text.split("\n\n") if part.strip()]


def _examples(epilog: str | None) -> list[str]:
    """The examples as they stand, one command per line."""
    return [f"{_heading('Examples')}\n{textwrap.indent(epilog, ' ' * _INDENT)}"] if epilog else []


def _options(params: Iterable[Any], ctx: Any) -> list[tuple[str, str]]:  # noqa: ANN401
    """Every option with its meaning; `--help` comes last."""
    own = [param for param in params if param.param_type_name == "option"]
    names = [(_option(param), _meaning(param)) for param in own if not getattr(param, "hidden", False)]
    return [*names, (", ".join(ctx.help_option_names), "Show this page.")]


def _option(param: Any) -> str:  # noqa: ANN401
    names = ", ".join(sorted(param.opts, key=lambda name: (name.startswith("--"), param.opts.index(name))))
    return names if param.is_flag else f"{names} {_value(param)}"


def _value(param: Any) -> str:  # noqa: ANN401
    """The word for what is given, such as FILE; the option's own name where it says no other."""
    return param.metavar or max(param.opts, key=len).lstrip("-").replace("-", "_").upper()


def _argument(param: Any) -> str:  # noqa: ANN401
    name = f"{_value(param)}{' …' if param.nargs == -1 else ''}"
    return name if param.required else f"[{name}]"


def _meaning(param: Any) -> str:  # noqa: ANN401
    """The help text, with the default where there is one to name."""
    text = param.help or ""
    if param.required:
        return f"{text} (required)" if param.param_type_name == "option" else text
    default = param.default.value if isinstance(param.default, Enum) else param.default
    is_named = isinstance(default, str | int | float | PurePath) and not isinstance(default, bool) and default != ""
    return f"{text} (default: {default})" if is_named else text


def _heading(text: str) -> str:
    return typer.style(text, bold=True)


def _table(heading: str, rows: Rows) -> str:
    """A heading above names and their meanings in two columns."""
    column = max(len(name) for name, _ in rows if len(name) <= _MOST_FOR_NAMES) + 2 * _INDENT
    return "\n".join([_heading(heading), *(line for row in rows for line in _lines(*row, column))])


def _lines(name: str, meaning: str, column: int) -> Iterator[str]:
    first, *others = wrapped(meaning, width() - column) or [""]
    if len(name) + 2 * _INDENT <= column:
        yield f"{' ' * _INDENT}{name}".ljust(column) + first
    else:
        yield f"{' ' * _INDENT}{name}"
        yield " " * column + first
    yield from (" " * column + line for line in others)
