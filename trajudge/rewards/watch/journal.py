"""What was watched, on disk: a line an event, so that a restart goes on where it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from trajudge.rewards.watch.monitor import Audited, RewardMonitor
from trajudge.util.errors import UserError
from trajudge.util.files import read_regular


class WatchJournal:
    """Appends events of one version of the rewards, and replays those of it that are there.

    Raises UserError for a file that cannot be read or written.
    """

    def __init__(self, path: Path | None, version: str) -> None:
        self._path, self._version = path, version
        self._before = b""  # ends a line that a killed process left torn

    def replay(self, monitor: RewardMonitor) -> None:
        """Tell a monitor what earlier processes saw of this version; a torn last line is left."""
        if self._path is None or not self._path.exists():
            return
        try:
            lines = read_regular(self._path).split(b"\n")
        except OSError as error:
            raise UserError(f"{self._path}: cannot be read ({error.strerror})") from error
        self._before = b"\n" if lines[-1] else b""
        for line in lines:
            try:
                event = orjson.loads(line)
                if event["version"] == self._version:
                    _tell(monitor, event)
            except (ValueError, KeyError, TypeError):
                continue

    def add(self, kind: str, name: str, value: bool | float) -> None:
        """Append an event: a ``canary`` and its verdict, a ``probe`` and whether it was accepted, a
        ``drawn`` reward and its value, an ``audit`` and its success, what the ``shape`` of runs is
        held to."""
        if self._path is None:
            return
        event = {"version": self._version, "kind": kind, "name": name, "value": value}
        try:
            with self._path.open("ab") as file:
                file.write(self._before + orjson.dumps(event) + b"\n")
                self._before = b""
        except OSError as error:
            raise UserError(f"{self._path}: cannot be written ({error.strerror})") from error


def _tell(monitor: RewardMonitor, event: dict[str, Any]) -> None:
    name, value = str(event["name"]), event["value"]
    if event["kind"] == "canary":
        monitor.add_canary(name, bool(value))
    elif event["kind"] == "probe":
        monitor.add_probe(bool(value))
    elif event["kind"] == "shape":
        monitor.shape.hold(name, float(value))
    elif event["kind"] == "drawn":
        monitor.draw(Audited(name, float(value)))
    elif event["kind"] == "audit":
        monitor.add_audit(name, bool(value))
