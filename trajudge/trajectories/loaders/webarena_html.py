"""WebArena's and VisualWebArena's results folders: ``render_<id>.html``, one file per task.

The file has each page before the action on it; nothing was recorded after the last action. It
begins with the complete task, including the reference answer (``LEAKS``), of which only the intent
is read. The reward is in the logs next to it. The agent is the folder's name; task ids are
``webarena.<id>``, as in BrowserGym.

Pages are located by the writer's fixed markers. The writer does not escape text: a tree may contain
``</pre></div>`` or ``<b>``, so that no HTML parser can locate its end. Each part extends to the
last marker that may end it, in bytes, and is decoded separately. Derived writers omit the previous
action or the action's object, or write several actions per page. A page without its tree or its
action is truncated, and skipped.

``run.py`` logs ``[Result] (PASS) <config file>`` or ``(FAIL)``, and writes the runs that crashed
into ``error.txt``; the config file's name is the task id. A ``results.json`` of numbers by task id
counts if no log names the task.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from trajudge.trajectories.loaders import _files as files
from trajudge.trajectories.loaders._files import Damaged, read_object, readable, reason, text
from trajudge.trajectories.loaders._run import (
    RunReader,
    RunSource,
    Values,
    number_attempts,
    plain_name,
    read_all,
)
from trajudge.trajectories.model import (
    Loaded,
    Observation,
    Step,
    Trajectory,
    TrajectoryKey,
    Want,
    accept_all,
)
from trajudge.trajectories.needs import EVERYTHING, Needs
from trajudge.util.files import MARK_BYTES, DataFolder, NotUtf8, UnsafeFile, utf8

_PAGE = b"<h2>New Page</h2>\n<h3 class='url'>"
_URL = re.compile(rb"<a href=[^\n]*?>URL: ([^\n]*?)</a></h3>\n<div class='state_obv'><pre>")
_TREE_ENDS = (
    b"</pre><div>\n<img src='data:",
    b"</pre><div>\n<div class='prev_action'",
    b"</pre><div>\n<div class='predict_action'",
)
_TREE_END = b"</pre><div>\n"
_PICTURE = re.compile(rb"<img src='(data:[^']*+)'[^>\n]*>\n")
_PREVIOUS = re.compile(rb"<div class='prev_action'[^>\n]*>")
_PREDICTED = b"<div class='predict_action'>"
_PREVIOUS_END = b"</div>\n" + _PREDICTED
_INNER = re.compile(rb"<div class='raw_parsed_prediction'[^>\n]*><pre>")
_NEXT_INNER = re.compile(rb"(?<=</pre></div>)<div class='raw_parsed_prediction'")
_OBJECT, _PARSED = (
    b"</pre></div><div class='action_object'",
    b"</pre></div><div class='parsed_action'",
)
_SPLITTER = "```"
_STOP = re.compile(r"\s*stop\b\s*(?:\[(.*)\])?\s*", re.DOTALL)


class RenderedAction(NamedTuple):
    """The model's text, "" if the harness acted itself or wrote code alone, and the action as
    the harness parsed it."""

    prediction: str
    parsed: str

    @property
    def action(self) -> str:
        """The action between the last two delimiters in the model's text, else the parsed one."""
        parts = self.prediction.rsplit(_SPLITTER, 2)
        return parts[1].strip() if len(parts) == 3 and parts[1].strip() else self.parsed.strip()

    @property
    def reasoning(self) -> str:
        """The prediction without its action."""
        parts = self.prediction.rsplit(_SPLITTER, 2)
        rest = parts[::2] if len(parts) == 3 and parts[1].strip() else [self.prediction]
        return " ".join(filter(None, (part.strip() for part in rest)))


