"""Addresses of trajectories and their pictures."""

from __future__ import annotations

import re

from pydantic import ValidationError
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trajudge.app.server.links import read_part
from trajudge.app.server.pages import json_page, page, wants_json
from trajudge.app.server.problems import PageError
from trajudge.app.server.threads import in_thread
from trajudge.app.server.workspace import Workspace, workspace_of
from trajudge.app.trajectories.access import TrajectoryAccess
from trajudge.app.trajectories.content import (
    TABS,
    StepContent,
    StepRequest,
    step_request,
)
from trajudge.app.trajectories.images import WIDTHS, UnknownImage
from trajudge.app.trajectories.library import TrajectoryAbsent
from trajudge.app.trajectories.pixels import difference_picture
from trajudge.app.trajectories.verdicts import verdicts_on
from trajudge.trajectories.model import TrajectoryKey
from trajudge.util.errors import ImageUnreadable

_HASH = re.compile(r"[0-9a-f]{64}")
_FOR_EVER = "private, immutable, max-age=31536000"


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

    async def image(request: Request) -> Response:
        return await in_thread(_image, access, request)

    async def changes(request: Request) -> Response:
        return await in_thread(_changes, access, request)

    return [
        Route("/t/{rest:anything}", show),
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
