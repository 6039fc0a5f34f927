"""What a judge is and asks, for a reader: its card, and its prompts on a sample trajectory."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import yaml

from trajudge.judges.cards import card_of
from trajudge.judges.client import BaseClient, CallArgs
from trajudge.judges.defences.options import DEFENCES, read_defences
from trajudge.judges.entry import JudgeEntry
from trajudge.judges.judging import FAILURES
from trajudge.judges.model import Judge, Message, Picture, Reply
from trajudge.judges.options import read_options
from trajudge.judges.plugins import DOOR
from trajudge.judges.registry import JUDGES, find_judge, make_judge, needs_of
from trajudge.prompts.cards import Card
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import Needs
from trajudge.trajectories.util.tables import Table, text

JudgeRow = tuple[str, str, str, str, str]
HEAD: JudgeRow = ("judge", "sees", "calls", "answers", "paper")


def rows() -> list[JudgeRow]:
    """List a row per judge, in the registry's order; then those of installed packages, whose code
    is not run to list it."""
    ours = [
        _row(name, entry, card)
        for name, entry in JUDGES.items()
        if (card := card_of(name, entry)) is not None
    ]
    return [*ours, *((name, "", "", what, "") for name, what in installed_rows())]


def installed_rows() -> list[tuple[str, str]]:
    """Return name and origin of the judges that installed packages bring."""
    taken = ", whose name trajudge has: rename it"
    return [
        (name, f"a judge of the package {package}{taken if name in JUDGES else ''}")
        for name, package in DOOR.installed()
    ]


def full_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Render a table for a terminal, as lines with tabs elsewhere."""
    if sys.stdout.isatty():
        return text(Table("", head, rows, names=len(head))).lstrip("\n")
    return "".join("\t".join(row) + "\n" for row in (head, *rows))


def described(name: str, options: Mapping[str, Any], trajectory: Trajectory) -> str:
    """Describe a judge as Markdown: card, options and prompts. Raises UserError for an unknown
    judge or option."""
    entry = find_judge(name)
    # A judge without a prompt may not be complete without a trained model or its members.
    judge_id, judge = make_judge(name, options) if entry.needs_model else (name, None)
    lines = [f"# {judge_id}", "", summary_line(entry), ""]
    card = card_of(name, entry)
    if card is not None:
        card_text = yaml.safe_dump(card.model_dump(), sort_keys=False, allow_unicode=True, width=90)
        lines += ["## Card", "", card_text]
    lines += [
        "## Options",
        "",
        *(list(option_lines(name, entry, options)) or ["none of its own"]),
        *defence_lines(name, entry, options),
        "",
    ]
    if judge is not None:
        lines += ["## Needs", "", *need_lines(needs_of(name, options)), ""]
        lines += [f"## Prompts for {trajectory.key}", "", *_prompt_lines(judge, trajectory)]
    return "\n".join(lines).rstrip() + "\n"


def _row(name: str, entry: JudgeEntry, card: Card) -> JudgeRow:
    shown = " or ".join(entry.representations)
    without = "steps" if entry.needs_model else "the run's record"
    return (name, shown or without, card.calls, card.scale, card.paper)


def summary_line(entry: JudgeEntry) -> str:
    """Say what the judge asks; of a user's that says nothing, where it would."""
    return entry.summary or "a judge of your own: the first line of its docstring would stand here"


def option_lines(name: str, entry: JudgeEntry, given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options with their values, and those that must be given."""
    kind = entry.options_class
    open_ = [key for key, field in kind.model_fields.items() if field.is_required()]
    if set(open_) - given.keys():
        yield from (f"{key}: to be given" for key in open_)
        defaults = ((key, field.default) for key, field in kind.model_fields.items())
        yield from (f"{key} = {default}" for key, default in defaults if key not in open_)
        return
    values = read_options(name, kind, given).model_dump(mode="json")
    yield from (f"{key} = {value}" for key, value in values.items())


def defence_lines(name: str, entry: JudgeEntry, given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the defences that are on, and those that every judge takes."""
    on = read_defences(name, entry.options_class, given).given
    yield from (f"{key} = {value}" for key, value in on.items())
    yield f"of every judge, against what it reads: {', '.join(DEFENCES)}"


def need_lines(needs: Needs) -> Iterator[str]:
    """Yield what a run must show; without it the run is skipped."""
    for name in ("screenshots", "trees"):
        yield f"{name}: {', '.join(map(str, getattr(needs, name))) or 'none'}"
    yield f"pictures of the goal: {'yes' if needs.goal_images else 'no'}"
    yield f"answer: {'yes' if needs.answer else 'no'}"
    if needs.requires:
        yield f"skipped without: {', '.join(needs.requires)}"


def _prompt_lines(judge: Judge, trajectory: Trajectory) -> list[str]:
    """Render the first call of every stage, pictures by their size, and count the calls that
    follow."""
    return _previewed(judge, trajectory).lines()


def stages_of(judge: Judge, trajectory: Trajectory) -> list[str]:
    """Name the stages in which a judge asks about a trajectory, with how often where it is more
    than once."""
    count = _previewed(judge, trajectory).count
    return [stage if number == 1 else f"{stage} × {number}" for stage, number in count.items()]


def _previewed(judge: Judge, trajectory: Trajectory) -> _PreviewClient:
    client = _PreviewClient()

    async def judge_it() -> None:
        with suppress(*FAILURES):
            await judge(trajectory, client)

    asyncio.run(judge_it())
    return client


class _PreviewClient(BaseClient):
    """Model client that writes down the prompts, and answers with the assumed replies."""

    def __init__(self) -> None:
        self._first: dict[str, list[str]] = {}
        self.count: Counter[str] = Counter()

    def lines(self) -> list[str]:
        written = []
        for stage, lines in self._first.items():
            more = self.count[stage] - 1
            title = f"### {stage} (and {more} more like it)" if more else f"### {stage}"
            written += [title, "", *lines]
        return written

    async def answer(self, call_args: CallArgs) -> Reply:
        self.count[call_args.stage] += 1
        if call_args.stage not in self._first:
            self._first[call_args.stage] = list(_lines(call_args.messages))
        return Reply(text=call_args.assume)


def _lines(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        yield f"[{message.role}]"
        for part in message.parts:
            yield _picture(part) if isinstance(part, Picture) else part.text
        yield ""


def _picture(part: Picture) -> str:
    return f"[{part.media_type}, {part.width} x {part.height} pixels]"