class RenderedPage(NamedTuple):
    """One page and the action on it. ``picture`` is a ``data:`` URL; ``previous`` is the
    harness's message on the previous action, "" if the writer omits it."""

    url: str
    tree: str
    picture: str | None
    previous: str
    actions: tuple[RenderedAction, ...]

    @property
    def stops(self) -> bool:
        """Whether the run ends here."""
        return _STOP.fullmatch(self.actions[-1].action) is not None

    @property
    def answer(self) -> str:
        """The argument of a stop."""
        stop = _STOP.fullmatch(self.actions[-1].action)
        return (stop[1] or "").strip() if stop else ""


def task_part(content: bytes) -> bytes:
    """Return the part before the first page: the task."""
    return content.partition(_PAGE)[0]


def split_pages(content: bytes) -> Iterator[bytes]:
    """Yield the pages of a file, one in memory at a time."""
    begin = content.find(_PAGE)
    while begin >= 0:
        begin += len(_PAGE)
        end = content.find(_PAGE, begin)
        yield content[begin:] if end < 0 else content[begin:end]
        begin = end


def read_page(content: bytes) -> RenderedPage | None:
    """Read one page; None for a truncated one."""
    opened = _URL.match(content)
    end = max(content.rfind(mark) for mark in _TREE_ENDS)
    if opened is None or end < opened.end():
        return None
    offset = end + len(_TREE_END)
    picture = _PICTURE.match(content, offset)
    offset = picture.end() if picture else offset
    previous = _PREVIOUS.match(content, offset)
    start = offset
    if previous:
        offset = content.find(_PREVIOUS_END, previous.end())
        start, offset = offset, offset + len(b"</div>\n")
    # The last page is followed by the end of the file.
    predicted, closing = offset + len(_PREDICTED), content.rfind(b"</div>\n")
    if start < 0 or not content.startswith(_PREDICTED, offset) or closing < predicted:
        return None
    actions = _actions(content[predicted:closing])
    if actions is None:
        return None
    return RenderedPage(
        url=_text(opened[1]),
        tree=_text(content[opened.end() : end]),
        picture=_text(picture[1]) if picture else None,
        previous=_text(content[previous.end() : start]) if previous else "",
        actions=actions,
    )


def _actions(content: bytes) -> tuple[RenderedAction, ...] | None:
    """Read the actions of a page; code alone is an action without a text. None if one is
    truncated."""
    if not _INNER.match(content):
        return (RenderedAction("", _text(content)),)
    starts = [0, *(match.start() for match in _NEXT_INNER.finditer(content))]
    read = [_action(content[a:b]) for a, b in zip(starts, [*starts[1:], None], strict=True)]
    return None if None in read else tuple(action for action in read if action)


def _action(content: bytes) -> RenderedAction | None:
    inner, parsed = _INNER.match(content), content.rfind(_PARSED)
    begin, end = content.find(b"<pre>", parsed), content.rfind(b"</pre></div>")
    if inner is None or not inner.end() <= parsed < begin < end:
        return None
    objects = content.rfind(_OBJECT, inner.end(), parsed)
    text = content[inner.end() : parsed if objects < 0 else objects]
    return RenderedAction(_text(text), _text(content[begin + len(b"<pre>") : end]))


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


MAX_LOGS = 200
MAX_LOG_BYTES = 64 * 2**20
_MAX_LINE_BYTES = 4_096
_LOGS = ("log_files/*.log", "*.log", "merged_log.txt")
_RESULT = re.compile(rb"\[Result\] \((PASS|FAIL)\) (?:\S*[/\\])?([\w.-]{1,100})\.json\s*$")
_CONFIG = re.compile(rb"\[Config file\]: (?:\S*[/\\])?([\w.-]{1,100})\.json\s*$")
_ERROR = re.compile(rb"\[Unhandled Error\] (.*)")


class FolderResults(NamedTuple):
    """Rewards and errors by task id; ``warnings`` are about unreadable files."""

    rewards: dict[str, float]
    errors: dict[str, str]
    warnings: tuple[str, ...]


