"""``manifest.json``: everything that is needed to repeat a run, and what was really sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from pydantic import Field, JsonValue

from trajudge.eval.store.run_folder import (
    JUDGMENTS,
    MANIFEST,
    read_manifest,
    read_unreadable,
    relative_folder,
    write_manifest,
)
from trajudge.judges.models import ContextWindow, KnownPrice
from trajudge.trajectories.model import Record
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder
from trajudge.util.terminal import count_of

if TYPE_CHECKING:
    from trajudge.judges.engine.cache import SentCall, SentCalls

# Whose version decides what is on the wire.
_LIBRARIES = {
    **dict.fromkeys(("openai", "azure", "gemini"), "openai"),
    **dict.fromkeys(("anthropic", "bedrock", "vertex"), "anthropic"),
    "litellm": "litellm",
    "http": "aiohttp",
}

Entry = Mapping[str, Any]

"""``model``, ``endpoint``, ``adapter``, ``sdk`` with its version, ``parameters``; the adapter and
the SDK are None where the cache alone answered."""


def earlier_sent(folder: Path) -> list[Entry]:
    """Read what earlier sessions of the run in this folder sent. Raises UserError."""
    if not (folder / MANIFEST).is_file():
        return []
    sent = read_manifest(folder).get("sent")
    return [entry for entry in sent if isinstance(entry, dict)] if isinstance(sent, list) else []


class EffectiveParameters:
    """Keeps ``sent`` of the manifest in ``folder`` up to date with ``calls``."""

    def __init__(self, folder: Path, calls: SentCalls) -> None:
        self._folder = folder
        self._calls = calls
        self._written = 0

    def update(self) -> None:
        """Write the manifest anew if there is something new to tell. Raises UserError."""
        if self._calls.changes == self._written:
            return
        self._written = self._calls.changes
        manifest = read_manifest(self._folder)
        entries = [*earlier_sent(self._folder), *map(_entry, self._calls)]
        write_manifest(self._folder, manifest | {"sent": merged(entries)})


def merged(entries: Iterable[Entry]) -> list[Entry]:
    """Keep every kind of call once, sorted; one that was sent replaces the same from the cache."""
    by_call: dict[bytes, Entry] = {}
    for entry in entries:
        what = [entry.get(name) for name in ("model", "endpoint", "parameters")]
        key = orjson.dumps(what, option=orjson.OPT_SORT_KEYS)
        if key not in by_call or by_call[key].get("adapter") is None:
            by_call[key] = entry
    return [by_call[key] for key in sorted(by_call)]


def _entry(call: SentCall) -> Entry:
    library = _LIBRARIES.get(call.adapter or "")
    return {
        "model": call.model,
        "endpoint": call.endpoint,
        "adapter": call.adapter,
        "sdk": f"{library} {metadata.version(library)}" if library else None,
        "parameters": dict(call.parameters),
    }


class RunManifest(Record):
    """``judge`` is the judge's id, ``card`` what it is (paper, deviations, scale),
    ``prompt_hash`` over its templates, and ``text_hash`` over the texts of its source where it asks
    with those; ``published_texts`` are the known hashes of these texts, whatever it asks with.
    ``parameters`` are those of every call. ``data`` and ``annotations`` are specifications,
    ``revision`` the data's where it is versioned. ``sent`` is
    what the calls turned out to be (``eval.store.manifest``): endpoint, SDK, effective parameters.
    ``training_keys`` are hashes of the run's trajectories that the judge was trained on.
    ``windows`` are those that prompts were cut to, by model; ``prices`` theirs, each with
    where it is from.
    ``loader_digest`` is the SHA-256 of the user's file that read the data, None for a loader of
    ours or of an installed package.
    ``goals`` is the SHA-256 of the file of ``--goals``, None where the data had its own.
    ``judge_versions`` are the versions on the cards of the judge and of its members, by name.
    ``published``: the judge was run by others, who published its verdicts; nothing was asked here.
    ``started_in`` leads from the run's folder to the one that relative paths in ``data`` begin in.
    """

    judge: str
    card: dict[str, JsonValue] = Field(default_factory=dict)
    prompt_hash: str | None = None
    text_hash: str | None = None
    published_texts: dict[str, str] = Field(default_factory=dict)
    model: str | None = None
    endpoint: str | None = None
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    options: dict[str, JsonValue] = Field(default_factory=dict)
    samples: int = 1
    seed: int = 0
    data: str
    revision: str | None = None
    annotations: str | None = None
    selection: dict[str, JsonValue] = Field(default_factory=dict)
    windows: dict[str, ContextWindow] = Field(default_factory=dict)
    prices: dict[str, KnownPrice] = Field(default_factory=dict)
    protocol: str = "default"
    version: str
    sent: list[dict[str, JsonValue]] = Field(default_factory=list)
    training_keys: list[str] = Field(default_factory=list)
    loader_digest: str | None = None
    goals: str | None = None
    judge_versions: dict[str, int] = Field(default_factory=dict)
    published: bool = False
    started_in: str | None = None


# What may differ between two sessions of the same run: how it is scored, and by which release.
# Windows are compared by themselves, and no judge changes its version without its prompts.
_FREE = frozenset(
    {
        *("protocol", "version", "card", "revision", "sent", "windows", "prices"),
        *("judge_versions", "started_in", "published_texts"),
    }
)

# Settings that may differ between two parts of what one judge judged: the data, and the release.
_OF_THE_DATA = frozenset(
    {
        *("data", "revision", "annotations", "selection", "training_keys", "loader_digest"),
        *("version", "protocol", "seed", "sent", "windows", "prices", "started_in"),
        "published_texts",
    }
)

_WHY = {
    "prompt_hash": "the prompts have changed since, and one run never mixes two versions (what it "
    "holds can be scored, and re-parsed with  trajudge run reparse): ",
    "goals": "the file of --goals is not the one that the earlier trajectories had: ",
    "loader_digest": "the loader's file is not the one that read the earlier trajectories: ",
}


def code_version() -> str:
    """Return the installed distribution's version; "source" if none is installed."""
    try:
        return metadata.version("trajudge")
    except metadata.PackageNotFoundError:
        return "source"


