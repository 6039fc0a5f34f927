"""The page of a judgment: verdict, the prompt as it was sent, and every call."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trajudge.app.library import OpenedTrajectory, TrajectoryAbsent, TrajectoryLibrary
from trajudge.app.rebuilding import RebuiltCall, RebuiltPrompt, rebuild
from trajudge.app.steps import GoalPicture, goal_pictures
from trajudge.app.trajectory_page import TrajectoryAccess, TrajectoryVerdicts, verdicts_on
from trajudge.app.web import (
    PageError,
    address,
    asked_filter,
    in_thread,
    json_page,
    last_page_link,
    page,
    trajectory_link,
    wants_json,
)
from trajudge.app.workspace import OpenedRun, Workspace, workspace_of
from trajudge.eval.store.filters import judgment_page, parse_sorting
from trajudge.eval.store.run_folder import record_path
from trajudge.judges.model import Call, Judgment, Picture, Text
from trajudge.trajectories.model import ImageRef, Trajectory
from trajudge.trajectories.needs import Needs
from trajudge.util.errors import ImageUnreadable, UserError
from trajudge.util.files import UnsafeFile, read_regular

_STEPS = re.compile(r"\bsteps?\s{1,3}#?(\d{1,4})(?:\s{0,2}(?:-|–|to|and)\s{0,2}(\d{1,4}))?", re.I)


class TextPart(NamedTuple):
    """A part of a text; ``step`` is the number of the step that it speaks of, None for none."""

    text: str
    step: int | None = None


def with_steps(text: str, steps: int) -> tuple[TextPart, ...]:
    """Split a text at its references to steps 1 to ``steps``."""
    parts: list[TextPart] = []
    at = 0
    for match in _STEPS.finditer(text):
        for group in (1, 2):
            number = int(match[group] or 0)
            if 1 <= number <= steps:
                start = match.start() if group == 1 else match.start(2)
                parts += [
                    TextPart(text[at:start]),
                    TextPart(text[start : match.end(group)], number),
                ]
                at = match.end(group)
    parts.append(TextPart(text[at:]))
    return tuple(part for part in parts if part.text)


_MOST_RECORD = 2 * 2**20


class PromptPart(NamedTuple):
    """A piece of a prompt: its ``text``, or the ``image`` of this hash, ``about`` in words."""

    text: str
    image: str = ""
    about: str = ""


class PromptMessage(NamedTuple):
    """One message of a prompt."""

    role: str
    parts: tuple[PromptPart, ...]


class ShownCall(NamedTuple):
    """A call with its prompt (None: it was not made again)."""

    number: int
    call: Call
    model: str
    same: bool | None
    hash: str
    prompt: tuple[PromptMessage, ...] | None


class ListedPlace(NamedTuple):
    """Addresses of the judgments before and after in the table that one came from, "" at either
    end, and of the table."""

    previous: str
    following: str
    table: str


class JudgmentDetail(NamedTuple):
    """``trajectory`` None: ``absent`` says why. ``not_shown`` are sentences on what the judge did
    not see."""

    run: OpenedRun
    place: int
    judgment: Judgment
    expert: bool | str | None
    model: str
    trajectory: Trajectory | None
    goal_pictures: tuple[GoalPicture, ...]
    absent: str
    reasoning: tuple[TextPart, ...]
    rebuilt: RebuiltPrompt
    calls: tuple[ShownCall, ...]
    not_shown: tuple[str, ...]
    others: TrajectoryVerdicts
    record: str
    listed: ListedPlace

    @property
    def last_page(self) -> str:
        """The address of a small picture of the trajectory's last page."""
        return last_page_link(self.judgment.key, self.run.name)

    def step_link(self, step: int) -> str:
        """Return the address of a step of the trajectory."""
        unseen = "{}-{}".format(*self.rebuilt.unseen) if self.rebuilt.unseen else None
        return trajectory_link(self.judgment.key, step=step, unseen=unseen, run=self.run.name)


def judgment_detail(
    access: TrajectoryAccess,
    workspace: Workspace,
    run: OpenedRun,
    place: int,
    query: Mapping[str, str],
) -> JudgmentDetail:
    """Put the page of a judgment together; ``query`` is that of the table one came from. Raises
    PageError 404 where there is none."""
    listed = _listed(workspace, run, place, query)
    view, manifest = run.view(), run.manifest
    judgment = view.judgments[place]
    opened, absent = _opened(access.library(workspace), judgment, run.data)
    trajectory = opened and opened.trajectory
    rebuilt = rebuild(manifest, judgment, trajectory, absent)
    steps = len(trajectory.steps) if trajectory else 0
    return JudgmentDetail(
        run=run,
        place=place,
        judgment=judgment,
        expert=view.record(place)["expert"],
        model=str(manifest.get("model") or ""),
        trajectory=trajectory,
        goal_pictures=goal_pictures(opened.trajectory, access.shelf, opened.root) if opened else (),
        absent=absent,
        reasoning=with_steps(judgment.reasoning, steps),
        rebuilt=rebuilt,
        calls=tuple(_calls(access, judgment, rebuilt, manifest)),
        not_shown=tuple(_not_shown(trajectory, rebuilt)) if trajectory else (),
        others=verdicts_on(workspace, judgment.key),
        record=_record(run, judgment),
        listed=listed,
    )


def _listed(
    workspace: Workspace, run: OpenedRun, place: int, query: Mapping[str, str]
) -> ListedPlace:
    chosen, sorting = asked_filter(query).chosen, parse_sorting(query.get("sort", "place"))
    view = workspace.view(run, agreeing=sorting.name == "agree")
    count = len(view.judgments)
    if place >= count:
        raise PageError(404, f"There is no judgment {place:,} in this run: it has {count:,}.")
    before = judgment_page(view, chosen, sorting, before=place, limit=1).rows
    after = judgment_page(view, chosen, sorting, after=place, limit=1).rows
    kept = {name: query[name] for name in ("f", "sort", "cols") if query.get(name)}
    previous, following = (
        address("run", run.name, "judgment", *rows, **kept) if rows else ""
        for rows in (before, after)
    )
    return ListedPlace(previous, following, address("run", run.name, "judgments", **kept))


