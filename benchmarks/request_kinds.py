"""``python -m benchmarks.request_kinds``: the declared kinds of requests against recorded traces.

python -m benchmarks.request_kinds --data DIR [--data DIR ...]

Every HAR file and Playwright trace below the folders is read. Requests to the benchmark's sites
(told by their usual ports) whose kind the recorder saw are held to the declarations of
``rules.verified.network``: a request of another kind is listed, and makes the exit code 1.
Traces of other sites are counted.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from trajudge.rules.verified.network import (
    DEFAULT_PORTS,
    FOLDERS,
    Event,
    Trace,
    declared,
    load_trace,
    recorded_kind,
    usual_kind,
)
from trajudge.util.errors import UserError

SUFFIXES = (".har", ".network", ".har.zip", ".har.gz")


class Seen(NamedTuple):
    """A request of a known kind to a site: its address with the site's placeholder."""

    address: str
    method: str
    kind: str
    agrees: bool
    is_declared: bool


def trace_files(folder: Path) -> Iterator[Path]:
    """Yield the recorded traces below a folder, in order."""
    for path in sorted(folder.rglob("*")):
        if path.name.endswith((*SUFFIXES, "trace.zip")) and path.is_file():
            yield path


def requests_seen(trace: Trace) -> Iterator[Seen]:
    """Yield the requests to the benchmark's sites whose kind the recorder saw."""
    for event in trace.relevant:
        address, kind = site_address(event), recorded_kind(event)
        if not address or kind is None:
            continue
        known = declared(event.method, address)
        kinds = known.kinds if known else (usual_kind(event.method, address),)
        yield Seen(address, event.method, kind.value, kind in kinds, known is not None)


def site_address(event: Event) -> str:
    """Return the address with its site's placeholder, told by the port; "" for another site."""
    try:
        parts = urlsplit(event.url)
        port = parts.port
    except ValueError:
        return ""
    for name, usual in DEFAULT_PORTS.items():
        folder = FOLDERS.get(name, "")
        if port == usual:
            inside = parts.path.startswith(folder) if folder else True
            return f"{name}{parts.path.removeprefix(folder)}" if inside else event.url
    return ""


def main() -> int:
    """Read the traces and print what they say of the declarations."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.request_kinds")
    made.add_argument("--data", type=Path, action="append", required=True, metavar="DIR")
    files = requests = 0
    kinds: Counter[tuple[str, bool]] = Counter()
    unreadable, elsewhere, disagreeing = [], 0, []
    for path in (path for folder in made.parse_args().data for path in trace_files(folder)):
        try:
            found = list(requests_seen(load_trace(path)))
        except UserError as error:
            unreadable.append(str(error))
            continue
        files += bool(found)
        elsewhere += not found
        requests += len(found)
        kinds.update((one.kind, one.is_declared) for one in found)
        disagreeing += [f"{path}: {one.method} {one.address}" for one in found if not one.agrees]
    print(f"{files} traces of the benchmark's sites ({elsewhere} of others): {requests} requests")
    for (kind, is_declared), count in sorted(kinds.items()):
        print(f"  {kind:10}{'declared' if is_declared else 'by method':12}{count:6}")
    print(f"of another kind than declared: {len(disagreeing)}")
    print("\n".join([*disagreeing[:20], *unreadable[:20]]))
    return int(bool(disagreeing))


if __name__ == "__main__":
    sys.exit(main())
