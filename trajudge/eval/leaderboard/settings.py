"""What ``trajudge leaderboard`` is asked to do."""

from __future__ import annotations

from pathlib import Path

from trajudge.annotations import LabelConfig
from trajudge.eval.runs.settings import Split


class LeaderboardConfig(LabelConfig):
    """``runs`` are folders of runs, ``published`` a folder of published verdicts; on ``data`` the
    judges that need no model are run.

    ``annotations`` are the labels of ``data``; without it, those that the runs are held to. Of
    annotations with splits those of ``split`` count. The page and the CSV are written into ``out``.
    """

    runs: tuple[Path, ...] = ()
    published: Path | None = None
    data: tuple[str, ...] = ()
    split: Split = "test"
    out: Path = Path("board")
