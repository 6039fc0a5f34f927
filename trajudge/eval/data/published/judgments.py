"""AgentRewardBench's published judgments: ``judgments/BENCHMARK/AGENT/JUDGE/TASK_ID.json``.

``read_published`` makes Judgments of the few fields that are needed of each file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from trajudge.eval.data.published.file import Answer, JudgmentFile
from trajudge.eval.data.published.index import JudgmentIndex, read_unindexed
from trajudge.eval.data.published.listing import JudgeFolder, list_published
from trajudge.judges.model import Call, Judgment, Status, Usage
from trajudge.judges.replies import ParseFailure, parse_status_line, parse_tags
from trajudge.trajectories.loaders.agentrewardbench_text import is_judgment
from trajudge.trajectories.model import TrajectoryKey, checked, defaults_of
from trajudge.trajectories.util.errors import UserError
from trajudge.trajectories.util.safe_files import DataFolder
from trajudge.trajectories.util.terminal import count_of

_TAGS = ("<reasoning>", "<success>")
_OPEN, _CLOSE = "<reasoning>", "</reasoning>"
# What else than a label's tag would make the text before it matter.
_ENTANGLING = re.compile("reasoning|think|thought|channel|analysis", re.IGNORECASE)
# Thoughts in wrappers that begin without "<" (``trajectories.thoughts``).
_WRAPPED = ("◁", "[THINK]", "[/THINK]")
_ENTANGLED: dict[str, Any] = {}
_SHORT = 400
_LOOKED_AT = 20


class PublishedJudgment(NamedTuple):
    """A judgment with what else its file tells.

    ``official_reward`` is the trajectory's, ``judge_model_name`` the model that judged
    (``response.model`` may name another). The judge's id is its folder's name, because one model
    judges under several configurations; ``representation`` says whether it saw the final
    accessibility tree, and the final screenshot.
    """

    judgment: Judgment
    raw_task_id: str
    judge_model_name: str
    official_reward: float | None
    representation: tuple[bool, bool] | None = None


def judgments_folder(folder: Path) -> Path:
    """Find the folder of benchmarks: ``judgments`` in ``folder``, else ``folder`` itself."""
    inner = folder / "judgments"
    return inner if inner.is_dir() else folder


def read_published(folder: Path, index: JudgmentIndex | None = None) -> Iterator[PublishedJudgment]:
    """Read every judgment below ``folder`` (``judgments``, or the folder that has it), by path.

    Of duplicates and of an ``_error.json`` beside an answer one counts. A file that cannot be
    read gives a judgment with status ``skipped``. With an ``index`` (of the same folder) only
    files that changed are read. Raises UserError if there is no judgment.
    """
    yield from read_listed(folder, published_folders(folder), index)


def published_folders(folder: Path) -> list[JudgeFolder]:
    """List the judgments below ``folder``. Raises UserError if there is none."""
    root = judgments_folder(folder)
    listed = list_published(root) if root != folder or _holds_judgments(root) else []
    if not listed:
        raise UserError(
            f"{folder}: holds no judgments in the layout BENCHMARK/AGENT/JUDGE/TASK_ID.json; "
            "give the folder named judgments"
        )
    return listed


def read_listed(
    folder: Path, listed: Iterable[JudgeFolder], index: JudgmentIndex | None = None
) -> Iterator[PublishedJudgment]:
    """Read the judgments of ``listed`` folders below ``folder``, as ``read_published``."""
    read = partial(read_unindexed, DataFolder(folder)) if index is None else index.read
    # One key object for a trajectory, whichever judge and raw id: it is made and compared once.
    keys: dict[tuple[str, str, str], TrajectoryKey] = {}
    same: dict[TrajectoryKey, TrajectoryKey] = {}
    for place, benchmark, agent, name, files in listed:
        for task_id, file in files.items():
            key = keys.get((benchmark, agent, task_id))
            if key is None:
                key = TrajectoryKey(benchmark=benchmark, agent=agent, task_id=task_id)
                key = keys[benchmark, agent, task_id] = same.setdefault(key, key)
            yield _published(partial(read, place, file), key, name, task_id, f"{place}/{file}")


def _holds_judgments(root: Path) -> bool:
    """Tell whether files at that depth are judgments: those of a folder further up lie as deep."""
    if root.resolve().name == "judgments":
        return True
    files = islice(root.glob("*/*/*/*.json"), _LOOKED_AT)
    return any(is_judgment(file, DataFolder(root)) for file in files)


def _published(
    read: Callable[[], JudgmentFile], key: TrajectoryKey, judge: str, task_id: str, path: str
) -> PublishedJudgment:
    try:
        file = read()
        ended = _judged(file)
    except (OSError, ValueError, RecursionError) as error:
        file = JudgmentFile()
        ended = {"status": Status.SKIPPED, "detail": f"{path}: cannot be read: {error}"}
    return PublishedJudgment(
        judgment=checked(Judgment, _BLANK | ended | {"key": key, "judge": judge, "scores": {}}),
        raw_task_id=task_id,
        judge_model_name=file.judge_model_name,
        official_reward=file.official_reward,
        representation=_representation(file),
    )


_BLANK = defaults_of(Judgment)


def unread_note(folder: Path, found: Sequence[PublishedJudgment]) -> list[str]:
    """Say which files are broken: a judge's failures may come from them."""
    broken = [i.judgment for i in found if i.judgment.status is Status.SKIPPED]
    if not broken:
        return []
    judges = ", ".join(sorted({j.judge for j in broken}))
    return [
        f"{folder}: {count_of(len(broken), 'file')} of {judges} cannot be read and counted as "
        f"skipped; the first is {broken[0].detail}: fetch what is broken again"
    ]


