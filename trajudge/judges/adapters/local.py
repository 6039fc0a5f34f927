"""A model in this process: llama.cpp's own server, from the package xllamacpp, on a GGUF file.

``--model local:FILE.gguf``, or ``--model local`` for a small instruct model that is fetched once.
It shows the way; a model that fits a laptop is no judge to rely on.
"""

from __future__ import annotations

import os
import re
from functools import cache
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any

from trajudge.judges.adapters.openai import HttpAdapter
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
    """Return True if ``--model`` names a model in this process."""
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
    """OpenAI's protocol, spoken to a server of this process; the endpoint is the model's file."""

    name = "local"

    def __init__(self, model: str, **options: Any) -> None:
        """Start the server, once for a file; ``options`` are the base's, the address aside. Raises
        UserError for a file that is no model, and MissingExtra."""
        path, _ = local_model(model)
        url, self._server_key = _serve(path)
        super().__init__(model, **{**options, "base_url": url})
        self.endpoint = f"local#{_identity(path)}"

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
    """Start llama.cpp's server for a file and return its URL and key; it ends with this process."""
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
    try:
        import xllamacpp  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise MissingExtra("xllamacpp", "local", "--model local") from None
    wanted = xllamacpp.CommonParams()
    wanted.model.path = str(path)
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
    except RuntimeError as error:
        raise UserError(
            f"--model local:{path}: llama.cpp cannot load it ({_first_fault(str(error))}): name "
            "another file"
        ) from error
    _running.append(server)
    return f"{server.listening_address}/v1", key


def _first_fault(log: str) -> str:
    """Return the first error in llama.cpp's log."""
    faults = re.findall(r"^[\d.]+ E \S+\s*(.+)$", log, flags=re.MULTILINE)
    return str(faults[0]) if faults else " ".join(log.split())[:100]


_running: list[object] = []  # a server ends when nothing holds it
