"""What ``trajudge judges`` shows: all judges, or one with its card and its prompts on a sample."""

from __future__ import annotations

import asyncio
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import yaml

from trajudge.judges.defences import DEFENCES, read_defences
from trajudge.judges.fidelity import FidelityItem, fidelity_items, read_fidelity
from trajudge.judges.judging import FAILURES, BaseClient, CallArgs
from trajudge.judges.methods.simplified import PROMPT_VARIABLES
from trajudge.judges.model import Judge, Message, Picture, Reply
from trajudge.judges.registry import (
    DOOR,
    JUDGES,
    JudgeEntry,
    find_judge,
    make_judge,
    needs_of,
    read_options,
)
from trajudge.judges.settings import FidelityConfig, ListConfig, ShowConfig
from trajudge.prompts.render import Card, load_prompt
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import Needs
from trajudge.trajectories.sample import SAMPLE, resolve_sample
from trajudge.util.commands import OK
from trajudge.util.errors import UserError
from trajudge.util.tables import Row, Table, columns, folded, screen_width, text, wrapped
from trajudge.util.terminal import LINES, count_of

_LIST_HEAD = ("judge", "sees", "calls", "answers", "paper")

_FIDELITY_HEAD = ("judge", "item", "source", "here", "status")


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
    if entry.card is not None:
        card = entry.card.model_dump()
        card_text = yaml.safe_dump(card, sort_keys=False, allow_unicode=True, width=90)
        lines += ["## Card", "", card_text]
    lines += [
        "## Options",
        "",
        *(list(option_lines(name, entry, options)) or ["none of its own"]),
        *defence_lines(name, entry, options),
        "",
    ]
    if judge is not None:
        lines += ["## Prompts", "", *prompt_lines(entry, judge), ""]
        lines += ["## Needs", "", *need_lines(needs_of(name, options)), ""]
        lines += [f"## Prompts for {trajectory.key}", "", *_preview(judge, trajectory).lines()]
    return "\n".join(lines).rstrip() + "\n"


def summary_line(entry: JudgeEntry) -> str:
    """Return what the judge asks; of a user's that says nothing, where it would."""
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


def prompt_lines(entry: JudgeEntry, judge: Judge) -> Iterator[str]:
    """Yield whose prompts a judge asks with, and beside them the hashes of the others: ours, and
    its source's own by variant."""
    asked = getattr(judge, "text_hash", "")
    own = getattr(judge, "prompt_hash", "") or "" if not asked else load_prompt(entry.prompt).hash
    compared = read_fidelity().get(entry.name)
    published = compared.published if compared else None
    if published is None:
        yield f"our own, hash {own[:12]}"
        return
    known = ", ".join(
        f"{text[:12]} ({name})" if len(published.texts) > 1 else text[:12]
        for name, text in published.texts.items()
    )
    if not asked:
        yield f"our own, hash {own[:12]}"
        yield f"the source's own ({published.of}): hash {known}, with --prompts {published.prompts}"
        return
    version = "another version than" if asked not in published.texts.values() else "as in"
    yield f"the source's own, hash {asked[:12]}, {version} {published.of}"
    yield f"our own: hash {own[:12]}, without --prompts"


def need_lines(needs: Needs) -> Iterator[str]:
    """Yield what a run must show; without it the run is skipped."""
    for name in ("screenshots", "trees"):
        yield f"{name}: {', '.join(map(str, getattr(needs, name))) or 'none'}"
    yield f"pictures of the goal: {'yes' if needs.goal_images else 'no'}"
    yield f"answer: {'yes' if needs.answer else 'no'}"
    if needs.requires:
        yield f"skipped without: {', '.join(needs.requires)}"


def _preview(judge: Judge, trajectory: Trajectory) -> _PreviewClient:
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

    def stages(self) -> list[str]:
        """Name the stages in which the judge asks, with how often where it is more than once."""
        return [name if count == 1 else f"{name} × {count}" for name, count in self.count.items()]

    def lines(self) -> list[str]:
        """Return the first call of every stage, pictures by their size, and how many follow."""
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


_CALLS = re.compile(r"[\dT][\dT +]*(?=$|[:,; ])")

_MARGIN = 12

_LONGEST = {"options": 7}  # lines of a field; others have three

_LIST_REST = (
    "T: the steps of a run. A judge's card, options and prompts:  trajudge judges show NAME; what "
    "all judges see, their calls and answers: --full"
)


