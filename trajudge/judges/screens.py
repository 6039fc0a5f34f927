"""What ``trajudge judges`` shows first: all judges, one of them, or what they follow of their
sources, on one screen each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from trajudge.judges.cards import card_of
from trajudge.judges.cards.fidelity import HEAD as FIDELITY_HEAD
from trajudge.judges.cards.fidelity import fidelity_rows, read_fidelity
from trajudge.judges.entry import JudgeEntry
from trajudge.judges.registry import JUDGES, find_judge, make_judge, needs_of
from trajudge.judges.show import (
    HEAD,
    defence_lines,
    full_table,
    installed_rows,
    need_lines,
    option_lines,
    rows,
    stages_of,
    summary_line,
)
from trajudge.prompts.cards import Card
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.util.layout.lines import Row, wrapped
from trajudge.trajectories.util.layout.screen import LINES
from trajudge.trajectories.util.tables import columns, folded, screen_width
from trajudge.trajectories.util.terminal import count_of

_CALLS = re.compile(r"[\dT][\dT +]*(?=$|[:,; ])")
_MARGIN = 12
_LONGEST = {"options": 7}  # lines of a field; others have three
_LIST_REST = (
    "T: the steps of a run. A judge's card, options and prompts:  trajudge judges show NAME; what "
    "all judges see, their calls and answers: --full"
)


def list_screen(*, full: bool = False) -> str:
    """List the judges, one line each where the screen is wide enough; then those of installed
    packages, whose code is not run. ``full`` adds all that is known of each."""
    if full:
        return full_table(HEAD, rows())
    ours = [(name, entry) for name, entry in JUDGES.items() if not entry.label]
    shown = [(name, _model(entry), _calls(name, entry), entry.summary) for name, entry in ours]
    shown += [(name, "", "", what) for name, what in installed_rows()]
    asking = sum(entry.needs_model for _, entry in ours)
    finding = f"{count_of(len(shown), 'judge')}, of which {asking} ask a model"
    head, width = ("judge", "model", "calls", "what it asks or reads"), screen_width()
    rest = folded(_LIST_REST, width)
    lines = wrapped(head, shown, width)
    if len(lines) + len(rest) + 3 > LINES:
        lines = columns(head, shown, width, names=len(head))
    return "\n".join([finding, "", *lines, "", *rest]) + "\n"


def judge_screen(name: str, options: Mapping[str, Any], trajectory: Trajectory) -> str:
    """Show a judge in a few fields. Raises UserError for an unknown judge or option."""
    entry = find_judge(name)
    judge_id, judge = make_judge(name, options) if entry.needs_model else (name, None)
    card = card_of(name, entry)
    fields = _card_fields(card) if card is not None else {}
    plain = [line for line in option_lines(name, entry, options) if " = {" not in line]
    fields["options"] = "; ".join(plain) or "none"  # limits of pictures have fields of their own
    fields["defences"] = "; ".join(defence_lines(name, entry, options))
    if judge is not None:
        fields["needs"] = "; ".join(need_lines(needs_of(name, options)))
        fields["prompts"] = ", ".join(stages_of(judge, trajectory))
    width = screen_width()
    lines = [line for each in fields.items() for line in _field(*each, width)]
    rest = "The prompts: --full" if judge is not None else ""
    if card is not None:
        rest = "The whole card, deviations with their reasons, and the prompts: --full"
    above = [f"# {judge_id}", "", *folded(summary_line(entry), width), ""]
    below = ["", *folded(rest, width)] if rest else []
    return "\n".join([*above, *lines, *below]) + "\n"


def fidelity_screen(name: str | None, *, full: bool = False) -> str:
    """Count what judges follow of their sources, or list in what one differs, ``full`` item by
    item. Raises UserError for a judge that has no source."""
    if full:
        return full_table(FIDELITY_HEAD, list(fidelity_rows(name)))
    if name is not None:
        return _differences(name, screen_width())
    counts = [
        (judge, *_counts(judge), str(len(known.rules)), known.source.partition(",")[0])
        for judge, known in read_fidelity().items()
    ]
    declared = sum(int(row[3]) for row in counts)
    finding = (
        f"{count_of(len(counts), 'judge')} beside their sources: {declared} declared deviations"
    )
    head = ("judge", "same", "mended", "declared", "rules", "source")
    rest = "Item by item:  trajudge judges fidelity NAME; all items of all judges: --full"
    lines = wrapped(head, counts, screen_width())
    return "\n".join([finding, "", *lines, "", *folded(rest, screen_width())]) + "\n"


def _model(entry: JudgeEntry) -> str:
    """Say what kind of model a judge asks."""
    if entry.composed:
        return "members"
    if not entry.needs_model:
        return "none"
    if entry.logprobs:
        return "logprobs"
    sees = any(entry.needs_pictures(role, None) for role in ("judge", *entry.models))
    return "images" if sees else "text"


def _calls(name: str, entry: JudgeEntry) -> str:
    """Shorten the card's formula to what stands before its explanation."""
    card = card_of(name, entry)
    match = _CALLS.match(card.calls) if card else None
    return match[0].strip() if match else "…"


def _card_fields(card: Card) -> dict[str, str]:
    deviations = count_of(len(card.deviations), "deviation")
    return {
        "source": card.paper,
        "sees": card.input,
        "calls": card.calls,
        "answers": card.scale,
        "success is": card.binarisation,
        "version": f"{card.version}, with {deviations} from the source",
    }


def _field(name: str, value: str, width: int) -> list[str]:
    lines = folded(value, width - _MARGIN, most=_LONGEST.get(name, 3))
    labels = [name, *[""] * (len(lines) - 1)]
    return [f"{label:<{_MARGIN}}{line}" for label, line in zip(labels, lines, strict=True)]


def _counts(judge: str) -> tuple[str, ...]:
    statuses = Counter(item.status for item in read_fidelity()[judge].items)
    return tuple(str(statuses[status]) for status in ("same", "mended", "declared"))


def _differences(name: str, width: int) -> str:
    """List the items that are not the same, as many as fit."""
    rows = [row[1:] for row in fidelity_rows(name)]
    differing = sorted((row for row in rows if row[-1] != "same"), key=lambda row: row[-1])
    same = len(rows) - len(differing)
    source = folded(f"{name} beside {read_fidelity()[name].source}", width)
    room = LINES - len(source) - 4
    lines, kept = _first_rows(("item", "source", "here", "status"), differing, width, room)
    left = [f"{len(differing) - kept} more that differ"] if kept < len(differing) else []
    rest = f"{' and '.join([*left, count_of(same, 'item') + ' the same'])}: --full"
    return "\n".join([*source, "", *lines, "", *folded(rest, width)]) + "\n"


def _first_rows(head: Row, rows: Sequence[Row], width: int, room: int) -> tuple[list[str], int]:
    """Lay out as many rows as fit into ``room`` lines; return the lines, and how many rows."""
    for kept in range(len(rows), 0, -1):
        lines = wrapped(head, rows[:kept], width)
        if len(lines) <= room:
            return lines, kept
    return [], 0
