"""`weft conversations`: lists the threads of a journal, shows one, removes one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.errors import report_errors
from weft.cli.journal import journal_at
from weft.cli.options import Debug, JournalPlace, Json
from weft.cli.text import amount, clean, json_text

if TYPE_CHECKING:
    from weft.core.values import Message

Thread = Annotated[str, typer.Argument(metavar="ID", help="The id of a conversation.")]

conversations = typer.Typer(
    help="The conversations that a journal keeps: list them, show one, delete one.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@conversations.command("list")
def list_command(as_json: Json = False, journal: JournalPlace = None, debug: Debug = False) -> None:
    """List the conversations, by id."""
    with report_errors(debug=debug, as_json=as_json):
        from weft.workflow.runtime.conversations import Conversations

        with journal_at(journal, to_read=True) as opened:
            found = Conversations(opened).list()
        if as_json:
            rows = [{"id": each.thread, "messages": each.messages} for each in found]
            typer.echo(json_text(rows))
        for each in () if as_json else found:
            typer.echo(f"{clean(each.thread)}  {amount(each.messages, 'message')}")
        if not found and not as_json:
            typer.echo("there are none; a model node with `conversation:` begins one")


@conversations.command()
def show(
    thread: Thread,
    last: Annotated[
        int | None, typer.Option(metavar="N", help="Only the last so many.", min=1)
    ] = None,
    as_json: Json = False,
    journal: JournalPlace = None,
    debug: Debug = False,
) -> None:
    """Print the messages of a conversation, and the summary of its earlier ones."""
    with report_errors(debug=debug, as_json=as_json):
        from weft.workflow.runtime.conversations import Conversations, unknown_thread

        with journal_at(journal, to_read=True) as opened:
            threads = Conversations(opened)
            messages, summary = threads.read(thread, last), threads.summary(thread)
            if not messages:
                raise unknown_thread(thread, threads.list())
        if as_json:
            typer.echo(json_text({"summary": summary, "messages": list(map(_data, messages))}))
            return
        if summary:
            typer.echo(f"summary: {clean(summary)}")
        for message in messages:
            calls = [f"calls {call.name}({call.arguments})" for call in message.tool_calls]
            media = [f"[{medium.kind}]" for medium in message.media]
            text = " ".join(filter(None, [message.content, *media, *calls]))
            typer.echo(f"{message.role}: {clean(text)}")


@conversations.command()
def delete(thread: Thread, journal: JournalPlace = None, debug: Debug = False) -> None:
    """Remove a conversation. Records of runs keep what their models read."""
    with report_errors(debug=debug):
        from weft.workflow.runtime.conversations import Conversations

        with journal_at(journal) as opened:
            Conversations(opened).delete(thread)
        typer.echo(f"removed {clean(thread)}")


def _data(message: Message) -> dict[str, Any]:
    data: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        data["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        data["tool_call_id"] = message.tool_call_id
    if message.media:
        data["media"] = [medium.media_type for medium in message.media]
    return data
