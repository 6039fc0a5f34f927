"""The page of a trajectory: one step, the verdicts on it, and its pictures."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trajudge.app.evidence_files import ShownRequests, StateFact, network_trace, state_facts
from trajudge.app.images import (
    WIDTHS,
    ImageShelf,
    PixelDifference,
    UnknownImage,
    difference_picture,
    pixel_difference,
)
from trajudge.app.library import MOST_OPEN, OpenedTrajectory, TrajectoryAbsent, TrajectoryLibrary
from trajudge.app.steps import (
    GoalPicture,
    ScreenMarks,
    StepSummary,
    action_parts,
    goal_pictures,
    marks_of,
    neighbours,
    summarise,
)
from trajudge.app.trees import DifferenceView, FoldedTree, difference_view, folded_tree
from trajudge.app.web import PageError, address, in_thread, json_page, page, read_part, wants_json
from trajudge.app.workspace import CombinedRuns, Workspace, workspace_of
from trajudge.eval.store.filters import HEAD, truth
from trajudge.eval.store.table import KeyColumns, places_among
from trajudge.judges.model import Status
from trajudge.trajectories.model import Step, Trajectory, TrajectoryKey
from trajudge.util import jsonl as python_json
from trajudge.util.errors import ImageUnreadable, UserError
from trajudge.util.machine import kept_folder

_RANGE = re.compile(r"(\d{1,6})-(\d{1,6})")
_LONGEST = 200
TABS = {
    "action": "Action & reasoning",
    "tree": "Accessibility tree",
    "answer": "Answer",
    "metadata": "Metadata",
    "network": "Network",
    "state": "State",
}


class StepRequest(NamedTuple):
    """What an address asks for. ``step`` counts from 1; ``after`` shows the page that the action
    led to; ``diff`` compares the tree with the step before; ``unseen`` are the first and the last
    step that a judge was not shown; ``run`` is the run whose data it is looked for in first.
    ``pixels`` compares the screenshot with that after the action; ``zoom`` shows it in its own
    size."""

    step: int
    tab: str
    after: bool
    diff: bool
    search: str
    unseen: tuple[int, int] | None
    run: str
    pixels: bool
    zoom: bool


class TreeTab(NamedTuple):
    """The tree of the step (None: none was recorded), and its difference to the step before, or
    the ``sentence`` that says why there is none."""

    folded: FoldedTree | None
    difference: DifferenceView | None = None
    sentence: str = ""


class StepContent(NamedTuple):
    """``shown`` is the step whose screenshot is in the middle; ``step`` None where there is none;
    only the part of the chosen tab is read."""

    key: TrajectoryKey
    trajectory: Trajectory
    warnings: tuple[str, ...]
    steps: tuple[StepSummary, ...]
    request: StepRequest
    step: Step | None
    shown: StepSummary | None
    marks: ScreenMarks
    previous: int | None
    following: int | None
    tree: TreeTab | None
    network: ShownRequests | None
    facts: tuple[StateFact, ...]
    metadata: tuple[tuple[str, str], ...]
    link: Callable[..., str]
    pixels: PixelDifference | str | None = None
    goal_pictures: tuple[GoalPicture, ...] = ()


class Summaries:
    """The summaries of the trajectories that were looked at last; threads share it."""

    def __init__(self, shelf: ImageShelf) -> None:
        self._shelf = shelf
        self._made: OrderedDict[int, tuple[Trajectory, tuple[StepSummary, ...]]] = OrderedDict()
        self._lock = Lock()

    def of(self, opened: OpenedTrajectory) -> tuple[StepSummary, ...]:
        """Return the steps' summaries, their screenshots known to the shelf."""
        name = id(opened.trajectory)
        with self._lock:
            kept = self._made.get(name)
        if kept is not None and kept[0] is opened.trajectory:
            return kept[1]
        made = summarise(opened.trajectory, self._shelf, opened.root)
        with self._lock:
            self._made[name] = opened.trajectory, made
            while len(self._made) > MOST_OPEN:
                self._made.popitem(last=False)
        return made

    def content(self, opened: OpenedTrajectory, asked: StepRequest) -> StepContent:
        """Put together what one step's page shows."""
        content = step_content(opened, self.of(opened), asked)._replace(
            goal_pictures=goal_pictures(opened.trajectory, self._shelf, opened.root)
        )
        if not asked.pixels or content.following is None:
            return content
        before, after = content.steps[content.request.step - 1 : content.request.step + 1]
        if before.image is None or after.image is None:
            told = "The pictures cannot be compared: one of them is not there."
            return content._replace(pixels=told)
        return content._replace(pixels=pixel_difference(self._shelf, before.image, after.image))


