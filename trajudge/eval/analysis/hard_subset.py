"""Select a hard, category-balanced subset of tasks from the attempts of several agents.

Source: WebArena Verified, section 4.5 and appendix B. The model is fitted by penalised
likelihood, a stated approximation of the paper's sampling, or sampled (``fit`` is nuts).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from trajudge.stats.difficulty import (
    Attempts,
    HardSubset,
    HazardFit,
    SubsetRules,
    attempts,
    fit_hazard,
    leave_one_out,
    select_hard,
    validate_subset,
)
from trajudge.trajectories.model import Record, Seed
from trajudge.util.errors import MissingExtra, UserError
from trajudge.util.files import read_text
from trajudge.util.tables import Table, first_screen, render

COLUMNS = ("agent", "task_id", "site", "template", "category", "steps", "success")
OUTCOMES = {"1": True, "true": True, "1.0": True, "0": False, "false": False, "0.0": False}


class HardSubsetConfig(SubsetRules, Record):
    """What the command is asked for, beside the rules of the selection.

    ``budget`` is the agents' step cap; ``resamples`` of tasks are for validation; ``chains`` and
    ``draws`` are of the sampler.
    """

    attempts: Path
    save: Path | None = None
    budget: int = 30
    resamples: int = Field(default=500, ge=1)
    seed: Seed = 0
    fit: Literal["laplace", "nuts"] = "laplace"
    chains: int = 4
    draws: int = 1000
    leave_one_out: bool = False
    full: bool = False


class SelectedTasks(NamedTuple):
    """What to print, one screen or everything (``full``), and the CSV of all tasks."""

    screen: str
    tasks: bytes


def hard_subset(config: HardSubsetConfig) -> SelectedTasks:
    """Fit, select and validate.

    Raises UserError for attempts that cannot be read and for too few agents.
    """
    fit_model = _fitter(config)
    runs = read_attempts(config.attempts, config.budget)
    fit = fit_model(runs)
    subset = select_hard(runs, fit, config)
    if not len(subset.selected):
        raise UserError(
            f"{config.attempts}: no task was attempted by {config.min_agents} agents or more: "
            "lower --min-agents or add attempts"
        )
    tables = [_by_site(runs, subset)]
    if config.leave_one_out:
        tables.append(_left_out(runs, subset, lambda d: select_hard(d, fit_model(d), config)))
    below = [*_validate(runs, subset, config), f"fitted by {fit.method}"]
    notes = [f"warning: {note}" for note in fit.notes]
    rest = (
        f"each task: {config.save}" if config.save else "each task with its hardness: --save FILE"
    )
    above = list(_describe(runs, subset, config))
    if config.full:
        screen = "\n".join([*above, "", render(tables, "table"), *below, *notes, rest]) + "\n"
    else:
        screen = first_screen(above, tables, below, notes, rest=rest)
    return SelectedTasks(screen, tasks_csv(runs, subset))


def _fitter(config: HardSubsetConfig) -> Callable[[Attempts], HazardFit]:
    """Choose the function that ``fit`` names. Raises UserError on an impossible number of draws."""
    if config.fit == "laplace":
        return fit_hazard
    from trajudge.stats.hazard_nuts import Sampling, fit_hazard_nuts, sampler_packages  # noqa: PLC0415 - an extra

    try:
        sampling = Sampling(config.chains, config.draws, warmup=config.draws)
    except ValueError as error:
        raise UserError(f"--chains {config.chains} --draws {config.draws}: {error}") from error
    try:
        sampler_packages()
    except ImportError as error:
        raise MissingExtra("numpyro", "bayes", "sampling the hazard model with NUTS") from error
    return lambda runs: fit_hazard_nuts(runs, np.random.default_rng(config.seed), sampling)


def read_attempts(path: Path, budget: int) -> Attempts:
    """Read attempts from a CSV file. Raises UserError naming file, line and value."""
    try:
        reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
        if missing := [name for name in COLUMNS if name not in (reader.fieldnames or ())]:
            raise UserError(f"{path}: no column {missing[0]!r}: it needs {', '.join(COLUMNS)}")
        rows = [(reader.line_num, row) for row in reader]
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}): name a CSV file") from error
    except csv.Error as error:
        raise UserError(f"{path}: is not CSV ({error}): mend the file") from error
    if not rows:
        raise UserError(f"{path}: no attempts: it needs one line for each agent and task")
    steps, success = [], []
    for line, row in rows:
        if not (row["steps"] or "").strip().isdecimal():
            raise UserError(f"{path}, line {line}: steps is {row['steps']!r}: give a whole number")
        if (row["success"] or "").strip().lower() not in OUTCOMES:
            raise UserError(f"{path}, line {line}: success is {row['success']!r}: give 0 or 1")
        steps.append(min(int(row["steps"]), budget))
        success.append(OUTCOMES[row["success"].strip().lower()])
    labels: dict[str, dict[object, object]] = {"site": {}, "template": {}, "category": {}}
    for line, row in rows:
        for kind, known in labels.items():
            if known.setdefault(row["task_id"], row[kind]) != row[kind]:
                raise UserError(
                    f"{path}, line {line}: task {row['task_id']!r} has two values of {kind}: "
                    "give each task one"
                )
    try:
        return attempts(
            [row["agent"] for _, row in rows],
            [row["task_id"] for _, row in rows],
            steps,
            success,
            site=labels["site"],
            template=labels["template"],
            category=labels["category"],
            cap=budget,
        )
    except ValueError as error:
        raise UserError(f"{path}: {error}") from error


def tasks_csv(runs: Attempts, subset: HardSubset) -> bytes:
    """Return one line per task: site, hardness, reference success, agents, selected."""
    selected = set(subset.selected.tolist())
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(["task_id", "site", "hardness", "reference_success", "agents", "selected"])
    for t, name in enumerate(runs.task_names):
        numbers = (f"{subset.hardness[t]:.4f}", f"{subset.reference_success[t]:.4f}")
        site = runs.site_names[runs.site[t]]
        writer.writerow([name, site, *numbers, runs.agents_per_task[t], int(t in selected)])
    return file.getvalue().encode()


def _describe(runs: Attempts, subset: HardSubset, rules: SubsetRules) -> Iterator[str]:
    """Say how many tasks were selected and how hard they are."""
    chosen = subset.selected
    yield f"selected {len(chosen)} of {len(runs.task_names)} tasks"
    hard = (subset.reference_success[chosen] <= rules.hard).mean()
    sure = (subset.hardness[chosen] >= 0.9).mean()
    yield f"reference success at most {rules.hard:.2f}: {hard:.1%} of the selected"
    yield f"hard with probability 0.9 or more: {sure:.1%}"


def _by_site(runs: Attempts, subset: HardSubset) -> Table:
    rows = [
        (str(name), str((runs.site[subset.selected] == s).sum()), str((runs.site == s).sum()))
        for s, name in enumerate(runs.site_names)
    ]
    return Table("", ("site", "selected", "tasks"), rows, names=1)


def _validate(runs: Attempts, subset: HardSubset, config: HardSubsetConfig) -> Iterator[str]:
    """Say whether the subset ranks and scores the agents as the pool does."""
    rng = np.random.default_rng(config.seed)
    validation = validate_subset(runs, subset.selected, rng, n_resamples=config.resamples)
    yield (
        f"agents' ranking, Kendall tau {validation.tau:z.3f} "
        f"(at least 0.90 in {validation.tau_pass_rate:.0%} of the resamples)"
    )
    yield (
        f"agents' success rates, mean absolute error {validation.mae:.3f} "
        f"(at most 0.06 in {validation.mae_pass_rate:.0%})"
    )


def _left_out(
    runs: Attempts, subset: HardSubset, select: Callable[[Attempts], HardSubset]
) -> Table:
    left = leave_one_out(runs, subset, select)
    rows = [
        (str(name), f"{tau:z.3f}", f"{overlap:.0%}")
        for name, tau, overlap in zip(runs.agent_names, left.tau, left.overlap, strict=True)
    ]
    return Table("", ("without agent", "Kendall tau", "tasks selected again"), rows, names=1)
