"""Text trajectories from AgentRewardBench's published judgments.

``judgments/<benchmark>/<agent>/<judge>/<task_id>.json``: WebJudge's files have the goal, the
complete history as text and the run's summary, but no observation. A trajectory that two judges
judged, or that was downloaded twice (``x(1).json``), is one trajectory, read from the first judge
by name and the name without a copy's number; if the others have a different history,
``metadata["warnings"]`` says so. Runs that the benchmark marks as not valid are excluded.

WebJudge's text lists ``N. <action>. Reasoning: <reasoning>`` after "Action History:", and may end
with the judge's notes about snapshots. Actions and reasonings are the agent's free text with
newlines and numbered lists. So an entry begins only where a line has the next number followed by
the head of an action, ``name(``, or ``None`` (no action).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from trajudge.trajectories.actions import last_message_to_user
from trajudge.trajectories.loaders._files import Damaged, decode, readable, reason, text
from trajudge.trajectories.loaders._run import Values
from trajudge.trajectories.loaders.browsergym import read_summary
from trajudge.trajectories.model import (
    Loaded,
    Step,
    Trajectory,
    TrajectoryKey,
    Unreadable,
    Want,
    accept_all,
)
from trajudge.util.errors import UserError
from trajudge.util.files import DataFolder

_HEADING = "Action History:\n"
_SNAPSHOTS = "\n\nThe potentially important snapshots of the webpage"
_ENTRY = re.compile(r"^(\d+)\. (?=[a-z_]+\(|None\. Reasoning: )", re.MULTILINE)
_REASONING = ". Reasoning: "


def parse_history(text: str) -> list[tuple[str | None, str | None]]:
    """Parse (action, reasoning) of every step, in order; the word None is read as None.

    Raises ValueError if the text has no history.
    """
    _, heading, history = text.partition(_HEADING)
    if not heading:
        raise ValueError("input_text holds no action history")
    notes = history.rfind(_SNAPSHOTS)
    history = history if notes < 0 else history[:notes]
    starts: list[re.Match[str]] = []
    for match in _ENTRY.finditer(history):
        if match[1] == str(len(starts) + 1):
            starts.append(match)
    if not starts:
        if history.strip():
            raise ValueError("the action history does not begin with a step 1")
        return []
    ends = [match.start() - 1 for match in starts[1:]] + [len(history)]
    return [_entry(history[match.end() : end]) for match, end in zip(starts, ends, strict=True)]


def _entry(entry: str) -> tuple[str | None, str | None]:
    # An action closes with a parenthesis; its own text may speak of reasoning, too.
    cut = entry.find(")" + _REASONING) + 1 or entry.find(_REASONING)
    if entry.startswith("None" + _REASONING):
        cut = len("None")
    if cut < 0:
        return _none(entry), None
    return _none(entry[:cut]), _none(entry[cut + len(_REASONING) :])


def _none(part: str) -> str | None:
    part = part.strip()
    return None if part in {"", "None"} else part


KIND = "agentrewardbench-text"
LEAKS = (
    "annotations.csv",
    "judgments/**/*.json:response",
    "judgments/**/*.json:trajectory_info.summary_info.cum_reward",
)
_JUDGES = "webjudge"  # only these judges' files carry the history
_LOOKED_AT = 20
_END_BYTES = 2**16
_NAMES = (b'"trajectory_info"', b'"judge_model_name"', b'"judge_args"')
_COPY = re.compile(r"\(\d+\)$")


class _Info(msgspec.Struct):
    valid: bool = True
    model: str | None = None
    seed: int | None = None
    summary_info: dict[str, Any] = {}


class _File(msgspec.Struct):
    goal: str
    input_text: str
    trajectory_info: _Info


class _Candidate(NamedTuple):
    """A file that may have the trajectory. Of sorted candidates the first is read."""

    is_copy: bool
    judge: str
    path: Path
    raw_task_id: str


def detect(path: Path) -> bool:
    """Return True if the folder is, or has, ``judgments`` with a WebJudge judge.

    In a folder with another name the first files must be judgments, because published results are
    at the same depth.
    """
    if not path.is_dir():
        return False
    judgments, root = _judgments(path), DataFolder(path)
    folders = _judge_folders(judgments)
    if judgments.resolve().name == "judgments":
        return next(folders, None) is not None
    files = (file for folder in folders for file in folder.glob("*.json"))
    return any(is_judgment(file, root) for file in islice(files, _LOOKED_AT))


def is_judgment(file: Path, root: DataFolder) -> bool:
    """Return True if a JSON file has a field that only the benchmark's judgments have."""
    try:
        with root.open(file) as stream:
            content = stream.read(_END_BYTES)
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _END_BYTES))
            content += b" " + stream.read(_END_BYTES)
    except (OSError, ValueError):
        return False
    return any(name in content for name in _NAMES)


