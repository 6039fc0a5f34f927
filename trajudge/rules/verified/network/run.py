"""A run's trace, read with the addresses that the task's sites had in it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from trajudge.rules.errors import InvalidValue
from trajudge.rules.verified.dataset import Task, placeholder, placeholders
from trajudge.rules.verified.network.addresses import Address, address
from trajudge.rules.verified.network.events import Event, Trace
from trajudge.rules.verified.network.kinds import declared
from trajudge.rules.verified.network.sites import Binding, Hosts, bound, named, start_of


class Run(NamedTuple):
    """A trace, read with the addresses that its sites had."""

    task: Task
    trace: Trace
    binding: Binding

    def address(self, event: Event, *, base64_path: bool) -> Address | None:
        """Return the address of an event; None for one that cannot be read. Remembered.

        Parameters that only say that a script fetched the page are left out.
        """
        key = (id(event), self.binding, base64_path)
        memory = self.trace.memory
        if key not in memory:
            try:
                place = address(event.url, self.binding, base64_path=base64_path)
                memory[key] = _without_carrier(event.method, place)
            except InvalidValue:
                memory[key] = None
        found: Address | None = memory[key]
        return found


def _without_carrier(method: str, place: Address) -> Address:
    if not place.query:
        return place
    known = declared(method, place.base)
    if known is None or known.carrier not in place.query:
        return place
    query = {name: values for name, values in place.query.items() if name != known.carrier}
    return place._replace(query=query)


def sites_of(task: Task, trace: Trace | None, hosts: Hosts) -> Binding:
    """Return the addresses of the task's sites: as given, else as the trace's pages tell them."""
    if trace is None:
        return bound(_names(task), hosts, ())
    key = ("binding", _names(task), tuple(hosts.items()))
    if key not in trace.memory:
        pages = trace.documents or trace.relevant
        starts = dict.fromkeys(start_of(event.url) for event in pages)
        trace.memory[key] = bound(_names(task), hosts, [start for start in starts if start])
    binding: Binding = trace.memory[key]
    return binding


def unlocated(binding: Binding, part: object) -> str:
    """Tell why a part of a specification cannot be held against a run: it names a site whose
    address nobody told; "" if it names none."""
    if not binding.unknown:
        return ""
    named_there = placeholders(msgspec.json.encode(part).decode())
    missing = [named(name) for name in binding.unknown if name in named_there]
    if not missing:
        return ""
    return (
        f"the address of {' and '.join(missing)} is not known, and no page is on its usual port: "
        f"give --site {missing[0]}=URL, or a configuration"
    )


def _names(task: Task) -> tuple[str, ...]:
    names = [placeholder(site) for site in task.sites]
    for check in task.network_checks:
        for url in check.expected.urls:
            names += sorted(placeholders(url))
    return tuple(dict.fromkeys(names))