def step_content(
    opened: OpenedTrajectory, steps: tuple[StepSummary, ...], asked: StepRequest
) -> StepContent:
    """Put together what one step's page shows; a step out of range is the nearest."""
    trajectory = opened.trajectory
    number = min(max(1, asked.step), len(steps))
    asked = asked._replace(step=number)
    step = trajectory.steps[number - 1] if steps else None
    previous, following = neighbours(steps, number) if steps else (None, None)
    shown, marks = None, ScreenMarks((), ())
    if step is not None:
        shown = steps[number] if asked.after and following else steps[number - 1]
        if shown.number == number:
            marks = marks_of(step, shown.image)
    folder, root = opened.folder, opened.root
    return StepContent(
        key=trajectory.key,
        trajectory=trajectory,
        warnings=_warnings(trajectory),
        steps=steps,
        request=asked,
        step=step,
        shown=shown,
        marks=marks,
        previous=previous,
        following=following,
        tree=_tree(trajectory, number, asked) if asked.tab == "tree" else None,
        network=network_trace(trajectory, folder, root)
        if asked.tab == "network" and folder and root
        else None,
        facts=state_facts(trajectory.key, folder, root)
        if asked.tab == "state" and folder and root
        else (),
        metadata=tuple(_metadata(trajectory)) if asked.tab == "metadata" else (),
        link=step_linker(("t", *trajectory.key.order), asked),
    )


def _warnings(trajectory: Trajectory) -> tuple[str, ...]:
    warnings = trajectory.metadata.get("warnings")
    return tuple(map(str, warnings)) if isinstance(warnings, list) else ()


def _tree(trajectory: Trajectory, number: int, asked: StepRequest) -> TreeTab:
    text = _text(trajectory, number)
    if text is None:
        return TreeTab(None)
    if not asked.diff:
        parts = action_parts(trajectory.steps[number - 1].action)
        targets = frozenset(part.target for part in parts if part.target is not None)
        return TreeTab(folded_tree(text, targets, asked.search))
    before = _text(trajectory, number - 1) if number > 1 else None
    if before is None:
        sentence = (
            "The first step has no step before it."
            if number == 1
            else "No tree of the step before is recorded."
        )
        return TreeTab(folded_tree(text, frozenset(), asked.search), sentence=sentence)
    return TreeTab(None, difference_view(before, text))


def _text(trajectory: Trajectory, number: int) -> str | None:
    if not 1 <= number <= len(trajectory.steps):
        return None
    seen = trajectory.steps[number - 1].observation
    return seen.axtree or seen.axtree_pruned or None


def _metadata(trajectory: Trajectory) -> Iterator[tuple[str, str]]:
    key = trajectory.key
    yield "benchmark", key.benchmark
    yield "agent", key.agent
    yield "task", trajectory.raw_task_id
    yield "attempt", str(key.attempt)
    reward = trajectory.official_reward
    yield "official reward", "none" if reward is None else f"{reward:g}"
    yield "terminated", _said(trajectory.terminated)
    yield "truncated", _said(trajectory.truncated)
    for name, number in trajectory.telemetry.items():
        yield name, f"{number:g}"
    for name, value in trajectory.metadata.items():
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            yield name, "\n".join(map(str, value)) or "none"
        else:
            yield name, value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    return python_json.encode(value, default=str).decode()


def _said(value: bool | None) -> str:
    return "not recorded" if value is None else "yes" if value else "no"