def _opened(
    library: TrajectoryLibrary, judgment: Judgment, data: str
) -> tuple[OpenedTrajectory | None, str]:
    try:
        return library.open(judgment.key, data), ""
    except (TrajectoryAbsent, UserError) as absent:
        return None, str(absent)


def _calls(
    access: TrajectoryAccess,
    judgment: Judgment,
    rebuilt: RebuiltPrompt,
    manifest: dict[str, Any],
) -> Iterator[ShownCall]:
    again = {each.number: each for each in rebuilt.calls}
    for number, call in enumerate(judgment.calls, start=1):
        made = again.get(number)
        yield ShownCall(
            number=number,
            call=call,
            model=made.model if made else str(manifest.get("model") or ""),
            same=made.same if made else None,
            hash=made.hash if made else "",
            prompt=_prompt(access, made) if made else None,
        )


def _prompt(access: TrajectoryAccess, made: RebuiltCall) -> tuple[PromptMessage, ...]:
    return tuple(
        PromptMessage(message.role, tuple(_part(access, part) for part in message.parts))
        for message in made.messages
    )


def _part(access: TrajectoryAccess, part: Text | Picture) -> PromptPart:
    if isinstance(part, Text):
        return PromptPart(part.text)
    detail = f", detail {part.detail}" if part.detail else ""
    about = f"{part.width} × {part.height} pixels, {part.media_type}{detail}"
    try:
        return PromptPart("", access.shelf.put(ImageRef(data=part.data), None).sha256, about)
    except ImageUnreadable:
        return PromptPart("", "", about)


def _not_shown(trajectory: Trajectory, rebuilt: RebuiltPrompt) -> Iterator[str]:
    """Say what of the trajectory the judge was not shown, as far as that is known."""
    if rebuilt.unseen:
        first, last = rebuilt.unseen
        steps = f"step {first}" if first == last else f"steps {first} to {last}"
        yield f"The prompt left out {steps}: it was too long for the model."
    needs = rebuilt.needs
    if needs is None:
        return
    for name, shown in (("screenshot", needs.screenshots), ("accessibility tree", needs.trees)):
        yield from _hidden(
            trajectory,
            name,
            [step for each in shown for step in each.steps(_has(trajectory, name))],
        )
    yield from _answer(trajectory, needs)


def _has(trajectory: Trajectory, name: str) -> list[bool]:
    if name == "screenshot":
        return [step.observation.screenshot is not None for step in trajectory.steps]
    seen = [step.observation for step in trajectory.steps]
    return [bool(each.axtree or each.axtree_pruned) for each in seen]


def _hidden(trajectory: Trajectory, name: str, shown: list[int]) -> Iterator[str]:
    recorded = sum(_has(trajectory, name))
    count = len(set(shown))
    if recorded == 0:
        yield f"No {name} was recorded."
    elif count == 0:
        yield f"None of the {recorded} recorded {name}s was shown."
    elif count < recorded:
        steps = ", ".join(str(step + 1) for step in sorted(set(shown)))
        yield (
            f"Of {recorded} recorded {name}s only that of step {steps} was shown."
            if count == 1
            else (f"Of {recorded} recorded {name}s only those of steps {steps} were shown.")
        )


def _answer(trajectory: Trajectory, needs: Needs) -> Iterator[str]:
    if trajectory.answer and not needs.answer:
        yield "The agent's answer was not shown apart from its actions."
    if trajectory.goal_images and not needs.goal_images:
        yield "The pictures of the goal were not shown."


def _record(run: OpenedRun, judgment: Judgment) -> str:
    """Return what the judge kept beside its verdict, indented; "" where it kept nothing."""
    try:
        content = read_regular(record_path(run.folder, judgment), _MOST_RECORD)
        return json.dumps(json.loads(content), indent=1, ensure_ascii=False)
    except (OSError, UnsafeFile, ValueError, RecursionError):
        return ""


def routes(access: TrajectoryAccess) -> list[Route]:
    """Route the page of a judgment, which stands in a line of its run's file."""

    async def show(request: Request) -> Response:
        workspace = workspace_of(request)
        run, place = workspace.run(request.path_params["run"]), request.path_params["place"]
        if not re.fullmatch(r"[0-9]{1,12}", place):
            raise PageError(404, "A judgment's address ends with the number of its line, from 0.")
        query = dict(request.query_params)
        view = await in_thread(judgment_detail, access, workspace, run, int(place), query)
        if wants_json(request):
            return json_page(_as_json(view))
        return page(request, "judgments/detail.html", view=view)

    return [Route("/run/{run}/judgment/{place}", show)]


def _as_json(view: JudgmentDetail) -> dict[str, object]:
    rebuilt = view.rebuilt
    return {
        "judgment": view.judgment.model_dump(mode="json", exclude={"record"}),
        "prompt": {
            "outcome": rebuilt.outcome,
            "sentence": rebuilt.sentence,
            "unseen": rebuilt.unseen,
        },
        "calls": [
            {
                "stage": each.call.stage,
                "recorded": each.call.request,
                "rebuilt": each.hash,
                "same": each.same,
                "messages": each.prompt
                and [
                    {"role": m.role, "parts": [p.text or {"image": p.image} for p in m.parts]}
                    for m in each.prompt
                ],
            }
            for each in view.calls
        ],
        "not_shown": view.not_shown,
    }
