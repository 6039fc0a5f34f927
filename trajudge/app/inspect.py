"""``trajudge inspect RUN…`` and ``trajudge label QUEUE``: pages in a browser."""

from __future__ import annotations

from importlib.util import find_spec

from trajudge.annotations import labels_by
from trajudge.annotations.labelling.database import LabelStore
from trajudge.annotations.labelling.people import people, person_by_token
from trajudge.app.server.settings import InspectConfig, ServeQueueConfig
from trajudge.eval.audit.audit import read_rule_texts
from trajudge.util.commands import OK
from trajudge.util.errors import MissingExtra, UserError


def check_extra(command: str) -> None:
    """Refuse to go on without the extra. Raises MissingExtra."""
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtra(package, "app", command)


def inspect_runs(config: InspectConfig) -> int:
    """Serve runs until Ctrl-C; return the exit code."""
    if not config.runs:
        raise UserError("nothing to look at: give the folder of a run")
    check_extra("trajudge inspect")
    from trajudge.app.rooms import inspect_rooms  # noqa: PLC0415 - of the extra
    from trajudge.app.server.inputs import check_annotations, check_data, check_queues  # noqa: PLC0415
    from trajudge.app.server.serve import serve  # noqa: PLC0415
    from trajudge.app.server.workspace import open_workspace  # noqa: PLC0415

    check_data(config.data)
    annotations = labels_by(config.annotations, config.labels_by)
    if annotations is not None:
        check_annotations(annotations)
    if "queues" in config.model_fields_set:
        check_queues(config.queues)
    workspace = open_workspace(config.runs, config.data, annotations, config.queues)
    serve(workspace, inspect_rooms(), config.server)
    return OK


def serve_queue(config: ServeQueueConfig) -> int:
    """Serve a queue to its annotators until Ctrl-C; return the exit code."""
    check_extra("trajudge label")
    from trajudge.app.labelling.routes import label_room  # noqa: PLC0415 - of the extra
    from trajudge.app.server.inputs import check_data  # noqa: PLC0415
    from trajudge.app.server.serve import serve  # noqa: PLC0415
    from trajudge.app.server.workspace import Workspace  # noqa: PLC0415

    if config.auth and config.server.no_token:
        raise UserError("--auth and --no-token exclude each other: give one of them")
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
    serve(workspace, [label_room(store, rules)], config.server, name_of if config.auth else None)
    store.close()
    return OK