def step_request(query: Mapping[str, str]) -> StepRequest:
    """Read what an address asks for; what is not understood has its default."""
    step, tab = query.get("step", "1"), query.get("tab", "action")
    unseen = _RANGE.fullmatch(query.get("unseen", ""))
    return StepRequest(
        step=int(step) if re.fullmatch(r"[0-9]{1,6}", step) else 1,
        tab=tab if tab in TABS else "action",
        after=query.get("view") == "after",
        diff=query.get("diff") == "1",
        search=query.get("q", "")[:_LONGEST],
        unseen=(int(unseen[1]), int(unseen[2])) if unseen else None,
        run=query.get("run", "")[:_LONGEST],
        pixels=query.get("view") == "pixels",
        zoom=query.get("zoom") == "1",
    )


def step_linker(path: tuple[str | int, ...], asked: StepRequest) -> Callable[..., str]:
    """Make addresses of the page at ``path`` with something changed."""

    def link(**changes: Any) -> str:
        other = asked._replace(**changes)
        return address(
            *path,
            step=other.step,
            tab=other.tab if other.tab != "action" else None,
            view="pixels" if other.pixels else "after" if other.after else None,
            zoom="1" if other.zoom else None,
            diff="1" if other.diff and other.tab == "tree" else None,
            q=other.search if other.tab == "tree" else None,
            unseen="{}-{}".format(*other.unseen) if other.unseen else None,
            run=other.run,
        )

    return link


class TrajectoryAccess:
    """The trajectories of a workspace; rooms that show them share it."""

    def __init__(self, shelf: ImageShelf | None = None) -> None:
        self.shelf = shelf or ImageShelf(kept_folder("thumbnails"))
        self.summaries = Summaries(self.shelf)
        self._library: tuple[Workspace, TrajectoryLibrary] | None = None
        self._lock = Lock()

    def last_page(self, workspace: Workspace, key: TrajectoryKey, run: str = "") -> bytes | None:
        """Return the last screenshot of a trajectory as a thumbnail; None where there is none that
        can be shown."""
        try:
            opened = self.library(workspace).open(key, data_of(workspace, run))
            shots = [step.observation.screenshot for step in opened.trajectory.steps]
            last = next((shot for shot in reversed(shots) if shot is not None), None)
            if last is None:
                return None
            return self.shelf.thumbnail(self.shelf.put(last, opened.root).sha256, WIDTHS[0])
        except (TrajectoryAbsent, ImageUnreadable, UnknownImage, UserError):
            return None

    def library(self, workspace: Workspace) -> TrajectoryLibrary:
        """Return the library of what the application was started with. Raises UserError for a run
        whose settings cannot be read."""
        with self._lock:
            if self._library is None or self._library[0] is not workspace:
                named = [run.data for run in workspace.runs.values()]
                recorded = tuple(dict.fromkeys(spec for spec in named if spec))
                self._library = workspace, TrajectoryLibrary(workspace.data, recorded)
            return self._library[1]


_MOST = 200


class SaidVerdict(NamedTuple):
    """``who`` says it; ``success`` is "unsure" of an expert who leaves it open, None for none;
    ``link`` leads to the judgment, "" where there is none."""

    who: str
    kind: str
    success: bool | str | None
    score: float | None = None
    status: str = ""
    link: str = ""
    head: str = ""


class TrajectoryVerdicts(NamedTuple):
    """What is said of a trajectory; ``problems`` say which runs could not be read, and why."""

    said: tuple[SaidVerdict, ...] = ()
    problems: tuple[str, ...] = ()


def verdicts_on(workspace: Workspace, key: TrajectoryKey) -> TrajectoryVerdicts:
    """Collect the verdicts of all runs that can be read: one that cannot takes none from the
    others."""
    runs, problems = [], []
    for name, run in workspace.runs.items():
        try:
            run.view()
            runs.append(name)
        except UserError as error:
            problems.append(str(error))
    if not runs:
        return TrajectoryVerdicts((), tuple(problems))
    combined = workspace.combined(runs)
    said = (*_experts(workspace, runs, key), *_rule(combined, key), *_judges(combined, key))
    return TrajectoryVerdicts(said, tuple(problems))


