"""Queues to label: made from ticked rows of a run's table, and listed with what is done of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from trajudge.annotations.queue import FILE, QUESTIONS, LabelQueue, Progress
from trajudge.app.pages.filtering import asked_filter
from trajudge.app.server.pages import form_fields, page
from trajudge.app.server.problems import PageError
from trajudge.app.server.threads import in_thread
from trajudge.app.server.workspace import OpenedRun, workspace_of
from trajudge.eval.labelling.build import picked_keys, plan_picked, write_queue
from trajudge.eval.labelling.settings import BuildConfig
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import UserError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_MOST_LISTED = 50
_MOST_PLACES = 1_000


class ListedQueue(NamedTuple):
    """A queue in the folder of queues."""

    folder: Path
    counts: Progress

    @property
    def command(self) -> str:
        """The folder as a shell takes it."""
        return shlex.quote(str(self.folder))


class NewQueue(NamedTuple):
    """What a queue is asked to be made of: ``places`` are lines of the run's file; none: all that
    the filter ``text`` keeps."""

    run: OpenedRun
    places: Sequence[int]
    text: str
    keys: Sequence[TrajectoryKey]


async def new_queue(request: Request) -> Response:
    """Ask how the ticked rows are to be labelled; make the queue of the form that is sent."""
    run = workspace_of(request).run(request.path_params["run"])
    if request.method == "GET":
        query = request.query_params
        asked = await in_thread(_asked, run, query.getlist("place"), query)
        name = await in_thread(_free_name, workspace_of(request).queues, run.name)
        return _form(request, asked, {"name": name})
    fields = await form_fields(request)
    asked = await in_thread(_asked, run, fields.get("places", "").split(), fields)
    try:
        made = await in_thread(_make, request, asked, fields)
    except UserError as error:
        return _form(request, asked, fields, str(error))
    return page(
        request,
        "runs/queue_made.html",
        run=run,
        folder=made,
        command=shlex.quote(str(made)),
        count=len(asked.keys),
    )


def _form(
    request: Request, asked: NewQueue, fields: Mapping[str, str], problem: str = ""
) -> Response:
    return page(
        request,
        "runs/queue.html",
        422 if problem else 200,
        asked=asked,
        fields=fields,
        queues=workspace_of(request).queues.resolve(),
        problem=problem,
    )


def _asked(run: OpenedRun, places: Sequence[str], values: Mapping[str, str]) -> NewQueue:
    """Read what the table or the form sent. Raises PageError for a filter that cannot be read,
    UserError as ``picked_keys`` does."""
    asked = asked_filter(values)
    if asked.problem:
        raise PageError(422, asked.problem)
    lines = [int(one) for one in places if one.isdecimal() and len(one) < 16][:_MOST_PLACES]
    return NewQueue(run, lines, asked.text, picked_keys(run.view(), lines, asked.chosen))


def _make(request: Request, asked: NewQueue, fields: Mapping[str, str]) -> Path:
    """Write the queue; return its folder. Raises UserError for a name that cannot be used."""
    workspace, name = workspace_of(request), fields.get("name", "").strip()
    if not _NAME.fullmatch(name):
        raise UserError("Give the queue a name of letters, digits, hyphens and dots, up to 64.")
    folder = workspace.queues / name
    if folder.exists():
        raise UserError(f"There is a queue {name} already: give another name.")
    whole = fields.get("questions") != "success"
    config = BuildConfig(
        runs=(asked.run.folder,),
        filter="" if asked.places else asked.text,
        data=workspace.data or (asked.run.data,),
        double=1.0 if fields.get("double") else 0.0,
        questions=QUESTIONS if whole else QUESTIONS[:1],
        informed=bool(fields.get("informed")),
        out=folder,
    )
    write_queue(plan_picked(asked.run.folder, asked.keys, config), config)
    return folder.resolve()


def _free_name(folder: Path, run: str) -> str:
    """Propose a name that no queue has."""
    number = 1
    while (folder / f"{run[:50]}-{number}").exists():
        number += 1
    return f"{run[:50]}-{number}"


def listed_queues(folder: Path) -> list[ListedQueue]:
    """List the queues in a folder with their progress, those that cannot be read left out."""
    listed = []
    for file in sorted(folder.glob(f"*/{FILE}"))[:_MOST_LISTED]:
        with suppress(UserError):
            queue = LabelQueue(file.parent)
            listed.append(ListedQueue(file.parent.resolve(), queue.progress()))
            queue.close()
    return listed
