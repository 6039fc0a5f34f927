"""The rooms of pages that ``trajudge inspect`` shows. A new room is one line here."""

from __future__ import annotations

from trajudge.app.compare.routes import routes as compare_routes
from trajudge.app.judgments.routes import routes as judgment_routes
from trajudge.app.runs.routes import routes as run_routes
from trajudge.app.server.application import Room
from trajudge.app.server.pages import NavLink
from trajudge.app.trajectories.access import TrajectoryAccess
from trajudge.app.trajectories.routes import routes as trajectory_routes


def inspect_rooms() -> list[Room]:
    """Return all rooms, in the order of the navigation."""
    access = TrajectoryAccess()
    return [
        Room(run_routes(), [NavLink("/", "Runs", "g i")]),
        Room(trajectory_routes(access)),
        Room(judgment_routes(access)),
        Room(compare_routes(), [NavLink("/compare", "Compare", "g c")]),
    ]
