"""``trajudge inspect`` and ``trajudge label serve``: pages in a browser, served on this machine."""

from __future__ import annotations

from importlib.util import find_spec

from trajudge.annotations.labelling.database import LabelStore
from trajudge.annotations.labelling.people import people, person_by_token
from trajudge.app.settings import InspectConfig, LabelServeConfig
from trajudge.eval.audit.audit import read_rule_texts
from trajudge.util.commands import OK
from trajudge.util.errors import MissingExtra, UserError


def _check_extra(command: str) -> None:
    """Raise MissingExtra without the packages of the extra."""
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtra(package, "app", command)


def inspect(config: InspectConfig) -> int:
    """Serve runs until Ctrl-C. Raises UserError."""
    if not config.runs:
        raise UserError("nothing to look at: give the folder of a run")
    _check_extra("trajudge inspect")
    from trajudge.app.rooms import inspect_rooms  # noqa: PLC0415 - imports the extra
    from trajudge.app.server.inputs import check_annotations, check_data, check_queues  # noqa: PLC0415
    from trajudge.app.server.serve import serve  # noqa: PLC0415
    from trajudge.app.server.workspace import open_workspace  # noqa: PLC0415

    check_data(config.data)
    if config.annotations is not None:
        check_annotations(config.annotations)
    if "queues" in config.model_fields_set:
        check_queues(config.queues)
    workspace = open_workspace(config.runs, config.data, config.annotations, config.queues)
    serve(workspace, inspect_rooms(), config.server)
    return OK


def label(config: LabelServeConfig) -> int:
    """Serve a queue until Ctrl-C. Raises UserError."""
    _check_extra("trajudge label")
    from trajudge.app.labelling.routes import label_room  # noqa: PLC0415 - imports the extra
    from trajudge.app.server.inputs import check_data  # noqa: PLC0415
    from trajudge.app.server.serve import serve  # noqa: PLC0415
    from trajudge.app.server.workspace import Workspace  # noqa: PLC0415

    check_data(config.data)
    rules = read_rule_texts(config.tasks) if config.tasks else {}
    store = LabelStore(config.queue)
    if config.auth and not people(store):
        raise UserError(
            f"{config.queue}: nobody could sign in: add people with"
            f"  trajudge label people {config.queue} --add NAME"
        )

    def name_of(token: str) -> str | None:
        person = person_by_token(store, token)
        return None if person is None else person.name

    workspace = Workspace({}, config.data or tuple(store.settings.data))
    room = [label_room(store, rules)]
    serve(workspace, room, config.server, name_of if config.auth else None)
    store.close()
    return OK