def _representation(file: JudgmentFile) -> tuple[bool, bool] | None:
    if file.use_axtree is None or file.use_screenshot is None:
        return None
    return file.use_axtree, file.use_screenshot


def _judged(file: JudgmentFile) -> dict[str, Any]:
    """Status, verdict and call of a judgment."""
    answer = file.answer
    if answer is None:
        detail = file.error or "the file holds no response"
        return {"status": Status.PROVIDER_ERROR, "detail": detail}
    text = answer.content or ""
    calls = (_call(answer, text),)
    verdict = verdict_fields(text)
    if verdict is None:
        detail = f"no verdict in the reply, which ended with {answer.finish_reason}"
        return {"status": _failure(answer), "detail": detail, "calls": calls}
    return {**verdict, "status": Status.OK, "calls": calls}


def verdict_fields(text: str) -> dict[str, Any] | None:
    """Parse the verdict from the tags or, in a reply without them, from its status line; None if
    it holds none.

    Of a reply whose reasoning is one block without any tag, what follows the block decides, and its
    reasoning is what is in the block.
    """
    start = text.find("<")
    end = text.find("<", start + 1)
    is_plain = not _ENTANGLING.search(text, 0, max(start, 0)) and not any(
        map(text.__contains__, _WRAPPED)
    )
    if is_plain and text.startswith(_OPEN, max(start, 0)) and text.startswith(_CLOSE, end):
        labels = text[end + len(_CLOSE) :]
        if len(labels) <= _SHORT and (known := _after_reasoning(labels)) is not _ENTANGLED:
            reasoning = text[start + len(_OPEN) : end].strip()
            return known and {**known, "reasoning": reasoning}
    return _parsed(text)


@lru_cache(maxsize=4096)
def _after_reasoning(labels: str) -> dict[str, Any] | None:
    """Parse the verdict after the reasoning, which ends a judge's replies in few ways;
    ``_ENTANGLED`` where that text mentions the reasoning, too."""
    if _ENTANGLING.search(labels):
        return _ENTANGLED
    return _parsed(_OPEN + _CLOSE + labels)


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        tagged = any(tag in text for tag in _TAGS)
        return dict(parse_tags(text) if tagged else parse_status_line(text))
    except ParseFailure:
        return None


def _failure(answer: Answer) -> Status:
    if answer.finish_reason == "length":
        return Status.TRUNCATED
    if answer.finish_reason == "content_filter" or answer.content is None:
        return Status.REFUSED
    return Status.UNPARSABLE


def _call(answer: Answer, text: str) -> Call:
    """Build the call as far as the file tells it: price and request are not in it."""
    cached = answer.cached_tokens or 0
    tokens = {
        "input": max(0, (answer.prompt_tokens or 0) - cached),
        "cache_read": cached,
        "cache_write": 0,
        "output": answer.completion_tokens or 0,
        "reasoning": 0,
        "image": 0,
    }
    call = {
        "stage": "verdict",
        "request": "",
        "rung": "full",
        "finish": answer.finish_reason or "",
        "usage": checked(Usage, tokens),
        "cost": None,
        "text": text,
        "seconds": 0.0,
        "cached": False,
    }
    return checked(Call, call)
