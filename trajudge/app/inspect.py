"""``trajudge inspect`` and ``trajudge label serve``: pages in a browser, served on this machine."""

from __future__ import annotations

import sys

from trajudge.annotations.queue import LabelQueue
from trajudge.app.audit_pages import read_rule_texts
from trajudge.app.compare_page import routes as compare_routes
from trajudge.app.judgment_page import routes as judgment_routes
from trajudge.app.judgment_table import routes as table_routes
from trajudge.app.label_pages import label_room
from trajudge.app.run_list import list_route
from trajudge.app.run_page import overview_route
from trajudge.app.serving import Room, check_annotations, check_data, check_queues, serve
from trajudge.app.settings import InspectConfig, LabelServeConfig
from trajudge.app.trajectory_page import TrajectoryAccess
from trajudge.app.trajectory_page import routes as trajectory_routes
from trajudge.app.web import NavLink
from trajudge.app.workspace import Workspace, open_workspace
from trajudge.eval.store.inputs import missing_data
from trajudge.util.commands import OK
from trajudge.util.errors import UserError
from trajudge.util.terminal import one_line


def inspect_rooms() -> list[Room]:
    """Return all rooms, in the order of the navigation."""
    access = TrajectoryAccess()
    return [
        Room([list_route(), overview_route(), *table_routes()], [NavLink("/", "Runs", "g i")]),
        Room(trajectory_routes(access)),
        Room(judgment_routes(access)),
        Room(compare_routes(), [NavLink("/compare", "Compare", "g c")]),
    ]


def inspect(config: InspectConfig) -> int:
    """Serve runs until Ctrl-C. Raises UserError."""
    if not config.runs:
        raise UserError("nothing to look at: give the folder of a run")
    check_data(config.data)
    if config.annotations is not None:
        check_annotations(config.annotations)
    if "queues" in config.model_fields_set:
        check_queues(config.queues)
    workspace = open_workspace(config.runs, config.data, config.annotations, config.queues)
    for run in workspace.runs.values() if not config.data else ():
        if missing := missing_data(run.folder):
            sys.stderr.write(f"warning: {one_line(missing)}\n")
    serve(workspace, inspect_rooms(), config.server)
    return OK


def label(config: LabelServeConfig) -> int:
    """Serve a queue until Ctrl-C. Raises UserError."""
    check_data(config.data)
    rules = read_rule_texts(config.tasks) if config.tasks else {}
    queue = LabelQueue(config.queue)
    if config.auth and not queue.people():
        raise UserError(
            f"{config.queue}: nobody could sign in: add people with"
            f"  trajudge label people {config.queue} --add NAME"
        )

    def name_of(token: str) -> str | None:
        person = queue.person_by_token(token)
        return None if person is None else person.name

    workspace = Workspace({}, config.data or tuple(queue.settings.data))
    room = [label_room(queue, rules)]
    serve(workspace, room, config.server, name_of if config.auth else None)
    queue.close()
    return OK
