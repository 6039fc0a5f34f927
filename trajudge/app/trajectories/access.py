"""How rooms of the application reach trajectories and their pictures: one library, one shelf."""

from __future__ import annotations

from threading import Lock

from trajudge.app.server.workspace import Workspace
from trajudge.app.trajectories.content import Summaries
from trajudge.app.trajectories.images import ImageShelf, thumbnail_folder
from trajudge.app.trajectories.library import TrajectoryLibrary


class TrajectoryAccess:
    """The trajectories of a workspace; rooms that show them share it."""

    def __init__(self, shelf: ImageShelf | None = None) -> None:
        self.shelf = shelf or ImageShelf(thumbnail_folder())
        self.summaries = Summaries(self.shelf)
        self._library: tuple[Workspace, TrajectoryLibrary] | None = None
        self._lock = Lock()

    def library(self, workspace: Workspace) -> TrajectoryLibrary:
        """Return the library of what the application was started with. Raises UserError for a run
        whose settings cannot be read."""
        with self._lock:
            if self._library is None or self._library[0] is not workspace:
                named = [run.data for run in workspace.runs.values()]
                recorded = tuple(dict.fromkeys(spec for spec in named if spec))
                self._library = workspace, TrajectoryLibrary(workspace.data, recorded)
            return self._library[1]
