"""Which requests do the task: those with which the oracle's walk changed the state.

As in the published tasks, a check names method, address and the fields that matter. Fields that the
form carries without anybody's doing are left out (an agent may leave a note), unless the state is
expected to hold them. The published tasks hold the last such request to a check. Here that is so
where a later one would overwrite what the task asks for; where each request does something of its
own (one more order, another ticket closed) any of them may meet the check. What a further request
did no check of requests can tell: a run that changed something else besides is left open
(``changing_urls``), unless the state is asked.
"""

from __future__ import annotations

from typing import Any

from trajudge.environments.model.page import Input
from trajudge.environments.specifications.oracle import OracleRun, SentForm
from trajudge.rules.verified.tasks import ExpectedEvent, NetworkCheck, Schema, placeholder

SITE = "homepage"
"""The name under which an application goes: the released package knows seven names of sites, and
this is the one to which it gives no meaning of its own."""

DONE = 303  # what the server answers to a form that it has carried out
_CHANGES = f"^{placeholder(SITE)}/do/.+$"  # every operation; a banner is dismissed elsewhere
_TYPES: dict[Input, Schema] = {
    "number": {"type": "number"},
    "date": {"type": "string", "format": "date"},
}


def network_checks(run: OracleRun) -> tuple[NetworkCheck, ...]:
    """Return one check for every form that changed the state, in their order."""
    return tuple(_check(run, form) for form in run.forms)


def _overwritten(run: OracleRun, form: SentForm) -> bool:
    """Tell whether a later form of the same operation may undo what this one did."""
    expected = {one.table for one in run.scenario.expect if one.kind == "changed"}
    return form.repeatable and bool(form.changed & expected)


def _check(run: OracleRun, form: SentForm) -> NetworkCheck:
    wanted = {column for expect in run.scenario.expect for column in expect.values}
    fields: dict[str, Any] = {
        name: value
        for name, value in form.fields.items()
        if name in form.chosen or (name in wanted and value)
    }
    types = {name: _TYPES[form.inputs[name]] for name in fields if form.inputs.get(name) in _TYPES}
    schema = {"type": "object", "properties": types} if types else None
    event = ExpectedEvent(
        url=f"{placeholder(SITE)}/do/{form.operation}",
        http_method="POST",
        response_status=DONE,
        post_data=fields or None,
    )
    return NetworkCheck(
        expected=event,
        last_event_only=_overwritten(run, form),
        post_data_schema=schema,
        changing_urls=(_CHANGES,),
    )
