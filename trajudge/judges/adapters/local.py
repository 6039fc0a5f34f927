"""A model on this machine: llama.cpp's own server, from the package xllamacpp, on a GGUF file, in a
process that ends with this one.

``--model local:FILE.gguf``, or ``--model local`` for a small instruct model that is fetched once.
It shows the way; a model that fits a laptop is no judge to rely on.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from typing import Any

import orjson

from trajudge.judges.adapters.base import AdapterResponse
from trajudge.judges.adapters.openai import HttpAdapter
from trajudge.judges.model import Request
from trajudge.judges.models import Price
from trajudge.util.errors import MissingExtra, UserError
from trajudge.util.files import UnsafeFile, open_regular

PREFIX = "local:"
# Apache-2.0, 1.1 GB.
DEFAULT = ("Qwen/Qwen2.5-1.5B-Instruct-GGUF", "qwen2.5-1.5b-instruct-q4_k_m.gguf")
SLOTS = 2  # requests at once; they share the cores
SLOT_TOKENS = 8192  # the window of each
REPEAT_PENALTY = 1.2  # small models repeat themselves until they run out of tokens
_SAMPLE = 2**20  # bytes at either end of a file, by which it is told from another


def is_local(model: str) -> bool:
    """Return True if ``--model`` names a model that is run here."""
    return model == "local" or model.startswith(PREFIX)


def shown_model(model: str) -> str:
    """Return a model's name without the folder of a local file."""
    return f"{PREFIX}{Path(model).stem}" if model.startswith(PREFIX) else model


def local_model(model: str) -> tuple[Path, str]:
    """Return the file of ``--model local`` or ``local:FILE``, fetched if need be, and the model's
    name in requests. Raises UserError where there is no such file, or none can be fetched."""
    named = model.removeprefix(PREFIX) if model != "local" else ""
    path = Path(named).expanduser() if named else _fetched()
    return path, f"{PREFIX}{path.stem}"


def _fetched() -> Path:
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 - slow to import

    try:
        return Path(hf_hub_download(*DEFAULT))
    except Exception as error:  # whatever it meets: network, disk, the hub
        why = " ".join(str(error).split())[:200]
        raise UserError(
            f"--model local: {'/'.join(DEFAULT)} cannot be fetched ({why}): name a file of yours "
            "with --model local:FILE.gguf"
        ) from error


class LocalAdapter(HttpAdapter):
    """OpenAI's protocol, spoken to a server of our own; the endpoint is the model's file."""

    name = "local"

    def __init__(self, model: str, **options: Any) -> None:
        """Start the server, once for a file; ``options`` are the base's, the address aside. Raises
        UserError for a file that is no model, and MissingExtra."""
        path, _ = local_model(model)
        url, self._server_key = _serve(path)
        super().__init__(model, **{**options, "base_url": url})
        self.endpoint = f"local#{_identity(path)}"
        self._under_way: set[asyncio.Task[AdapterResponse]] = set()
        self._abandoned: Exception | None = None

    async def send(self, request: Request) -> AdapterResponse:
        """Make one attempt, which ``abandon`` ends. Raises CallFailed."""
        call = asyncio.create_task(super().send(request))
        self._under_way.add(call)
        try:
            return await call
        except asyncio.CancelledError:
            if self._abandoned is None:
                raise
            raise self._abandoned from None
        finally:
            self._under_way.discard(call)

    def abandon(self, error: Exception) -> None:
        """End the calls under way: they raise ``error``. One may take minutes, and costs nothing to
        repeat."""
        self._abandoned = error
        for call in self._under_way:
            call.cancel()

    def _authenticate(self, model: str, *, own_service: bool, dry_run: bool) -> None:
        self._key = self._server_key  # of nobody else on this machine

    def _extra_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {"repeat_penalty": REPEAT_PENALTY, **fields}

    def reported_price(self, model: str) -> Price | None:
        """Return a price of nothing."""
        return Price(input=0.0, output=0.0)


def _identity(path: Path) -> str:
    """Return what tells a file from another: a hash of its size and of both its ends."""
    with open_regular(path) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        head = file.read(_SAMPLE)
        file.seek(max(0, size - _SAMPLE))
        return sha256(b"%d\0%s\0%s" % (size, head, file.read(_SAMPLE))).hexdigest()[:16]


@cache
def _serve(path: Path) -> tuple[str, str]:
    """Start llama.cpp's server for a file and return its URL and key. Raises UserError for a file
    that is no model, and MissingExtra."""
    try:
        with open_regular(path) as file:
            magic = file.read(4)
    except UnsafeFile as error:
        raise UserError(f"--model local:{path}: {error.strerror}: name a GGUF file") from error
    except OSError as error:
        raise UserError(
            f"--model local:{path}: cannot be read ({error.strerror}): name a GGUF file"
        ) from error
    if magic != b"GGUF":
        raise UserError(f"--model local:{path}: is no GGUF file: name one, as llama.cpp reads them")
    if find_spec("xllamacpp") is None:
        raise MissingExtra("xllamacpp", "local", "--model local")
    child = subprocess.Popen(  # noqa: S603 - words of ours
        [sys.executable, "-m", __name__, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is this process's business
    )
    _running.append(child)
    line = child.stdout.readline() if child.stdout else b""
    answer: dict[str, str] = orjson.loads(line) if line else {"fault": "its process ended"}
    if fault := answer.get("fault"):
        raise UserError(
            f"--model local:{path}: llama.cpp cannot load it ({_first_fault(fault)}): name "
            "another file"
        )
    return answer["url"], answer["key"]


def _first_fault(log: str) -> str:
    """Return the first error in llama.cpp's log."""
    faults = re.findall(r"^[\d.]+ E \S+\s*(.+)$", log, flags=re.MULTILINE)
    return str(faults[0]) if faults else " ".join(log.split())[:100]


_running: list[object] = []  # servers; each ends with its standard input, thus with this process


def main() -> None:
    """Serve the model of ``sys.argv[1]`` until standard input ends; write URL and key, or the
    fault, as a line of JSON. Threads of llama.cpp are not waited for: a batch takes minutes."""
    import xllamacpp  # noqa: PLC0415 - an extra

    wanted = xllamacpp.CommonParams()
    wanted.model.path = sys.argv[1]
    wanted.hostnames, wanted.port = ["127.0.0.1"], 0
    wanted.n_parallel, wanted.n_ctx = SLOTS, SLOTS * SLOT_TOKENS
    key = token_hex(16)
    wanted.endpoint_props, wanted.api_keys = True, [key]
    wanted.warmup, wanted.verbosity = False, -1
    cores = os.cpu_count() or 1
    for params in (wanted.cpuparams, wanted.cpuparams_batch):
        params.n_threads, params.poll = cores, 0  # threads that wait leave the cores to others
    try:
        server = xllamacpp.Server(wanted)
        answer = {"url": f"{server.listening_address}/v1", "key": key}
    except RuntimeError as error:
        answer = {"fault": str(error)}
    sys.stdout.buffer.write(orjson.dumps(answer) + b"\n")
    sys.stdout.buffer.flush()
    if "url" in answer:
        sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