def read_results(folder: Path, root: DataFolder) -> FolderResults:
    """Read the logs, ``results.json`` and ``error.txt`` of a folder; of several lines on a task
    the last counts."""
    warnings: list[str] = []
    rewards = _table(folder / "results.json", root, Values(warnings))
    for log in islice((log for name in _LOGS for log in sorted(folder.glob(name))), MAX_LOGS):
        for line in _lines(log, root, warnings):
            if match := _RESULT.search(line):
                rewards[match[2].decode()] = float(match[1] == b"PASS")
    errors: dict[str, str] = {}
    named = None
    for line in _lines(folder / "error.txt", root, warnings):
        if config := _CONFIG.search(line):
            named = config[1].decode()
        elif named and (error := _ERROR.match(line)):
            errors[named] = " ".join(error[1].decode("utf-8", "replace").split())[:300]
    return FolderResults(rewards, errors, tuple(warnings))


def _table(file: Path, root: DataFolder, values: Values) -> dict[str, float]:
    if not root.has_file(file):
        return {}
    try:
        stated = read_object(root, file, max_bytes=MAX_LOG_BYTES)
        rewards = {}
        for task, raw in stated.items():
            field, location = f"reward of task {task[:80]}", f"in {file.name}"
            reward = values.number(raw, field, location)
            if reward is not None:
                rewards[task] = reward
            elif raw is None:  # NaN, too
                values.refuse(None, field, location)
    except ValueError as error:
        problem = f"is no JSON object of rewards by task id ({reason(error)})"
        values.warnings.append(f"{file.name} {problem}.")
        return {}
    return rewards


def _lines(file: Path, root: DataFolder, warnings: list[str]) -> Iterator[bytes]:
    """Yield the beginnings of the lines; a path that is not a file, or a file that is too large,
    is added to ``warnings``."""
    try:
        with root.open(file, MAX_LOG_BYTES) as opened:
            utf8(opened.read(MARK_BYTES), file)
            opened.seek(0)
            yield from _bounded(opened)
    except FileNotFoundError:
        return
    except (OSError, UnsafeFile, NotUtf8) as error:
        warnings.append(f"{file.name} is not read: {reason(error)}.")


def _bounded(opened: BinaryIO) -> Iterator[bytes]:
    """Yield lines of at most 4 KiB; the rest of a longer one is skipped."""
    begins = True
    while line := opened.readline(_MAX_LINE_BYTES):
        if begins:
            yield line
        begins = line.endswith(b"\n")


KIND = "webarena-html"
DETECTION_RANK = 1
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
# The harness's message for an action that could not be executed.
_REFUSALS = ('Attempt to perform "', "The previous prediction you issued")
_EARLY, _FAILED = "Early stop:", "ERROR:"


def detect(path: Path) -> bool:
    """Return True if the path is such a file, or a folder with one at most two levels down."""
    if path.is_file() and not path.match(_PATTERN):
        return False
    return files.some_file(path, _PATTERN, _has_mark)


def load(path: Path, want: Want = accept_all, needs: Needs = EVERYTHING) -> Loaded:
    """Yield the run of the file, or of every one in the folder, by key.

    Raises UserError without any.
    """
    root = DataFolder(path if path.is_dir() else path.parent)
    pages = files.find_logs(
        path, KIND, _PATTERN, _LEVELS, f"files {_PATTERN}", is_one=lambda file: file.match(_PATTERN)
    )
    sources = number_attempts(_source(root, file) for file in pages)
    results = cache(lambda folder: read_results(folder, root))
    return read_all(sources, lambda run: _read(run, results(run.path.parent)), want, needs)


def _has_mark(head: bytes) -> bool:
    return any(mark in head for mark in _MARKS)


