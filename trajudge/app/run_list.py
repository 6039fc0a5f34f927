"""The list of runs: what their manifests and the results that were written with them say."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trajudge.annotations.queue import FILE, LabelQueue, Progress
from trajudge.app.scoring import PATIENCE, ListedCost, RunCosts
from trajudge.app.web import (
    address,
    in_thread,
    json_page,
    page,
    wants_json,
)
from trajudge.app.workspace import OpenedRun, workspace_of
from trajudge.eval.reporting.sentences import (
    LEAST_SHOWN,
    UNDEFINED,
    with_limits,
)
from trajudge.eval.scoring.records import ALL_AGENTS, OVERALL
from trajudge.eval.store.run_folder import JUDGMENTS, LOCK
from trajudge.util.errors import UserError, did_you_mean
from trajudge.util.files import is_locked, read_regular

RESULTS = "results.json"
_LARGEST = 50_000_000  # bytes of results that are read for the list


class ListedRun(NamedTuple):
    """A run as the list shows it; figures are None where no results were written. ``cost`` is what
    ``trajudge score`` tells, with ``more`` dollars that were paid beside it, None while it
    ``is_pending``. ``size`` is that of its judgments in bytes, ``failed`` how many of the
    ``judged`` are no verdict."""

    name: str
    link: str
    folder: str
    judge: str
    model: str
    data: str
    split: str
    judged: int | None
    failed: int | None
    precision: float | None
    precision_limits: tuple[float, float] | None
    f1: float | None
    cost: float | None
    more: float
    is_pending: bool
    changed: float
    size: int
    running: bool

    @property
    def precision_text(self) -> str:
        return with_limits(self.precision, self.precision_limits)

    @property
    def f1_text(self) -> str:
        return with_limits(self.f1, None)

    @property
    def cost_text(self) -> str:
        if self.cost is None:
            return "…" if self.is_pending else UNDEFINED
        return f"{self.cost:.4f}" + (f" + {self.more:.4f}" if self.more >= LEAST_SHOWN else "")

    @property
    def date(self) -> str:
        """When it was judged last, in UTC."""
        return datetime.fromtimestamp(self.changed, UTC).strftime("%Y-%m-%d %H:%M")


SORTS: Mapping[str, Callable[[ListedRun], Any]] = {
    name: lambda run, name=name: getattr(run, name)  # type: ignore[misc]  # bound now
    for name in (
        *("folder", "judge", "model", "data", "split", "judged", "failed"),
        *("precision", "f1", "cost", "changed"),
    )
}


def listed_runs(
    runs: Sequence[OpenedRun], costs: Mapping[str, ListedCost], sort: str = ""
) -> list[ListedRun]:
    """Read what stands in the runs' folders, in the order of the command line or sorted by a name
    of SORTS (``-`` before it: falling), unknown figures last; ``costs`` by the runs' names. Raises
    UserError for a manifest that cannot be read and for a sorting that is none."""
    listed = [_listed(run, costs[run.name]) for run in runs]
    if not sort:
        return listed
    name = sort.removeprefix("-")
    if name not in SORTS:
        raise UserError(f"sort={sort}: nothing is sorted by this{did_you_mean(name, SORTS)}")
    value = SORTS[name]
    known = sorted((r for r in listed if value(r) is not None), key=value, reverse=sort[0] == "-")
    return [*known, *(r for r in listed if value(r) is None)]


def _listed(run: OpenedRun, cost: ListedCost) -> ListedRun:
    manifest = run.manifest
    results = _results(run.folder / RESULTS)
    score = _overall(results, "scores", label="success", baseline=False)
    coverage = _overall(results, "coverage")
    statuses = coverage.get("statuses")
    judged = _number(coverage.get("judged"))
    ended_well = statuses.get("ok", 0) if isinstance(statuses, dict) else 0
    limits = (score.get("intervals") or {}).get("precision")
    journal = run.folder / JUDGMENTS
    status = journal.stat() if journal.is_file() else None
    return ListedRun(
        name=run.name,
        link=address("run", run.name),
        folder=run.folder.name,
        judge=str(manifest.get("judge") or ""),
        model=str(manifest.get("model") or ""),
        data=str(manifest.get("data") or ""),
        split=str((manifest.get("selection") or {}).get("split") or ""),
        judged=None if judged is None else int(judged),
        failed=None if judged is None else int(judged - (_number(ended_well) or 0)),
        precision=_number(score.get("precision")),
        precision_limits=_limits(limits),
        f1=_number(score.get("f1")),
        cost=cost.dollars,
        more=cost.more,
        is_pending=cost.is_pending,
        changed=status.st_mtime if status else 0.0,
        size=status.st_size if status else 0,
        running=_is_running(run.folder),
    )


def _results(path: Path) -> dict[str, Any]:
    """Read the results that the run ended with; empty where there are none that can be read."""
    with suppress(OSError, ValueError):
        results = orjson.loads(read_regular(path, _LARGEST))
        return results if isinstance(results, dict) else {}
    return {}


def _overall(results: dict[str, Any], part: str, **wanted: object) -> dict[str, Any]:
    """Select the record of all benchmarks and agents together; empty unless there is just one."""
    wanted = {"benchmark": OVERALL, "agent": ALL_AGENTS, **wanted}
    records = results.get(part)
    fitting = [
        record
        for record in (records if isinstance(records, list) else [])
        if isinstance(record, dict) and wanted.items() <= {**record}.items()
    ]
    return fitting[0] if len(fitting) == 1 else {}


def _limits(limits: object) -> tuple[float, float] | None:
    if not isinstance(limits, list) or len(limits) != 2:
        return None
    low, high = map(_number, limits)
    return None if low is None or high is None else (low, high)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _is_running(folder: Path) -> bool:
    try:
        return is_locked(folder / LOCK)
    except OSError:  # not ours to lock, so nothing is known
        return False


_MOST_LISTED = 50


class ListedQueue(NamedTuple):
    """A queue in the folder of queues."""

    folder: Path
    counts: Progress

    @property
    def command(self) -> str:
        """The folder as a shell takes it."""
        return shlex.quote(str(self.folder))


def listed_queues(folder: Path) -> list[ListedQueue]:
    """List the queues in a folder with their progress, those that cannot be read left out."""
    listed = []
    for file in sorted(folder.glob(f"*/{FILE}"))[:_MOST_LISTED]:
        with suppress(UserError):
            queue = LabelQueue(file.parent)
            listed.append(ListedQueue(file.parent.resolve(), queue.progress()))
            queue.close()
    return listed


def list_route() -> Route:
    """Route the list of runs, with the queues that were made from them."""
    known = RunCosts()

    async def show(request: Request) -> Response:
        workspace = workspace_of(request)
        opened = [*workspace.runs.values()]
        wait = None if wants_json(request) else PATIENCE
        costs = await in_thread(known.of, opened, wait)
        sort = request.query_params.get("sort", "")
        runs = await in_thread(listed_runs, opened, costs, sort)
        if wants_json(request):
            return json_page({"runs": [run._asdict() for run in runs]})
        queues = await in_thread(listed_queues, workspace.queues)
        return page(request, "runs/list.html", runs=runs, sort=sort, queues=queues)

    return Route("/", show)