def recorded_versions(manifest: Mapping[str, Any]) -> dict[str, int]:
    """Return the versions of the judges of a recorded run, by name; a user's judge has none."""
    return dict(manifest.get("judge_versions") or {})


class RecordedPrompts(NamedTuple):
    """The hashes (12 hexadecimal digits) of the ``prompts`` that a recorded run asked with and of
    the texts that its judge's source ``published``, "" where they are not known; ``is_published``:
    it asked with those. ``judge`` is the name on its card."""

    judge: str
    prompts: str
    published: str
    is_published: bool


def recorded_prompts(manifest: Mapping[str, Any]) -> RecordedPrompts:
    """Return what a run's manifest says of its prompts."""
    asked, known = manifest.get("text_hash"), manifest.get("published_texts")
    texts = [str(text) for text in known.values()] if isinstance(known, dict) else []
    card = manifest.get("card")
    return RecordedPrompts(
        judge=str(card.get("name", "")) if isinstance(card, dict) else "",
        prompts=str(manifest.get("prompt_hash") or "")[:12],
        published=" ".join(text[:12] for text in ([str(asked)] if asked else texts)),
        is_published=bool(asked),
    )


def configuration_of(manifest: Mapping[str, Any]) -> str:
    """Return a digest of what a run's judge is and how it asks, whatever it judged."""
    settings = {name: value for name, value in manifest.items() if name not in _OF_THE_DATA}
    return sha256(orjson.dumps(settings, option=orjson.OPT_SORT_KEYS)).hexdigest()


def recorded_samples(manifest: Mapping[str, Any]) -> int:
    """Return the samples of each trajectory of a recorded run, 1 where it tells no number."""
    samples = manifest.get("samples")
    return samples if isinstance(samples, int) else 1


def default_folder(manifest: RunManifest) -> Path:
    """``runs/JUDGE-HASH``: the same settings give the same folder, so that the same command
    goes on with a run that was interrupted."""
    fixed = orjson.dumps(_settings(manifest), option=orjson.OPT_SORT_KEYS)
    name = re.sub(r"[^\w.-]", "_", manifest.judge).lstrip(".")
    return Path("runs") / f"{name}-{sha256(fixed).hexdigest()[:8]}"


def open_folder(folder: Path, manifest: RunManifest) -> None:
    """Create the run's folder, or check that it holds a run with these settings.

    Raises UserError if it is another run's, no folder, or not writable.
    """
    if (folder / MANIFEST).is_file():
        check_same_run(f"--out {folder}", read_manifest(folder), manifest, folder)
    elif (folder / JUDGMENTS).is_file():
        raise UserError(f"{folder}: has {JUDGMENTS} but no {MANIFEST}: choose another --out")
    make_folder(folder, "--out")
    here = relative_folder(Path.cwd(), folder)
    try:
        write_manifest(folder, manifest.model_dump(mode="json") | {"started_in": here})
    except OSError as error:
        raise UserError(
            f"--out {folder}: cannot be written ({error.strerror}): name another folder"
        ) from error


def _settings(manifest: RunManifest) -> dict[str, Any]:
    """Select the settings that two sessions of one run must share."""
    return manifest.model_dump(mode="json", exclude={*_FREE})


def check_same_run(
    where: str, earlier: dict[str, Any], manifest: RunManifest, folder: Path | None = None
) -> None:
    """Raise UserError where the settings differ, naming ``where`` the earlier ones stand and the
    first difference; ``folder`` holds what could not be read then, where there is one."""
    _check_windows(where, earlier.get("windows"), manifest)
    now = _settings(manifest)
    before = {name: value for name, value in earlier.items() if name not in _FREE}
    for name in (*now, *(before.keys() - now.keys())):
        old, new = before.get(name), now.get(name)
        if name == "selection":
            _check_trajectories(where, old, new, folder)
        if old != new:
            raise UserError(
                f"{where}: holds a run with {name} {_short(old)}, this one has "
                f"{_short(new)}: {_WHY.get(name, '')}choose another --out"
            )


def _check_trajectories(where: str, old: object, new: object, folder: Path | None) -> None:
    """Say of the same selection that the data has other trajectories now, and why."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return
    count = "trajectories"
    if old.get(count) != new.get(count) and {**old, count: 0} == {**new, count: 0}:
        unread = len(read_unreadable(folder)) if folder else 0
        why = f"; {count_of(unread, 'record')} could not be read then" if unread else ""
        raise UserError(
            f"{where}: holds a run of {old.get(count)} trajectories, and the data has "
            f"{new.get(count)} now{why}: judge them with another --out, or go on with the data as "
            "it was"
        )


def _check_windows(where: str, earlier: object, manifest: RunManifest) -> None:
    """One run never mixes prompts that were cut to different windows."""
    for model, window in manifest.windows.items():
        before = earlier.get(model) if isinstance(earlier, dict) else None
        tokens = before.get("tokens") if isinstance(before, dict) else None
        if tokens not in (None, window.tokens):
            raise UserError(
                f"{where}: holds a run whose prompts were cut to {tokens:,} tokens, the "
                f"window of {model}, which is {window.tokens:,} tokens now: go on with  "
                f"--context {tokens}  or choose another --out"
            )


def _short(value: object) -> str:
    text = orjson.dumps(value, default=str).decode()
    return text if len(text) < 80 else text[:77] + "..."
