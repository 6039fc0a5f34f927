"""WebArena's and VisualWebArena's results folders: ``render_<id>.html``, one file a task.

Each page stands in the file as it was seen before the action on it (``webarena_page``); nothing was
recorded after the last action. The file begins with the whole task, reference answer included
(``LEAKS``), of which the intent alone is read. The reward stands in the logs beside
(``webarena_results``). The agent is the folder's name; task ids are ``webarena.<id>``, as
BrowserGym has them.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from trajudge.trajectories.loaders import files
from trajudge.trajectories.loaders.common import detection
from trajudge.trajectories.loaders.common.pictures import inline_picture, plain_name
from trajudge.trajectories.loaders.logs.webarena_page import (
    RenderedPage,
    read_page,
    split_pages,
    task_part,
)
from trajudge.trajectories.loaders.logs.webarena_results import FolderResults, read_results
from trajudge.trajectories.loading import Loaded, Want, accept_all
from trajudge.trajectories.model import Observation, Step, Trajectory, TrajectoryKey
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import DataFolder, UnsafeFile, utf8

KIND = "webarena-html"
LEAKS = tuple(
    f"render_*.html:{name}"
    for name in (
        *("eval", "reference_answers", "intent_template", "instantiation_dict"),
        *("storage_state", "string_note"),
    )
)
MAX_FILE_BYTES = 128 * 2**20
MAX_STEPS = 10_000
_PATTERN = "render_*.html"
_LEVELS = 4
_MARKS = (b"class='state_obv'", b"class='predict_action'")
_VISUAL = ("image", "viewport_size", "visual_difficulty")
# The intent goes on to the next field of a task file: a name of the two benchmarks, one with an
# underscore, or one by which a project may have added its answer.
_FIELD = re.compile(
    r"^(sites|geolocation|intent|eval|image|comments|[a-z]+(?:_[a-z0-9]+)+"
    r"|answers?|expected|evaluator|labels?|references?|rewards?|scores?|solutions?|targets?)"
    r":(?: |$)",
    re.MULTILINE,
)
# What the harness told the agent of an action that could not be done.
_REFUSALS = ('Attempt to perform "', "The previous prediction you issued")
_EARLY, _ERROR = "Early stop:", "ERROR:"


def detect(path: Path) -> bool:
    """Tell whether the path is such a file, or a folder with one at most two levels down."""
    if path.is_file() and not path.match(_PATTERN):
        return False
    return detection.some_file(path, _PATTERN, _has_mark)


def load(path: Path, want: Want = accept_all) -> Loaded:
    """Yield the run of the file, or of every one in the folder, in the order of their keys.

    Raises UserError if there is none.
    """
    root = DataFolder(path if path.is_dir() else path.parent)
    try:
        pages = [path] if path.is_file() else [*detection.files(path, _PATTERN, levels=_LEVELS)]
        sources = files.number_attempts(
            _source(root, file) for file in pages if file.match(_PATTERN)
        )
    except OSError as error:
        raise UserError(f"{path} cannot be listed ({error.strerror}): check its access") from None
    if not sources:
        raise UserError(
            f"{path} holds no {KIND} trajectory: --data {KIND}:PATH needs files {_PATTERN}"
        )

    @cache
    def results(folder: Path) -> FolderResults:
        return read_results(folder, root)

    return files.read_all(sources, lambda source: _read(source, results(source.path.parent)), want)


def _has_mark(head: bytes) -> bool:
    return any(mark in head for mark in _MARKS)


def _source(root: DataFolder, file: Path) -> files.TrajectorySource:
    """Name the run by its file; the task's fields tell of which benchmark it is."""
    task = _fields(task_part(detection.head(file))) if root.has_file(file) else {}
    benchmark = "visualwebarena" if any(name in task for name in _VISUAL) else "webarena"
    number = files.readable(file.stem.removeprefix("render_")) or files.name_of(file.parent)
    agent = files.name_of(file.parent) or KIND
    key = TrajectoryKey(benchmark=benchmark, agent=agent, task_id=f"{benchmark}.{number}")
    return files.TrajectorySource(key, number, file, root)


