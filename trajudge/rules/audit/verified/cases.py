"""Correct runs of Verified's tasks for ``trajudge rules mutate``, and how to change them.

A run is an answer and a list of HAR entries: built from the specification, or read from a folder as
``trajudge rules evaluate`` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from trajudge.rules.audit.mutation import MutationCase, MutationSuite, Mutator, Variant
from trajudge.rules.audit.mutators import EQUIVALENT, NEAR_MISSES
from trajudge.rules.audit.trace_mutators import TRACE_EQUIVALENT, TRACE_NEAR_MISSES
from trajudge.rules.audit.verified.mutants import changed_entries, forbidden_entry
from trajudge.rules.audit.verified.synthesis import Entry, hosts_for, synthesise
from trajudge.rules.har.records import in_time_order
from trajudge.rules.values import Mode
from trajudge.rules.verdict import Verdict
from trajudge.rules.verified.backend import State
from trajudge.rules.verified.dataset import Task
from trajudge.rules.verified.evaluator import VerifiedEvaluator
from trajudge.rules.verified.network.checks import Decisive, decisive_events, is_final_page
from trajudge.rules.verified.network.events import Event, Trace
from trajudge.rules.verified.network.read import trace_of_list
from trajudge.rules.verified.network.sites import Hosts
from trajudge.rules.verified.response import Response, read_response
from trajudge.rules.verified.runs.files import found_runs, read_answer, read_trace, run_files
from trajudge.rules.verified.state import run_states

SOUND_WITH_ACTIVITY = "sound-activity"
_MOST_EVENTS = 20_000
# The changes of trace_mutators, which every kind of trace knows.
_GENERAL = frozenset({"method", "status", "host"})


class VerifiedCase(MutationCase, frozen=True, kw_only=True):
    """A correct run, with the requests that make its checks hold."""

    checks: tuple[Decisive, ...] = ()
    hosts: Hosts = msgspec.field(default_factory=dict)


def evaluator_of(mode: str, hosts: Hosts) -> VerifiedEvaluator:
    """Return the evaluator of a mode; ``sound-activity`` asks for a visit to the site besides."""
    if mode == SOUND_WITH_ACTIVITY:
        return VerifiedEvaluator(hosts=hosts, activity=True)
    return VerifiedEvaluator(mode=Mode(mode), hosts=hosts)


def mutation_suite(
    tasks: Sequence[Task], runs: Path | None, mode: str, hosts: Hosts
) -> MutationSuite:
    """Return the runs in a folder, which are taken to be correct, or for None one built for every
    task. Raises UserError for a folder or a run that cannot be read."""
    states: dict[str, Mapping[str, State]] = {}
    if runs is None:
        where = dict(chain.from_iterable(hosts_for(task).items() for task in tasks))
        cases = _built(tasks)
    else:
        where = dict(hosts)
        sent = mode != Mode.RELEASE.value
        cases = _recorded(
            {str(task.task_id): task for task in tasks}, runs, hosts, states, sent=sent
        )
    return MutationSuite(
        cases=cases,
        evaluator=_OnEntries(evaluator_of(mode, where), states),
        near_misses={**NEAR_MISSES, **TRACE_NEAR_MISSES, **_SPECIFIED},
        equivalent={**EQUIVALENT, **TRACE_EQUIVALENT},
    )


class _OnEntries:
    """The evaluator on lists of HAR entries: a variant shares all but one with its run, and each is
    decoded once."""

    def __init__(
        self, evaluator: VerifiedEvaluator, states: Mapping[str, Mapping[str, State]]
    ) -> None:
        self._evaluator, self._states = evaluator, states
        # By identity; the entry is kept, so that its identity is not given away.
        self._events: dict[int, tuple[Entry, Event]] = {}

    def evaluate(self, task: Task, answer: object, trace: list[Entry] | None) -> Verdict:
        if len(self._events) > _MOST_EVENTS:
            self._events.clear()
        events = None if trace is None else Trace(tuple(map(self._event, trace)), "the run")
        return self._evaluator.evaluate(task, answer, events, self._states.get(str(task.task_id)))

    def _event(self, entry: Entry) -> Event:
        if id(entry) not in self._events:
            self._events[id(entry)] = (entry, trace_of_list([entry]).events[0])
        return self._events[id(entry)][1]


def _built(tasks: Iterable[Task]) -> Iterator[MutationCase]:
    """Tasks that no run can be built for have none: the linter names them."""
    for task in tasks:
        if not task.flaw and (run := synthesise(task).run) is not None:
            yield _case(task, run.answer, list(run.entries), run.hosts)


def _recorded(
    tasks: Mapping[str, Task],
    folder: Path,
    hosts: Hosts,
    states: dict[str, Mapping[str, State]],
    *,
    sent: bool,
) -> Iterator[MutationCase]:
    """Yield the recorded runs; ``sent``: in the order in which the requests were sent."""
    for task_id in found_runs(folder, tasks):
        task = tasks[task_id]
        files = run_files(folder, task.task_id)
        trace = read_trace(files.trace)
        if task.backend_checks:
            states[task_id] = run_states(files.state, {})
        entries = None if trace is None else _plain_entries(trace, sent=sent)
        yield _case(task, _answered(read_answer(files.answer)), entries, hosts)


def _answered(said: object) -> object:
    """Return a response as an object, so that its parts can be changed; anything else as it is."""
    response = read_response(said)
    if not isinstance(response, Response):
        return said
    record: dict[str, Any] = msgspec.to_builtins(response)
    del record["departures"]
    return record


def _plain_entries(trace: Trace, *, sent: bool) -> list[Entry]:
    """Return the entries as JSON, without their times: mutators move them."""
    order = in_time_order([event.entry for event in trace.events])
    return [_plain(trace.events[at]) for at in (order if sent else range(len(order)))]


def _plain(event: Event) -> Entry:
    """Return an entry as JSON, with the body that a Playwright trace keeps beside it."""
    entry: Entry = msgspec.json.decode(msgspec.json.encode(event.entry))
    del entry["startedDateTime"]
    if event.resources:
        for part, body in (("request", "postData"), ("response", "content")):
            found = event.post_data if part == "request" else event.content
            entry[part][body] = msgspec.to_builtins(found)
    return entry


def _case(task: Task, answer: object, entries: list[Entry] | None, hosts: Hosts) -> VerifiedCase:
    check = task.answer_check
    ordered: bool | None = check is not None and check.ordered
    if check is not None and "coordinates" in msgspec.json.encode(check.results_schema).decode():
        ordered = None
    # Where the answer is not looked at, to change it is no mistake.
    answer = None if check is None else answer
    found = () if entries is None else decisive_events(task, trace_of_list(entries), hosts)
    return VerifiedCase(
        name=str(task.task_id),
        task=task,
        answer=answer,
        trace=entries,
        ordered=ordered,
        ends_there=bool(found) and all(is_final_page(task, one.check) for one in found),
        decisive=tuple(one.at for one in found),
        checks=found,
        hosts=hosts,
    )


def _specified(case: MutationCase) -> Iterator[Variant]:
    """Yield every part of a decisive request that its check names, changed."""
    if isinstance(case, VerifiedCase):
        for check, at in case.checks:
            for part, entry in changed_entries(check, case.trace[at]):
                if part not in _GENERAL:
                    trace = [*case.trace[:at], entry, *case.trace[at + 1 :]]
                    yield Variant(case.answer, trace, part.partition(" ")[0])


def _forbidden(case: MutationCase) -> Iterator[Variant]:
    """Yield what must not be sent, sent first."""
    if isinstance(case, VerifiedCase) and case.trace:
        for check in case.task.network_checks:
            if (entry := forbidden_entry(check, case.hosts)) is not None:
                yield Variant(case.answer, [entry, *case.trace])


_SPECIFIED: Mapping[str, Mutator] = {"request": _specified, "forbidden_request": _forbidden}
