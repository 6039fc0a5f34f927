"""OSWorld-style logs: a folder for each example, with ``traj.jsonl``, pictures and ``result.txt``.

``<root>/<action space>/<observation>/<model>/<domain>/<example>/``, of which derived projects drop
levels. A line is one action and names the picture taken *after* it: step i sees the picture of the
line before, step 0 the initial state where it was kept, and a last step without action sees the
last picture. ``screenshot_file_before_exec`` needs no such shift. The goal stands in the lines or
in ``evaluation_examples`` beside the root, whose evaluator is never read; the reward in
``result.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import islice, pairwise
from pathlib import Path
from uuid import UUID

from trajudge.trajectories.loaders import files
from trajudge.trajectories.loaders.common import detection
from trajudge.trajectories.loaders.common.lazy_json import NULL, decoded, read_object
from trajudge.trajectories.loaders.common.pictures import named_picture
from trajudge.trajectories.loaders.logs.osworld_lines import ActionLine, LoggedRun, read_run
from trajudge.trajectories.loaders.values import Values
from trajudge.trajectories.loading import Loaded, Want, accept_all
from trajudge.trajectories.model import ImageRef, Observation, Step, Trajectory, TrajectoryKey
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import DataFolder, NotUtf8, UnsafeFile, text_of

KIND = "osworld"
LEAKS = (
    *("result.txt", "results.json", "runtime.log", "traj.jsonl:[*].reward", "traj.jsonl:[*].info"),
    "evaluation_examples/**/*.json:evaluator",
)
LOG = "traj.jsonl"
_LEVELS = 8
_MARKS = (
    (b'"step_num"', b'"action"'),
    (b"'step_num'", b"'action'"),
    (b'"instruction"', b'"initial_state"'),
    (b'"Error"',),
)
# Levels of the layout that name no agent.
_SETTINGS = {
    *("screenshot", "a11y_tree", "screenshot_a11y_tree", "som"),
    *("pyautogui", "computer_13", "claude_computer_use", "autoglm_computer_use"),
}
_DOMAINS = {
    *("chrome", "gimp", "libreoffice_calc", "libreoffice_impress", "libreoffice_writer"),
    *("multi_apps", "os", "thunderbird", "vlc", "vs_code"),
}
_EXAMPLES = Path("evaluation_examples", "examples")
_MAX_EXAMPLE_BYTES, _MAX_RESULT_BYTES = 2**20, 2**10
_FORMS = ("%Y%m%d@%H%M%S%f", "%Y%m%d@%H%M%S")


def detect(path: Path) -> bool:
    """Tell whether the path is such a log, or a folder that holds one at most eight levels down."""
    if path.is_file():
        return path.name == LOG and _has_mark(detection.head(path))
    logs = detection.files(path, LOG, levels=_LEVELS, max_folders=detection.MAX_FOLDERS)
    return any(_has_mark(detection.head(log)) for log in islice(logs, detection.MAX_FILES))


def load(path: Path, want: Want = accept_all) -> Loaded:
    """Yield the run of the log, or of every one in the folder, in the order of their keys.

    Raises UserError if there is none.
    """
    root = DataFolder(path if path.is_dir() else path.parent)
    try:
        logs = [path] if path.is_file() else [*detection.files(path, LOG, levels=_LEVELS)]
    except OSError as error:
        raise UserError(f"{path} cannot be listed ({error.strerror}): check its access") from None
    if not logs:
        raise UserError(
            f"{path} holds no {KIND} trajectory: --data {KIND}:PATH needs folders with {LOG}"
        )
    return files.read_all(
        files.number_attempts(_source(root, log.parent) for log in logs), _read, want
    )


def _has_mark(head: bytes) -> bool:
    begins = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
    return begins and any(all(name in head for name in names) for names in _MARKS)


def _source(root: DataFolder, folder: Path) -> files.TrajectorySource:
    example = files.name_of(folder)
    # Other projects number their examples, in each domain from 0.
    task_id = (
        example if _is_uuid(example) else f"{files.name_of(folder.resolve().parent)}.{example}"
    )
    key = TrajectoryKey(benchmark=KIND, agent=_agent(folder.resolve()), task_id=task_id)
    return files.TrajectorySource(key, example, folder, root)


def _is_uuid(name: str) -> bool:
    with suppress(ValueError):
        return str(UUID(name)) == name
    return False


def _agent(folder: Path) -> str:
    """Return the name below the innermost level that is a setting; without such a level, the
    nearest one that is no known domain."""
    above = [files.readable(parent.name) for parent in folder.parents if parent.name]
    for inner, outer in pairwise(above):
        if outer in _SETTINGS and inner not in _SETTINGS | _DOMAINS:
            return inner
    return next((name for name in above if name not in _SETTINGS | _DOMAINS), KIND)


def _read(source: files.TrajectorySource) -> Trajectory:
    warnings: list[str] = []
    run = read_run(source.path / LOG, source.data, warnings)
    if not run.lines:
        why = run.error or (f"mode {run.mode}" if run.mode else "no line is an action")
        raise files.Damaged(f"{LOG} holds no step ({why})")
    steps = _steps(source, run, warnings)
    actions = [line.action for line in run.lines if line.action]
    terminated = any(line.done for line in run.lines) or any(action.ends for action in actions)
    answers = [action.answer for action in actions if action.answer]
    return Trajectory(
        key=source.key,
        raw_task_id=source.raw_task_id,
        goal=run.instruction or _example_goal(source, warnings) or "",
        steps=steps,
        answer=files.readable(answers[-1]) if answers else None,
        official_reward=_reward(source, warnings),
        terminated=terminated,
        truncated=not terminated,
        telemetry=_telemetry(run),
        metadata={
            "domain": files.name_of(source.path.resolve().parent),
            "infeasible": any(action.name == "FAIL" for action in actions),
            "error": run.error,
            "warnings": [*warnings],
        },
    )


def _steps(source: files.TrajectorySource, run: LoggedRun, warnings: list[str]) -> tuple[Step, ...]:
    """Put what each line's action was seen on before it; the last observation on a last step."""
    after = _initial(source, run, warnings)
    steps = []
    for index, line in enumerate(run.lines):
        before = _picture(source, line.before, warnings)
        seen = after if before is None else after.model_copy(update={"screenshot": before})
        action = line.action.text if line.action else None
        steps.append(Step(index=index, observation=seen, reasoning=line.reasoning, action=action))
        after = _observed(source, line, warnings)
    if after.screenshot is None and (final := _found(source, "step_*_final.png")):
        image = files.screenshot(final, source.data, warnings)
        after = after.model_copy(update={"screenshot": image})
    if after != Observation():
        steps.append(Step(index=len(steps), observation=after))
    return tuple(steps)