def _experts(workspace: Workspace, runs: list[str], key: TrajectoryKey) -> list[SaidVerdict]:
    labels = {
        (label.role, label.annotator): label
        for name in runs
        for label in workspace.runs[name].view().opinions(key)
    }
    return [
        SaidVerdict(who, role, "unsure" if label.success is None else label.success)
        for (role, who), label in sorted(labels.items())
    ]


def _rule(combined: CombinedRuns, key: TrajectoryKey) -> Iterator[SaidVerdict]:
    view = combined.view
    place = int(places_among(KeyColumns.of([key]), view.keys)[0])
    if place >= 0 and not np.isnan(view.reward[place]):
        reward = float(view.reward[place])
        yield SaidVerdict("official reward", "rule", truth(view.rule[place]), score=reward)


def _judges(combined: CombinedRuns, key: TrajectoryKey) -> list[SaidVerdict]:
    rows = combined.view.of_trajectory(key)[:_MOST].tolist()
    judgments = [(row, combined.view.judgments[row]) for row in rows]
    judgments.sort(key=lambda one: (one[1].judge, combined.place(one[0])[0], one[1].sample))
    return [
        SaidVerdict(
            who=judgment.judge + (f", sample {judgment.sample}" if judgment.sample else ""),
            kind="judge",
            success=judgment.success,
            score=judgment.score,
            status="" if judgment.status is Status.OK else str(judgment.status),
            link=address("run", run, "judgment", place),
            head=(judgment.reasoning or judgment.detail)[:HEAD],
        )
        for row, judgment in judgments
        for run, place in [combined.place(row)]
    ]


_HASH = re.compile(r"[0-9a-f]{64}")
_FOR_EVER = "private, immutable, max-age=31536000"
_AN_HOUR = 3_600  # seconds: the last page of a trajectory that is still running changes
_NO_PICTURE = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 96 60">'
    b'<path d="M1 1h94v58h-94z" fill="none" stroke="#888" stroke-dasharray="4 3"/></svg>'
)


class _Anything(StringConvertor):
    """The rest of a path, slashes and ends of lines included."""

    regex = "(?s:.*)"


register_url_convertor("anything", _Anything())


def routes(access: TrajectoryAccess) -> list[Route]:
    """Route the page of a trajectory, and images by the hash of their content."""

    async def show(request: Request) -> Response:
        key, asked = key_of(request), step_request(request.query_params)
        tab = request.query_params.get("tab", "action")
        if tab not in TABS:
            raise PageError(404, f"There is no tab {tab[:40]!r}: there are {', '.join(TABS)}.")
        workspace = workspace_of(request)
        content = await in_thread(read_content, access, workspace, key, asked)
        if wants_json(request):
            return json_page(_as_json(content))
        verdicts = await in_thread(verdicts_on, workspace, key)
        return page(request, "trajectories/show.html", view=content, tabs=TABS, verdicts=verdicts)

    async def last(request: Request) -> Response:
        return await in_thread(_last_page, access, request)

    async def image(request: Request) -> Response:
        return await in_thread(_image, access, request)

    async def changes(request: Request) -> Response:
        return await in_thread(_changes, access, request)

    return [
        Route("/t/{rest:anything}", show),
        Route("/last/{rest:anything}", last),
        Route("/image/{digest}", image),
        Route("/image/{digest}/changes/{after}", changes),
    ]


def read_content(
    access: TrajectoryAccess, workspace: Workspace, key: TrajectoryKey, asked: StepRequest
) -> StepContent:
    """Open a trajectory and put its page together. Raises PageError 404 for an unknown one."""
    try:
        opened = access.library(workspace).open(key, data_of(workspace, asked.run))
    except TrajectoryAbsent as absent:
        raise PageError(404, str(absent)) from absent
    return access.summaries.content(opened, asked)


def data_of(workspace: Workspace, run: str) -> str:
    """Return the data that a run names, "" for a run that is not there."""
    return workspace.runs[run].data if run in workspace.runs else ""


