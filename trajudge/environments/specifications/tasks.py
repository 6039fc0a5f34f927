"""A case's task in WebArena Verified's form, alone and as a file of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

import orjson

from trajudge.environments.apps import load_app
from trajudge.environments.model.case import Case
from trajudge.environments.model.spec import Bound
from trajudge.environments.specifications.answers import answer_check
from trajudge.environments.specifications.oracle import OracleRun, oracle_run
from trajudge.environments.specifications.requests import SITE, network_checks
from trajudge.environments.specifications.states import state_checks
from trajudge.rules.verified.tasks import Check, Task, placeholder, published_record, task_record
from trajudge.util.files import save_bytes


def specification(case: Case) -> Task:
    """Return the task of a case: the answer, the requests and the state that it asks for."""
    return written_task(case, oracle_run(case.config))


def written_task(case: Case, run: OracleRun, codes: Sequence[str] = ()) -> Task:
    """Return the task of a case from its oracle's walk. ``codes`` are the operation codes that a
    run may report (``codes.known_codes``); without them their shape is asked for."""
    config = case.config
    checks: list[Check] = [answer_check(run, codes), *network_checks(run)]
    checks += state_checks(load_app(config.app), run)
    return Task(
        task_id=_number(config.id),
        intent_template_id=_number(f"{config.app} {config.scenario}"),
        sites=(SITE,),
        start_urls=(f"{placeholder(SITE)}/{run.start}",),
        intent=case.goal,
        intent_template=run.scenario.goals[0],
        instantiation_dict={"case": config.id, **_slots(run)},
        eval=tuple(checks),
    )


def _number(name: str) -> int:
    """Return a whole number below 2^31 for a name, the same in every process."""
    return int.from_bytes(sha256(name.encode()).digest()[:4], "big") >> 1


def _slots(run: OracleRun) -> Bound:
    """Return the slots as values of JSON: of a row its key."""
    return {
        name: next(iter(value.values())) if isinstance(value, dict) else value
        for name, value in run.bound.items()
    }


def write_tasks(path: Path, cases: Iterable[Case], *, published: bool = False) -> None:
    """Write the tasks of cases as one JSON list. They hold the answers: keep them from the agents.
    Raises UserError if the file cannot be written."""
    form = published_record if published else task_record
    records = [form(specification(case)) for case in cases]
    save_bytes(path, orjson.dumps(records, option=orjson.OPT_INDENT_2) + b"\n")
