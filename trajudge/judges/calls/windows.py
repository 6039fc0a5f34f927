"""The window of a model: named by the user, told by its server, known, or a guess that is said.

What a server told is remembered beside the cache of replies, so that a run whose replies are all
there is the same run while the server is down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import orjson

from trajudge.judges.adapters.base import Adapter, ReportsContextWindow
from trajudge.judges.adapters.context_windows import ContextWindow
from trajudge.judges.adapters.errors import Unreachable
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.models.capabilities import capability, is_known
from trajudge.judges.models.table import model_names
from trajudge.trajectories.util.atomic import write_bytes
from trajudge.trajectories.util.errors import UserError, did_you_mean
from trajudge.trajectories.util.safe_files import read_regular

FILE = "windows.json"
# Of models that a provider's own service answers: a server of the user's has names of its own.
_MAKERS = ("gemini/", "xai/", "deepseek/", "mistral/", "dashscope/")
_OWN_NAMES = ("gpt-", "chatgpt-", "claude-", *_MAKERS)


def find_window(
    model: str, adapter: Adapter, calls: CallConfig, folder: Path, *, of_file: int | None = None
) -> ContextWindow:
    """Return the window to cut prompts to: ``of_file`` is that of the user's own entry, and
    ``folder`` keeps what servers told.

    Raises UserError if nobody knows the model's window and its server cannot be reached.
    """
    if calls.context is not None:
        return ContextWindow(tokens=calls.context, source="named")
    if of_file is not None:
        return ContextWindow(tokens=of_file, source="file")
    table = ContextWindow(
        tokens=capability(model).context, source="table" if is_known(model) else "guess"
    )
    if not isinstance(adapter, ReportsContextWindow):
        return table
    told, place = read_told(folder, FILE), f"{adapter.endpoint} {model}"
    try:
        found = adapter.context_window(model)
    except Unreachable as failure:
        if place not in told and table.source == "guess" and not calls.dry_run:
            raise UserError(
                f"{failure}, and the window of {model!r} is not known: start the server, or name "
                "the window with --context N"
            ) from failure
        return _window(told.get(place), table)
    if place not in told or told[place] != (found and found.model_dump()):
        write_told(folder, FILE, {**told, place: found and found.model_dump()})
    return found or table


def _window(told: object, table: ContextWindow) -> ContextWindow:
    return ContextWindow.model_validate(told) if isinstance(told, dict) else table


def read_told(folder: Path, file: str) -> dict[str, object]:
    """Read what servers told earlier, nothing where it cannot be read."""
    with suppress(OSError, ValueError):
        content = orjson.loads(read_regular(folder / file))
        if isinstance(content, dict):
            return content
    return {}


def write_told(folder: Path, file: str, told: Mapping[str, object]) -> None:
    """Keep what servers told, or nothing: a full or read-only disk is the cache's to tell."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(folder / file, orjson.dumps(told, option=orjson.OPT_INDENT_2))


def recorded_windows(manifest: Mapping[str, object]) -> dict[str, ContextWindow]:
    """Return those of a run's manifest, none where it was recorded before windows were."""
    windows = manifest.get("windows")
    return {
        str(model): ContextWindow.model_validate(window)
        for model, window in (windows.items() if isinstance(windows, dict) else ())
    }


def guesses(windows: Mapping[str, ContextWindow]) -> Iterator[str]:
    """Yield a sentence for every model whose window is a guess."""
    for model, window in windows.items():
        if window.source == "guess":
            unknown = f"the window of {model} is not known{_close(model) or ':'}"
            yield (
                f"{unknown} {window.tokens:,} tokens are a guess, and longer prompts are cut to it "
                "(coverage says how many): name it with --context N"
            )


def _close(model: str) -> str:
    """Ask back where a name is close to that of another model of its maker's."""
    if not model.startswith(_OWN_NAMES):
        return ""
    maker = model[: model.find("/") + 1]  # none: OpenAI's and Anthropic's
    of_maker = (maker,) if maker else _OWN_NAMES
    return did_you_mean(model, (name for name in model_names() if name.startswith(of_maker)))