def key_of(request: Request) -> TrajectoryKey:
    """Read the key in ``/t/BENCHMARK/AGENT/TASK/ATTEMPT``, whose parts may hold quoted slashes.
    Raises PageError 404."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    parts = [read_part(part) for part in raw.split(b"?")[0].decode("latin-1").split("/")[2:]]
    if len(parts) == 4 and re.fullmatch(r"\d{1,9}", parts[3]):
        try:
            return TrajectoryKey(
                benchmark=parts[0], agent=parts[1], task_id=parts[2], attempt=int(parts[3])
            )
        except ValidationError:
            pass
    raise PageError(404, "A trajectory's address is /t/BENCHMARK/AGENT/TASK/ATTEMPT.")


def _last_page(access: TrajectoryAccess, request: Request) -> Response:
    """Answer with a small picture of a trajectory's last page, or with one that says that there is
    none: a table shows it next to every row."""
    run = request.query_params.get("run", "")
    picture = access.last_page(workspace_of(request), key_of(request), run)
    headers = {"Cache-Control": f"private, max-age={_AN_HOUR}"}
    if picture is None:
        return Response(_NO_PICTURE, media_type="image/svg+xml", headers=headers)
    return Response(picture, media_type="image/webp", headers=headers)


def _image(access: TrajectoryAccess, request: Request) -> Response:
    digest, width = request.path_params["digest"], request.query_params.get("w")
    if not _HASH.fullmatch(digest):
        raise PageError(404, "An image's address is /image/ and 64 hexadecimal digits.")
    if width is not None and width not in map(str, WIDTHS):
        raise PageError(404, f"Images are made {' or '.join(map(str, WIDTHS))} pixels wide.")
    tag = f'"{digest}-{width}"' if width else f'"{digest}"'
    headers = {"Cache-Control": _FOR_EVER, "ETag": tag}
    if request.headers.get("if-none-match") == tag and access.shelf.knows(digest):
        return Response(status_code=304, headers=headers)
    try:
        if width is None:
            whole = access.shelf.original(digest)
            content, kind = whole.data, whole.media_type
        else:
            content, kind = access.shelf.thumbnail(digest, int(width)), "image/webp"
    except UnknownImage as unknown:
        sentence = "No page that was opened shows this image: open its trajectory first."
        raise PageError(404, sentence) from unknown
    except ImageUnreadable as error:
        raise PageError(404, f"The image cannot be shown: {error}.") from error
    return Response(content, media_type=kind, headers=headers)


def _changes(access: TrajectoryAccess, request: Request) -> Response:
    digests = request.path_params["digest"], request.path_params["after"]
    if not all(map(_HASH.fullmatch, digests)):
        raise PageError(404, "Pictures are compared at /image/HASH/changes/HASH.")
    tag = '"{}-{}"'.format(*digests)
    headers = {"Cache-Control": _FOR_EVER, "ETag": tag}
    if request.headers.get("if-none-match") == tag and all(map(access.shelf.knows, digests)):
        return Response(status_code=304, headers=headers)
    try:
        content = difference_picture(access.shelf, *digests)
    except UnknownImage as unknown:
        sentence = "No page that was opened shows these images: open their trajectory first."
        raise PageError(404, sentence) from unknown
    except ImageUnreadable as error:
        raise PageError(404, f"The images cannot be compared: {error}.") from error
    return Response(content, media_type="image/webp", headers=headers)


def _as_json(content: StepContent) -> dict[str, object]:
    trajectory, step = content.trajectory, content.step
    return {
        "key": vars(content.key),
        "goal": trajectory.goal,
        "goal_images": [each.image and each.image.sha256 for each in content.goal_pictures],
        "answer": trajectory.answer,
        "steps": [
            {**summary._asdict(), "image": summary.image.sha256 if summary.image else None}
            for summary in content.steps
        ],
        "step": content.request.step,
        "url": step.observation.url if step else None,
        "action": step.action if step else None,
        "reasoning": step.reasoning if step else None,
        "marks": [mark._asdict() for mark in content.marks.marks],
        "sentences": content.marks.sentences,
    }
