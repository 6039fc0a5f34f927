"""mitmproxy's own ``mitmdump``, with its second of imports done once: each start is a fork.

The server runs under mitmproxy's Python (``python forking.py SOCKET``). ``program`` writes a
program that has it start ``mitmdump`` with its own arguments and output, and ends as that does.
"""

import json
import os
import select
import signal
import socket
import sys
from pathlib import Path

CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as link:
    link.connect({path!r})
    socket.send_fds(link, [json.dumps([os.getcwd(), sys.argv[1:]]).encode()], [1, 2])
    sys.exit(int(link.recv(8) or b"1"))
"""


def program(folder: Path, path: Path) -> Path:
    """Write the program that asks the server at a socket's ``path``; return where it is."""
    client = folder / "mitmdump"
    client.write_text(CLIENT.format(python=sys.executable, path=str(path)))
    client.chmod(0o755)
    return client


def serve(path: str) -> None:
    """Start ``mitmdump`` for each client, until killed; one whose client has gone is ended."""
    from mitmproxy.tools import dump, main  # noqa: F401 - of mitmproxy's environment

    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        link, _ = server.accept()
        if os.fork() == 0:
            server.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _follow(link, main.mitmdump)
        link.close()


def _follow(link: socket.socket, mitmdump) -> None:  # type: ignore[no-untyped-def]
    data, outputs, _, _ = socket.recv_fds(link, 2**20, 2)
    folder, words = json.loads(data)
    child = os.fork()
    if child == 0:
        link.close()
        os.chdir(folder)
        for number, output in enumerate(outputs, 1):
            os.dup2(output, number)
        code = 1
        try:
            code = mitmdump(words) or 0
        except SystemExit as error:
            code = int(error.code or 0)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    ended = os.pidfd_open(child)
    ready, _, _ = select.select([ended, link.fileno()], [], [])
    if ended not in ready:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    link.send(str(abs(code)).encode())
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
