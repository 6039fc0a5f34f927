"""The settings of ``trajudge proxy results``."""

from __future__ import annotations

from pathlib import Path

from trajudge.trajectories.model import Record


class ResilienceConfig(Record):
    """What is compared: ``recordings`` of our environments, or folders of proxy runs without faults
    (``clean``) and with them (``faulted``) and their ``outcomes``; ``judge`` names judges that need
    no model, ``judged`` run folders of judges on the arms."""

    recordings: tuple[Path, ...] = ()
    clean: Path | None = None
    faulted: tuple[Path, ...] = ()
    outcomes: Path | None = None
    judge: tuple[str, ...] = ()
    judge_option: tuple[str, ...] = ()
    judged: tuple[Path, ...] = ()
    prices: str | None = None
    out: Path = Path("resilience")
    full: bool = False
    plots: Path | None = None