def _source(root: DataFolder, file: Path) -> RunSource:
    """Return the run's source, with the id of its file and the benchmark of the task's fields."""
    task = _fields(task_part(files.head(file))) if root.has_file(file) else {}
    benchmark = "visualwebarena" if any(name in task for name in _VISUAL) else "webarena"
    number = readable(file.stem.removeprefix("render_")) or files.name_of(file.parent)
    agent = files.name_of(file.parent) or KIND
    key = TrajectoryKey(benchmark=benchmark, agent=agent, task_id=f"{benchmark}.{number}")
    return RunSource(key, number, file, root)


def _fields(head: bytes) -> dict[str, str]:
    """Return the fields of the task file as written, one ``key: value`` per line."""
    content = head.partition(b"<pre>")[2].rpartition(b"</pre>")[0].decode("utf-8", "replace")
    parts = _FIELD.split(content)
    fields: dict[str, str] = {}
    for name, written in zip(parts[1::2], parts[2::2], strict=True):
        fields.setdefault(name, written.strip())
    return fields


def _read(run: RunReader, results: FolderResults) -> Trajectory:
    task_id = run.raw_task_id
    if task_id in results.errors and task_id not in results.rewards:
        raise Damaged(f"the run crashed: {results.errors[task_id]}")
    run.warnings += results.warnings
    content = _content(run)
    fields = _fields(task_part(content))
    steps, last = _steps(content, run)
    answer = last.answer if last.stops else ""
    early, failed = answer.startswith(_EARLY), answer.startswith(_FAILED)
    errors = sum(step.observation.page_error is not None for step in steps)
    return run.trajectory(
        text(fields.get("intent")) or "",
        steps,
        answer=text(answer) if not (early or failed) else None,
        official_reward=results.rewards.get(task_id),
        terminated=last.stops and not (early or failed),
        truncated=early if last.stops else None,
        telemetry={"n_steps": float(len(steps)), "n_err": float(errors)},
        metadata={
            "start_url": text(fields.get("start_url")),
            "goal_images": [*_image_names(fields.get("image", ""))],
            "error": text(answer) if early or failed else None,
        },
    )


def _content(run: RunReader) -> bytes:
    """Read the file, with a warning if its end is missing. Raises Damaged."""
    try:
        content = utf8(run.data.read(run.path, MAX_FILE_BYTES), run.path)
    except UnsafeFile as error:
        raise Damaged(str(error)) from None
    if b"</h2>\r\n" in content:
        content = content.replace(b"\r\n", b"\n")
    if not content.rstrip().endswith(b"</html>"):
        run.warnings.append("The file does not end with </html>: its end is missing.")
    return content


def _steps(content: bytes, run: RunReader) -> tuple[list[Step], RenderedPage]:
    """Return a step for each complete page, and the last page. Raises Damaged without any."""
    steps: list[Step] = []
    last = None
    for number, section in enumerate(split_pages(content), 1):
        page = read_page(section)
        if page is None:
            run.warnings.append(f"Page {number} was cut and is left out.")
            continue
        steps.append(_step(len(steps), page, run))
        last = page
        if len(steps) > MAX_STEPS:
            raise Damaged(f"it has more than {MAX_STEPS:,} steps")
    if last is None:
        raise Damaged("it holds no whole page")
    return steps, last


def _step(index: int, page: RenderedPage, run: RunReader) -> Step:
    refusal = page.previous if page.previous.startswith(_REFUSALS) else None
    return Step(
        index=index,
        observation=Observation(
            url=text(page.url),
            axtree=text(page.tree),
            screenshot=run.inline_picture(page.picture, f"of step {index + 1}"),
            page_error=text(refusal),
        ),
        reasoning=text("\n".join(filter(None, (one.reasoning for one in page.actions)))),
        action=text("\n".join(filter(None, (one.action for one in page.actions)))),
    )


def _image_names(written: str) -> list[str]:
    """Return the file names of a task's images, which are written as paths or addresses."""
    quoted = re.findall(r"'([^'\n]{1,2000})'", written) or [written]
    return [name for one in quoted if one != "None" and (name := plain_name(one))]
