"""Work that takes much memory, in a process of its own: it gives the memory back and leaves the
pages their time."""

from __future__ import annotations

import signal
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TypeVar, TypeVarTuple

from trajudge.util.errors import UserError

Arguments = TypeVarTuple("Arguments")
T = TypeVar("T")


def in_process(function: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """Call a function of a module in a process that ends with this one, and return what it returns.
    Raises UserError as it does, and where the process dies."""
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, function, *arguments), daemon=True)
    process.start()
    sender.close()
    try:
        outcome = receiver.recv()
    except EOFError as error:
        raise UserError("The run could not be read; the terminal shows more") from error
    finally:
        process.join()
        receiver.close()
    if isinstance(outcome, UserError):
        raise outcome
    returned: T = outcome
    return returned


def _send(sender: Connection, function: Callable[..., object], *arguments: object) -> None:
    # Ctrl-C reaches every process of a terminal; this one ends with the server.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        sender.send(function(*arguments))
    except UserError as error:
        sender.send(error)