def _initial(source: files.TrajectorySource, run: LoggedRun, warnings: list[str]) -> Observation:
    image = _picture(source, run.initial, warnings)
    counts_from_0 = run.lines[0].number == 0
    if image is None and not counts_from_0 and (shots := _found(source, "step_0_*.png")):
        image = files.screenshot(shots, source.data, warnings)
    if image is None and run.lines[0].before is None:
        warnings.append("The state before the first action was not kept: its step shows nothing.")
    return Observation(screenshot=image)


def _observed(source: files.TrajectorySource, line: ActionLine, warnings: list[str]) -> Observation:
    """Return what was recorded after the line's action."""
    recorded = line.after
    if recorded is None and line.before is None and line.stem:
        beside = f"{line.stem}.png"
        recorded = beside if source.data.has_file(source.path / beside) else None
    return Observation(
        screenshot=_picture(source, recorded, warnings), axtree=_tree(source, line, warnings)
    )


def _picture(
    source: files.TrajectorySource, recorded: str | None, warnings: list[str]
) -> ImageRef | None:
    return named_picture(recorded, [source.path], source.data, warnings)


def _found(source: files.TrajectorySource, pattern: str) -> Path | None:
    return min(source.path.glob(pattern), default=None)


def _tree(source: files.TrajectorySource, line: ActionLine, warnings: list[str]) -> str | None:
    """Read the accessibility tree beside the line's picture, if one was kept."""
    if line.stem is None or not re.fullmatch(r"[\w@.-]+", line.stem):
        return None
    return files.tree_beside(source.path / f"{line.stem}_a11y.xml", source.data, warnings)


def _example_goal(source: files.TrajectorySource, warnings: list[str]) -> str | None:
    """Return the instruction of the example file inside or beside the root."""
    folder = source.path.resolve()
    for file in _example_files(folder):
        # The example files are the user's own checkout, though it may lie beside the results.
        home = DataFolder(file.parents[2])
        if not home.has_file(file):
            continue
        try:
            example = read_object(home, file, max_bytes=_MAX_EXAMPLE_BYTES)
            words = decoded(example.get("instruction", NULL))
            return Values(warnings).text(words, "instruction", "of the example file")
        except ValueError as error:
            warnings.append(f"The example file is not read: {files.reason(error)}.")
    return None


def _example_files(folder: Path) -> Iterator[Path]:
    name = Path(folder.parent.name, f"{folder.name}.json")
    yield from (parent / _EXAMPLES / name for parent in folder.parents[:_LEVELS])


def _reward(source: files.TrajectorySource, warnings: list[str]) -> float | None:
    """Read ``result.txt``; None where there is none, or no number of at least 0."""
    file = source.path / "result.txt"
    try:
        content = text_of(source.data.read(file, _MAX_RESULT_BYTES), file)
    except FileNotFoundError:
        return None
    except (OSError, UnsafeFile, NotUtf8) as error:
        warnings.append(f"The reward is not known: {files.reason(error)}.")
        return None
    reward = Values([]).number(content, "reward")
    if reward is not None and reward >= 0:
        return reward
    warnings.append("The reward is not known: result.txt holds no number of at least 0.")
    return None


def _telemetry(run: LoggedRun) -> dict[str, float]:
    times = [when for line in run.lines if (when := _time(line.timestamp))]
    elapsed = (times[-1] - times[0]).total_seconds() if len(times) > 1 else None
    tokens = sum(line.input_tokens for line in run.lines)
    return (
        {"n_steps": float(len(run.lines)), "n_err": float(run.error is not None)}
        | ({"elapsed": elapsed} if elapsed is not None and elapsed >= 0 else {})
        | ({"input_tokens": tokens} if tokens else {})
    )


def _time(written: str | None) -> datetime | None:
    for form in _FORMS:
        with suppress(ValueError, TypeError):
            return datetime.strptime(written or "", form)
    return None
