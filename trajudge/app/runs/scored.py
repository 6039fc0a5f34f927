"""Scores of runs, as ``trajudge score`` gives them: computed beside the pages that show them, and
kept as long as the run's files stay."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import NamedTuple

from trajudge.app.runs.scoring import ScoredRun, score_run
from trajudge.app.server.workspace import FileIdentity, OpenedRun
from trajudge.util.errors import UserError

# A run that is being judged changes all the time: scoring it takes at most this share of the time.
SHARE = 0.1


class ScoringState(NamedTuple):
    """The last scores, None while there are none yet; ``is_current``: the files are still those
    that were scored."""

    scored: ScoredRun | None
    is_current: bool


@dataclass
class _Scoring:
    """The scoring of one run: what it gave last, and whether it is at work."""

    version: tuple[FileIdentity, ...] = ()
    scored: ScoredRun | None = None
    problem: UserError | None = None
    at_work: threading.Thread | None = None
    ended: float = 0.0
    took: float = 0.0


class RunScores:
    """Scores runs, each once at a time, in threads of its own. To be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, _Scoring] = {}

    def of(
        self, run: OpenedRun, annotations: str | None = None, wait: float | None = None
    ) -> ScoringState:
        """Score a run against its own labels, or those of a specification, and wait at most
        ``wait`` seconds for it (None: until it is done). Raises UserError."""
        version = run.version
        with self._lock:
            scoring = self._runs.setdefault(run.name, _Scoring())
            stale = scoring.version != version
            pause = 0.0 if wait is None else scoring.took / SHARE - scoring.took
            if stale and not scoring.at_work and time.monotonic() >= scoring.ended + pause:
                scoring.at_work = threading.Thread(
                    target=self._score, args=(scoring, run, annotations), daemon=True
                )
                scoring.at_work.start()
            worker = scoring.at_work
        if worker is not None:
            worker.join(wait)
        with self._lock:
            if scoring.problem is not None:
                raise scoring.problem
            return ScoringState(scoring.scored, scoring.version == version)

    def _score(self, scoring: _Scoring, run: OpenedRun, annotations: str | None) -> None:
        begun, version = time.monotonic(), run.version
        scored, problem = scoring.scored, None
        try:
            scored = score_run(run.folder, annotations)
        except UserError as error:
            problem = error
        except Exception:
            problem = UserError(
                "The run cannot be scored: a defect, of which the terminal shows more"
            )
            raise
        finally:
            with self._lock:
                scoring.version, scoring.scored, scoring.problem = version, scored, problem
                scoring.ended, scoring.at_work = time.monotonic(), None
                scoring.took = scoring.ended - begun
