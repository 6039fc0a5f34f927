"""Wait for a server that is still loading its model, before a run asks it anything."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.request import Request, build_opener

from trajudge.judges.adapters.protocols.error_body import read_error
from trajudge.judges.adapters.protocols.failures import shown
from trajudge.judges.adapters.sdk import no_answer, place_of
from trajudge.trajectories.util.errors import UserError

PATIENCE = 5.0  # seconds for each question
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 5.0
_LOADING = {502, 503, 504}


def wait_until_ready(url: str, seconds: float) -> None:
    """Return when the server whose protocol is at ``url`` has loaded its model.

    vLLM and SGLang refuse connections until then; llama.cpp, and a gateway before them, answer 503.
    Notes on standard error say why it waits. Raises UserError after ``seconds``.
    """
    started = time.monotonic()
    said = ""
    for pause in _pauses():
        reason = why_not_ready(url)
        waited = time.monotonic() - started
        if not reason:
            if said:
                sys.stderr.write(f"note: {place_of(url)} is ready after {waited:.0f} s\n")
            return
        if waited + pause > seconds:
            raise UserError(
                f"--wait {seconds:g}: {reason}: start the server, or give it more seconds"
            )
        if reason != said:
            sys.stderr.write(f"note: waiting for the server, {seconds:g} s at most: {reason}\n")
            said = reason
        time.sleep(pause)


def why_not_ready(url: str) -> str:
    """Return why the server cannot be asked now, "" if it can: what it says of its health (where it
    has such an address), and whether it lists its models."""
    root = url.removesuffix("/v1")
    return _trouble(f"{root}/health") or _trouble(f"{url}/models")


def _trouble(url: str) -> str:
    place = place_of(url)
    try:
        with build_opener().open(Request(url), timeout=PATIENCE):  # noqa: S310 - http(s) only
            return ""
    except HTTPError as error:
        if error.code not in _LOADING:
            return ""
        words = shown(read_error(error.read(2000)).message)
        return f"{place} answered {error.code}" + (f" ({words})" if words else "")
    except URLError as error:
        reason = error.reason
        return str(no_answer(reason if isinstance(reason, Exception) else error, place))
    except (OSError, HTTPException) as error:
        return str(no_answer(error, place))


def _pauses() -> Iterator[float]:
    """Yield seconds between two questions, each twice the last up to the longest."""
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE)
