"""Holding a run's requests to a specification, in the sound mode.

Which requests a check is about: in a task that asks to navigate, what the tabs showed last (see
``final_page``; where the task names two pages, the last two, of two tabs first); otherwise the
requests with the method, base address and referring page that it names, of those the last (any of
them for a check that leaves further changes open, see ``others``). Checks that name the same
requests (two members are invited one after the other) are about the last of them together and are
paired with them one to one, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from trajudge.rules.errors import InvalidValue
from trajudge.rules.values.matching import match_unordered
from trajudge.rules.verdict import Assertion, Outcome, conjunction, shown
from trajudge.rules.verified.dataset import NetworkCheck, Task, placeholder, placeholders
from trajudge.rules.verified.network.comparisons import compared
from trajudge.rules.verified.network.events import Event, Trace
from trajudge.rules.verified.network.final_page import (
    final_events,
    fitting,
    shown_by,
    wanted_view,
)
from trajudge.rules.verified.network.run import Run, sites_of, unlocated
from trajudge.rules.verified.network.sites import Hosts, origin

_SHOWN_EVENTS = 5


def network_assertions(
    task: Task, trace: Trace | None, hosts: Hosts, *, activity: bool = False
) -> list[Assertion]:
    """Return what the task's checks say of the trace, in the order of the checks.

    Without a trace every check is unknown. With ``activity`` the run must have reached at least one
    page of the task's sites. Remembered by the trace, for other answers to the task. Raises
    nothing.
    """
    if trace is None:
        count = len(task.network_checks) + activity
        reason = "the run recorded no trace"
        return [_unknown(f"network.{index + 1}", reason) for index in range(count)]
    # The task is kept beside its assertions, so that no other task can have its identity.
    known = trace.memory.get(("network", id(task), activity))
    if known is None or known[1] != hosts:
        known = (task, hosts, _assertions(task, trace, hosts, activity=activity))
        trace.memory["network", id(task), activity] = known
    return list(known[2])


def _assertions(task: Task, trace: Trace, hosts: Hosts, *, activity: bool) -> list[Assertion]:
    checks = task.network_checks
    run = Run(task, trace, sites_of(task, trace, hosts))
    made = [_activity(run)] if activity else []
    if not checks:
        return made
    found: dict[int, list[Assertion]] = {}
    for index, check in enumerate(checks):
        if reason := unlocated(run.binding, check.expected):
            found[index] = [_unknown(f"network.{index + 1}.site", reason)]
    for group in _groups(task, checks):
        if positions := [index for index in group if index not in found]:
            found.update(_of_group(run, positions, checks))
    made += [assertion for index in sorted(found) for assertion in found[index]]
    return [_in_doubt(assertion, trace) for assertion in made] if trace.flaws else made


def _in_doubt(assertion: Assertion, trace: Trace) -> Assertion:
    """Call unknown what an entry that cannot be read may decide: that no request met a check, or
    that none did what must not be done."""
    absence = assertion.name.endswith(".absence") and assertion.outcome is Outcome.PASS
    if not absence and assertion.outcome is not Outcome.FAIL:
        return assertion
    reason = f"{trace.source}: {trace.flaws[0]}, and may be the request that is asked for"
    return _unknown(assertion.name, reason)


def _unknown(name: str, reason: str) -> Assertion:
    return Assertion(name=name, outcome=Outcome.UNKNOWN, reason=reason)


def _activity(run: Run) -> Assertion:
    """Return the paper's section 4.3: at least one request that the task's own site answered."""
    sites = {placeholder(site) for site in run.task.sites}
    for event in run.trace.relevant:
        place = run.address(event, base64_path=False)
        answered = event.status is not None and 200 <= event.status < 400
        if place and answered and placeholders(place.base) & sites:
            return Assertion(name="activity", outcome=Outcome.PASS, found=shown(event.url))
    if reason := unlocated(run.binding, sorted(sites)):
        return _unknown("activity", reason)
    return Assertion(
        name="activity",
        outcome=Outcome.FAIL,
        reason=f"no site of the task answered a request: {elsewhere(run)}",
        expected=sorted(sites),
    )


def elsewhere(run: Run) -> str:
    """Return one clause on where the requests of a trace went."""
    hosts = dict.fromkeys(origin(event.url) for event in run.trace.relevant)
    named = [host for host in hosts if host][:_SHOWN_EVENTS]
    if not named:
        return f"{run.trace.source} holds no request to any host"
    known = {base for base, _ in run.binding.bases}
    if any(base.startswith(host) for base in known for host in named):
        return "its requests went to other pages"
    return f"{run.trace.source} holds requests to {', '.join(named)} alone"


def _groups(task: Task, checks: Sequence[NetworkCheck]) -> list[list[int]]:
    """Positions of checks that are about the same requests; final pages are one group."""
    groups: dict[object, list[int]] = {}
    for index, check in enumerate(checks):
        expected = check.expected
        referer = (expected.headers or {}).get("referer")
        alone = check.should_not_exist or not check.last_event_only
        key: object = (expected.http_method.upper(), expected.urls, referer)
        if alone:
            key = index
        elif is_final_page(task, check):
            key = ("final pages", shown_by(check))
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def _of_group(
    run: Run, positions: list[int], checks: Sequence[NetworkCheck]
) -> dict[int, list[Assertion]]:
    """Return the assertions of each check of a group, by position."""
    first = checks[positions[0]]
    names = {index: f"network.{index + 1}" for index in positions}
    try:
        events = list(_candidates(run, first, len(positions)))
        if first.should_not_exist:
            return {positions[0]: [_absence(run, first, events, names[positions[0]])]}
        if not events:
            return {index: [_missing(run, checks[index], names[index])] for index in positions}
        if first.last_event_only and not first.changing_urls:  # there a further one leaves it open
            events = events[-len(positions) :]
        return _paired(run, {index: checks[index] for index in positions}, events)
    except InvalidValue as error:
        return {index: [_unknown(names[index], str(error))] for index in positions}


class Decisive(NamedTuple):
    """A check and the one request that makes it hold: its position in the trace."""

    check: NetworkCheck
    at: int


def decisive_events(task: Task, trace: Trace, hosts: Hosts) -> tuple[Decisive, ...]:
    """Return the requests without which a check would not hold, in the order of the trace.

    Left out are checks that more requests would meet than they ask for, checks of what must not be
    sent, and those that cannot be told.
    """
    run = Run(task, trace, sites_of(task, trace, hosts))
    found = []
    for positions in _groups(task, task.network_checks):
        checks = {index: task.network_checks[index] for index in positions}
        if checks[positions[0]].should_not_exist:
            continue
        try:
            events = list(_candidates(run, checks[positions[0]], len(positions)))
            pairs = _meeting(run, checks, events)
        except InvalidValue:
            continue
        if len(pairs) == len(checks):
            found += [Decisive(checks[one], trace.events.index(event)) for one, event in pairs]
    return tuple(sorted(found, key=lambda one: one.at))


def _meeting(
    run: Run, checks: Mapping[int, NetworkCheck], events: Sequence[Event]
) -> list[tuple[int, Event]]:
    """Return every request that meets a check of a group, with that check."""
    return [
        (index, event)
        for event in events
        for index, check in checks.items()
        if all(made.outcome is Outcome.PASS for made in compared(run, check, event, ""))
    ]


def _paired(
    run: Run, checks: dict[int, NetworkCheck], events: list[Event]
) -> dict[int, list[Assertion]]:
    """Pair checks with events; a check without a partner shows the event that fits it best."""
    known: dict[tuple[int, int], list[Assertion]] = {}
    positions = list(checks)

    def of(index: int, at: int) -> list[Assertion]:
        if (index, at) not in known:
            name = f"network.{index + 1}"
            known[index, at] = list(compared(run, checks[index], events[at], name))
        return known[index, at]

    def holds(index: int, at: int) -> bool | None:
        outcome = conjunction(assertion.outcome for assertion in of(index, at))
        return None if outcome is Outcome.UNKNOWN else outcome is Outcome.PASS

    pairing = match_unordered(positions, list(range(len(events))), holds)
    chosen = {positions[one]: of(positions[one], other) for one, other in pairing.pairs}
    for missing in pairing.missing:
        index = positions[missing]
        left = [at for at in range(len(events)) if at in pairing.surplus]
        if not left:
            chosen[index] = [_missing(run, checks[index], f"network.{index + 1}")]
            continue
        chosen[index] = min((of(index, at) for at in reversed(left)), key=_failures)
    return chosen


def _failures(assertions: list[Assertion]) -> int:
    return sum(assertion.outcome is not Outcome.PASS for assertion in assertions)


def _candidates(run: Run, check: NetworkCheck, count: int) -> Iterator[Event]:
    """Yield the requests that ``count`` checks of a group are about, first to last. Raises
    Undecided."""
    if not is_final_page(run.task, check):
        yield from fitting(run, check, run.trace.relevant)
        return
    yield from final_events(run, check, count)


def is_final_page(task: Task, check: NetworkCheck) -> bool:
    """Tell whether a check is about the page that the tab showed last."""
    answer = task.answer_check
    navigates = answer is not None and answer.expected.task_type == "navigate"
    return navigates and check.expected.http_method.upper() == "GET" and not check.should_not_exist


def _missing(run: Run, check: NetworkCheck, name: str) -> Assertion:
    method = check.expected.http_method.upper()
    what = wanted_view(check) if is_final_page(run.task, check) else method
    return Assertion(
        name=f"{name}.url",
        outcome=Outcome.FAIL,
        reason=f"no {what} of {check.expected.urls[0]}: {elsewhere(run)}",
        expected=shown(check.expected.urls[0]),
    )


def _absence(run: Run, check: NetworkCheck, events: list[Event], name: str) -> Assertion:
    """No request may have the address, the query and the body that the check names."""
    left_open = None
    for event in events:
        made = compared(run, check, event, name)
        parts = [assertion for assertion in made if not assertion.name.endswith(".status")]
        there = conjunction(assertion.outcome for assertion in parts)
        if there is Outcome.PASS:
            return Assertion(
                name=f"{name}.absence",
                outcome=Outcome.FAIL,
                reason=f"a {event.method} of {shown(event.url)[:200]} was sent",
                expected=shown(check.expected.urls[0]),
                found=shown(event.url),
            )
        if there is Outcome.UNKNOWN:
            left_open = next(it.reason for it in parts if it.outcome is there)
    if left_open is not None:
        return _unknown(f"{name}.absence", left_open)
    return Assertion(name=f"{name}.absence", outcome=Outcome.PASS)