def list_screen(*, full: bool) -> str:
    """List the judges, one line each where the screen is wide enough; then those of installed
    packages, whose code is not run. ``full`` adds all that is known of each."""
    cards = [(entry, card) for entry in JUDGES.values() if (card := entry.card)]
    installed = installed_rows()
    if full:
        rows = [
            (
                entry.name,
                " or ".join(entry.representations)
                or ("steps" if entry.needs_model else "the run's record"),
                *(card.calls, card.scale, card.paper),
            )
            for entry, card in cards
        ]
        return full_table(
            _LIST_HEAD, [*rows, *((name, "", "", what, "") for name, what in installed)]
        )
    shown = [(entry.name, _model(entry), _calls(card), entry.summary) for entry, card in cards]
    shown += [(name, "", "", what) for name, what in installed]
    asking = sum(entry.needs_model for entry, _ in cards)
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
    fields = _card_fields(entry.card) if entry.card is not None else {}
    plain = [line for line in option_lines(name, entry, options) if " = {" not in line]
    fields["options"] = "; ".join(plain) or "none"  # limits of pictures have fields of their own
    fields["defences"] = "; ".join(defence_lines(name, entry, options))
    if judge is not None:
        fields["asks with"] = "; ".join(prompt_lines(entry, judge))
        fields["needs"] = "; ".join(need_lines(needs_of(name, options)))
        fields["prompts"] = ", ".join(_preview(judge, trajectory).stages())
    width = screen_width()
    lines = [line for each in fields.items() for line in _field(*each, width)]
    rest = "The prompts: --full" if judge is not None else ""
    if entry.card is not None:
        rest = "The whole card, deviations with their reasons, and the prompts: --full"
    above = [f"# {judge_id}", "", *folded(summary_line(entry), width), ""]
    below = ["", *folded(rest, width)] if rest else []
    return "\n".join([*above, *lines, *below]) + "\n"


def fidelity_screen(name: str | None, *, full: bool) -> str:
    """Count what judges follow of their sources, or list in what one differs, ``full`` item by
    item. Raises UserError for a judge that has no source."""
    compared = {judge: fidelity_items(judge) for judge in ([name] if name else read_fidelity())}
    if full:
        rows = [(judge, *_cells(item)) for judge, items in compared.items() for item in items]
        return full_table(_FIDELITY_HEAD, rows)
    if name is not None:
        return _differences(name, compared[name], screen_width())
    counts = []
    for judge, known in read_fidelity().items():
        number = Counter(item.status for item in known.items)
        source = known.source.partition(",")[0]
        figures = (number["same"], number["mended"], number["declared"], len(known.rules))
        counts.append((judge, *map(str, figures), source))
    declared = sum(int(row[3]) for row in counts)
    finding = f"{count_of(len(counts), 'judge')} and their sources: {declared} declared deviations"
    head = ("judge", "same", "mended", "declared", "rules", "source")
    rest = "Item by item:  trajudge judges fidelity NAME; all items of all judges: --full"
    lines = wrapped(head, counts, screen_width())
    return "\n".join([finding, "", *lines, "", *folded(rest, screen_width())]) + "\n"


def _cells(item: FidelityItem) -> tuple[str, str, str, str]:
    return (item.item, item.source, item.ours, item.status)


def _model(entry: JudgeEntry) -> str:
    """Name the kind of model that a judge asks."""
    if entry.composed:
        return "members"
    if not entry.needs_model:
        return "none"
    if entry.logprobs:
        return "logprobs"
    sees = any(entry.needs_pictures(role, None) for role in ("judge", *entry.models))
    return "images" if sees else "text"


def _calls(card: Card) -> str:
    """Shorten the card's formula to what stands before its explanation."""
    match = _CALLS.match(card.calls)
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


def _differences(name: str, items: Sequence[FidelityItem], width: int) -> str:
    """List the items that are not the same, as many as fit."""
    differing = sorted((item for item in items if item.status != "same"), key=lambda i: i.status)
    same = len(items) - len(differing)
    source = folded(f"{name} compared with {read_fidelity()[name].source}", width)
    room = LINES - len(source) - 4
    head, rows = ("item", "source", "here", "status"), list(map(_cells, differing))
    lines, kept = _first_rows(head, rows, width, room)
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


def list_judges(config: ListConfig) -> int:
    """Print all judges."""
    sys.stdout.write(list_screen(full=config.full))
    return OK


def show_judge(config: ShowConfig) -> int:
    """Print a judge's card, and its prompts for the first trajectory of the sample; or a template
    of its."""
    if config.prompt or config.system_prompt:
        sys.stdout.write(template(config.name, "user" if config.prompt else "system"))
        return OK
    read = open_source(resolve_sample(SAMPLE))
    sample = next(item for item in read if isinstance(item, Trajectory))
    show = described if config.full else judge_screen
    sys.stdout.write(show(config.name, config.judge_option, sample))
    return OK


def template(name: str, turn: str) -> str:
    """Return the template of a judge's ``user`` or ``system`` turn, which renders as the judge's
    own, with a comment of the variables at its top. Raises UserError for a judge that takes no
    prompt of the user's."""
    if "prompt" not in find_judge(name).options_class.model_fields:
        raise UserError(
            f"judge {name} takes no prompt of your own: start from that of simplified, or read its "
            f"prompts with  trajudge judges show {name} --full"
        )
    text = load_prompt(name).files[f"{turn}.jinja"]
    option = "--prompt" if turn == "user" else "--prompt FILE, saved beside FILE as system.jinja"
    known = "".join(f"\n  {name}: {what}" for name, what in PROMPT_VARIABLES[turn].items())
    return f"{{#- For  trajudge judge {option}. Variables:{known}\n-#}}{text.partition('-#}')[2]}"


def show_fidelity(config: FidelityConfig) -> int:
    """Print what judges, or one of them, follow of their sources."""
    sys.stdout.write(fidelity_screen(config.name, full=config.full))
    return OK