def _fields(head: bytes) -> dict[str, str]:
    """Return the fields of the task file as the writer wrote them, ``key: value`` a line."""
    content = head.partition(b"<pre>")[2].rpartition(b"</pre>")[0].decode("utf-8", "replace")
    parts = _FIELD.split(content)
    fields: dict[str, str] = {}
    for name, written in zip(parts[1::2], parts[2::2], strict=True):
        fields.setdefault(name, written.strip())
    return fields


def _read(source: files.TrajectorySource, results: FolderResults) -> Trajectory:
    task_id = source.raw_task_id
    if task_id in results.errors and task_id not in results.rewards:
        raise files.Damaged(f"the run crashed: {results.errors[task_id]}")
    warnings = [*results.warnings]
    content = _content(source, warnings)
    fields = _fields(task_part(content))
    steps, last = _steps(content, warnings)
    answer = last.answer if last.stops else ""
    early, failed = answer.startswith(_EARLY), answer.startswith(_ERROR)
    errors = sum(step.observation.page_error is not None for step in steps)
    return Trajectory(
        key=source.key,
        raw_task_id=task_id,
        goal=files.text(fields.get("intent")) or "",
        steps=tuple(steps),
        answer=files.text(answer) if not (early or failed) else None,
        official_reward=results.rewards.get(task_id),
        terminated=last.stops and not (early or failed),
        truncated=early if last.stops else None,
        telemetry={"n_steps": float(len(steps)), "n_err": float(errors)},
        metadata={
            "start_url": files.text(fields.get("start_url")),
            "goal_images": [*_image_names(fields.get("image", ""))],
            "error": files.text(answer) if early or failed else None,
            "warnings": [*warnings],
        },
    )


def _content(source: files.TrajectorySource, warnings: list[str]) -> bytes:
    """Read the file, with a warning if its end is missing. Raises Damaged."""
    try:
        content = utf8(source.data.read(source.path, MAX_FILE_BYTES), source.path)
    except UnsafeFile as error:
        raise files.Damaged(str(error)) from None
    if b"</h2>\r\n" in content:
        content = content.replace(b"\r\n", b"\n")
    if not content.rstrip().endswith(b"</html>"):
        warnings.append("The file does not end with </html>: its end is missing.")
    return content


def _steps(content: bytes, warnings: list[str]) -> tuple[list[Step], RenderedPage]:
    """Make a step of each whole page; return the last page as well. Raises Damaged for none."""
    steps: list[Step] = []
    last = None
    for number, section in enumerate(split_pages(content), 1):
        page = read_page(section)
        if page is None:
            warnings.append(f"Page {number} was cut and is left out.")
            continue
        steps.append(_step(len(steps), page, warnings))
        last = page
        if len(steps) > MAX_STEPS:
            raise files.Damaged(f"it has more than {MAX_STEPS:,} steps")
    if last is None:
        raise files.Damaged("it holds no whole page")
    return steps, last


def _step(index: int, page: RenderedPage, warnings: list[str]) -> Step:
    refusal = page.previous if page.previous.startswith(_REFUSALS) else None
    return Step(
        index=index,
        observation=Observation(
            url=files.text(page.url),
            axtree=files.text(page.tree),
            screenshot=inline_picture(page.picture, f"of step {index + 1}", warnings),
            page_error=files.text(refusal),
        ),
        reasoning=files.text("\n".join(filter(None, (one.reasoning for one in page.actions)))),
        action=files.text("\n".join(filter(None, (one.action for one in page.actions)))),
    )


def _image_names(written: str) -> list[str]:
    """Return the file names of a task's pictures, which stand there as paths or addresses."""
    quoted = re.findall(r"'([^'\n]{1,2000})'", written) or [written]
    return [name for one in quoted if one != "None" and (name := plain_name(one))]
