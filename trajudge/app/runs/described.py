"""Goals, answers and steps of a run's trajectories, read into its index beside the pages."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from trajudge.app.reports.evidence import on_this_machine
from trajudge.app.server.workspace import OpenedRun
from trajudge.eval.store.run_index import Described, undescribed
from trajudge.trajectories.loaders import open_source
from trajudge.trajectories.model import Trajectory
from trajudge.trajectories.needs import Needs
from trajudge.util.errors import UserError

_NEEDS = Needs(answer=True)
READING = "Goals and steps of the trajectories are still being read."


class Descriptions:
    """Describes runs, each once, in threads of its own. To be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._notes: dict[str, str] = {}

    def note(self, run: OpenedRun, data: Sequence[str]) -> str:
        """Say what filters on goals, answers and steps do not know yet, "" for nothing; ``data``
        are specifications that the user named, none: the run's own. The first call begins."""
        with self._lock:
            if run.name not in self._notes:
                self._notes[run.name] = READING
                threading.Thread(target=self._describe, args=(run, data), daemon=True).start()
            return self._notes[run.name]

    def _describe(self, run: OpenedRun, data: Sequence[str]) -> None:
        note = "Goals and steps could not be read because of a defect."
        try:
            note = _described(run, data)
        except UserError as error:
            note = f"Filters know neither goals nor steps: {error}"
        finally:
            with self._lock:
                self._notes[run.name] = note


def _described(run: OpenedRun, data: Sequence[str]) -> str:
    with run.index.reading() as connection:
        wanted = undescribed(connection)
    if not wanted:
        return ""
    specs = data or [on_this_machine(str(run.manifest.get("data") or ""))]
    read = [
        Described.of(one)
        for spec in specs
        for one in open_source(spec, wanted.__contains__, _NEEDS)
        if isinstance(one, Trajectory) and one.key in wanted
    ]
    run.index.describe(read)
    absent = len(wanted - {one.key for one in read})
    return (
        f"{absent:,} trajectories are not in the data: filters on steps miss them."
        if absent
        else ""
    )
