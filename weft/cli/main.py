"""The command line. Commands are imported on first use."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from weft.cli.logs import Verbose, add_verbose

_COMMANDS: Final = "weft.cli.commands"


class LazyCommands(MutableMapping[str, Any]):
    """The commands by name, each made by typer on first use.

    The command `plan-serve` is the function, or the typer application, `plan_serve` of its module,
    with the module's `HELP` as its help, if any.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._made: dict[str, Any] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> Any:
        if self._made[name] is None:
            self._made[name] = _made(name)
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def __contains__(self, name: object) -> bool:
        return name in self._made


def lazy_group(*names: str) -> type[TyperGroup]:
    """A group of these commands, which its help lists in this order."""

    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**{**attributes, "commands": LazyCommands(names)})

        def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002 - as typer has it
            return list(names)

    return LazyGroup


def application(**settings: Any) -> typer.Typer:
    """A typer application with weft's settings."""
    return typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        **settings,
    )


def _made(name: str) -> Any:
    module = import_module(f"{_COMMANDS}.{name.replace('-', '_')}")
    command = getattr(module, name.replace("-", "_"))
    app = application()
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name)
        return add_verbose(get_group(app).commands[name])
    app.command(name, help=getattr(module, "HELP", None))(command)
    return add_verbose(get_command(app))


app = application(
    name="weft",
    help="Run parallel LLM programs: graphs of tool calls, model calls and people.",
    no_args_is_help=True,
    cls=lazy_group(
        *("run", "resume", "answer", "signal", "replay", "diff", "simulate"),
        *("submit", "worker", "queue", "schedule"),
        *("ask", "think", "eval", "optimise"),
        *("serve", "ps", "stop", "gateway", "mcp", "ui", "plan-serve"),
        *("train-drafter", "export-drafter", "train-diffusion", "train-planner", "train-router"),
        *("generate-calls", "regroup", "write"),
        *("check", "decoders", "doctor", "graph", "init", "schema", "version"),
        *("model", "runs", "conversations", "cluster"),
    ),
)


def _show_version(wanted: bool) -> None:
    """The callback of `--version`: print the version and exit."""
    if wanted:
        from weft.cli.commands.version import version

        version()
        raise typer.Exit


@app.callback()
def main(
    show: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", is_eager=True, callback=_show_version),
    ] = False,
    verbosity: Verbose = 0,
) -> None:
    """Options before the command."""
    del show, verbosity  # their callbacks have done the work
