"""Requests beside those that a task asks for: what they did, no check of requests can tell.

A check with ``changing_urls`` stands for one change of the site. As many requests to these
addresses, with its method and response status, as there are such checks may be the ones that are
asked for; one more may have repeated, spoiled or undone what they did, so that the run is left
open. Where the state of the site is asked (``BackendCheck``), it decides instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from trajudge.rules.errors import InvalidValue
from trajudge.rules.verdict import Assertion, Outcome
from trajudge.rules.verified.dataset import NetworkCheck, Task
from trajudge.rules.verified.network.addresses import same_base
from trajudge.rules.verified.network.events import Event, Trace
from trajudge.rules.verified.network.run import Run, sites_of
from trajudge.rules.verified.network.sites import Hosts

_NAME = "network.others"


def other_changes(task: Task, trace: Trace | None, hosts: Hosts) -> Iterator[Assertion]:
    """Yield one unknown assertion where the site carried out more requests than are asked for."""
    checks = [check for check in task.network_checks if check.changing_urls]
    if trace is None or not checks:
        return
    run = Run(task, trace, sites_of(task, trace, hosts))
    try:
        sent = sum(any(_changes(run, one, event) for one in checks) for event in trace.relevant)
    except InvalidValue as error:
        yield Assertion(name=_NAME, outcome=Outcome.UNKNOWN, reason=str(error))
        return
    if (further := sent - len(checks)) > 0:
        yield Assertion(
            name=_NAME,
            outcome=Outcome.UNKNOWN,
            reason=f"{further} further request{'s' * (further > 1)} changed the site, and may have "
            "repeated or undone what was asked for: ask for its state",
        )


def _changes(run: Run, check: NetworkCheck, event: Event) -> bool:
    expected = check.expected
    if (event.method, event.status) != (expected.http_method.upper(), expected.response_status):
        return False
    place = run.address(event, base64_path=check.decode_base64_query)
    return place is not None and any(same_base(url, place) for url in check.changing_urls)