def load(path: Path, want: Want = accept_all) -> Loaded:
    """Yield every distinct trajectory in the order (benchmark, agent, task id), one file in memory.

    Raises UserError if the folder holds no such judgments.
    """
    if not detect(path):
        raise UserError(
            f"{path} holds no WebJudge judgments: --data {KIND}:PATH needs the folder that holds "
            "judgments/<benchmark>/<agent>/webjudge-…/<task_id>.json"
        )
    return _load(_judgments(path), DataFolder(path), want)


def _judgments(path: Path) -> Path:
    return path / "judgments" if (path / "judgments").is_dir() else path


def _judge_folders(judgments: Path) -> Iterator[Path]:
    for agent in sorted(judgments.glob("*/*/")):
        if agent.is_dir():
            names = sorted(child for child in agent.iterdir() if child.is_dir())
            yield from (child for child in names if child.name.lower().startswith(_JUDGES))


def _load(
    judgments: Path, root: DataFolder, want: Callable[[TrajectoryKey], bool]
) -> Iterator[Trajectory | Unreadable]:
    candidates: dict[TrajectoryKey, list[_Candidate]] = {}
    for folder in _judge_folders(judgments):
        benchmark, agent = map(readable, folder.parts[-3:-1])
        for path in folder.glob("*.json"):
            name = readable(path.stem)
            raw = _COPY.sub("", name)
            key = TrajectoryKey(benchmark=benchmark, agent=agent, task_id=raw)
            if want(key):
                candidate = _Candidate(raw != name, folder.name, path, raw)
                candidates.setdefault(key, []).append(candidate)
    for key in sorted(candidates, key=lambda key: key.order):
        trajectory = _read(key, sorted(candidates[key]), root)
        if trajectory is not None:
            yield trajectory


def _read(
    key: TrajectoryKey, candidates: list[_Candidate], root: DataFolder
) -> Trajectory | Unreadable | None:
    """Read the first readable candidate and compare the others with it. None: not valid."""
    chosen: Trajectory | None = None
    failures: list[str] = []
    warnings: list[str] = []
    for candidate in candidates:
        try:
            trajectory = _trajectory(key, candidate, root)
        except (ValueError, OSError, RecursionError) as error:
            failures.append(f"{_name(candidate)}: {reason(error)}")
            continue
        if trajectory is None:
            return None
        if chosen is None:
            chosen = trajectory
        elif _story(chosen) != _story(trajectory):
            warnings.append(f"{_name(candidate)} has a different history.")
    if chosen is None:
        return Unreadable(readable(str(candidates[0].path)), "; ".join(failures), key)
    unread = [f"Not readable: {failure}." for failure in failures]
    metadata = {**chosen.metadata, "warnings": [*_warnings(chosen), *unread, *warnings]}
    return chosen.model_copy(update={"metadata": metadata})


def _name(candidate: _Candidate) -> str:
    return readable(f"{candidate.judge}/{candidate.path.name}")


def _story(trajectory: Trajectory) -> object:
    return trajectory.goal, trajectory.steps, trajectory.official_reward


def _trajectory(key: TrajectoryKey, candidate: _Candidate, root: DataFolder) -> Trajectory | None:
    file = decode(root, candidate.path, _File)
    info = file.trajectory_info
    if not info.valid:
        return None
    if not file.goal.strip():
        raise Damaged("it has no goal")
    values = Values()
    summary = read_summary(info.summary_info, values)
    entries = parse_history(file.input_text)
    return Trajectory(
        key=key,
        raw_task_id=candidate.raw_task_id,
        goal=file.goal,
        steps=tuple(
            Step(index=index, action=action, reasoning=reasoning)
            for index, (action, reasoning) in enumerate(entries)
        ),
        answer=last_message_to_user(action for action, _ in entries),
        official_reward=summary.official_reward,
        terminated=summary.terminated,
        truncated=summary.truncated,
        telemetry=summary.telemetry,
        metadata={
            "source": _name(candidate),
            "model": text(info.model),
            "seed": info.seed,
            "error": summary.error,
            "warnings": [*values.warnings],
        },
    )


def _warnings(trajectory: Trajectory) -> list[str]:
    """Describe unreadable values and a mismatch: a run of n steps lists n actions and a last
    observation; a crashed one only n."""
    named: Any = trajectory.metadata["warnings"]
    reported = trajectory.telemetry.get("n_steps")
    if reported is None or len(trajectory.steps) - reported in (0, 1):
        return [*named]
    return [*named, f"The history lists {len(trajectory.steps)} steps, the summary {reported:g}."]
