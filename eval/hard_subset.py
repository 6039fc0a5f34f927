"""``trajudge data hard-subset ATTEMPTS.csv``: a hard, category-balanced subset of tasks.

Source: WebArena Verified, section 4.5 and appendix B. The model is fitted by penalised
likelihood, a stated approximation of the paper's sampling, or sampled (``--fit nuts``).
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trajudge.trajectories.util.exits import DONE, user_errors

if TYPE_CHECKING:
    from trajudge.eval.stats.difficulty.attempts import Attempts
    from trajudge.eval.stats.difficulty.hard_subset import HardSubset, SubsetRules
    from trajudge.eval.stats.difficulty.hazard_model import HazardFit

COLUMNS = ("agent", "task_id", "site", "template", "category", "steps", "success")
OUTCOMES = {"1": True, "true": True, "1.0": True, "0": False, "false": False, "0.0": False}


def parser() -> argparse.ArgumentParser:
    """The command's options; the defaults are the released configuration."""
    options = argparse.ArgumentParser(
        prog="trajudge data hard-subset",
        description="Select a hard, category-balanced subset of single-site tasks from the "
        "attempts of several agents. Append multi-site tasks yourself.",
    )
    options.add_argument("attempts", type=Path, help=f"CSV with the columns {', '.join(COLUMNS)}")
    options.add_argument("--out", type=Path, help="CSV of all tasks, hardness, and who is selected")
    options.add_argument(
        "--hard", type=float, default=0.20, help="reference success of a hard task"
    )
    options.add_argument("--easy", type=float, default=0.85, help="of a very easy category")
    options.add_argument("--cap", type=int, default=3, help="tasks of a category")
    options.add_argument("--cap-easy", type=int, default=2, help="tasks of a very easy category")
    options.add_argument("--min-agents", type=int, default=4, help="that attempted a task")
    options.add_argument("--budget", type=int, default=30, help="step cap of the agents")
    options.add_argument("--resamples", type=int, default=500, help="of tasks, for validation")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument(
        "--fit",
        choices=("laplace", "nuts"),
        default="laplace",
        help="penalised likelihood (seconds), or sampling as published (minutes; needs the extra "
        "bayes)",
    )
    options.add_argument("--chains", type=int, default=4, help="of --fit nuts")
    options.add_argument(
        "--draws", type=int, default=1000, help="a chain of --fit nuts, after as many of warm-up"
    )
    options.add_argument(
        "--leave-one-out", action="store_true", help="select again without each agent"
    )
    return options


@user_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, select, validate, write; the exit code."""
    options = parser().parse_args(arguments)
    from trajudge.eval.stats.difficulty.hard_subset import SubsetRules, select_hard  # noqa: PLC0415
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    for name in ("hard", "easy"):
        if not 0 < getattr(options, name) < 1:
            raise UserError(f"--{name} {getattr(options, name)}: give a rate between 0 and 1")
    fit_model = fitter(options)
    data = read_attempts(options.attempts, options.budget)
    rules = SubsetRules(
        options.hard, options.easy, options.cap, options.cap_easy, options.min_agents
    )
    fit = fit_model(data)
    subset = select_hard(data, fit, rules)
    if not len(subset.selected):
        raise UserError(
            f"{options.attempts}: no task was attempted by {rules.min_agents} agents or more: "
            "lower --min-agents or add attempts"
        )
    if options.out:
        write_tasks(options.out, data, subset)
    lines = [
        f"fitted by {fit.method}",
        *describe(data, subset, rules),
        *validate(data, subset, lambda some: select_hard(some, fit_model(some), rules), options),
        *(f"warning: {note}" for note in fit.notes),
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return DONE


def fitter(options: argparse.Namespace) -> Callable[[Attempts], HazardFit]:
    """The fit that ``--fit`` names. Raises UserError on an impossible number of draws."""
    from trajudge.eval.stats.difficulty.hazard_model import fit_hazard  # noqa: PLC0415

    if options.fit == "laplace":
        return fit_hazard
    import numpy as np  # noqa: PLC0415

    from trajudge.eval.stats.difficulty.hazard_nuts import (  # noqa: PLC0415
        Sampling,
        fit_hazard_nuts,
        sampler_packages,
    )
    from trajudge.trajectories.util.errors import MissingExtra, UserError  # noqa: PLC0415

    try:
        sampler_packages()
    except ImportError as error:
        raise MissingExtra("numpyro", "bayes", "sampling the hazard model with NUTS") from error
    try:
        sampling = Sampling(options.chains, options.draws, warmup=options.draws)
    except ValueError as error:
        raise UserError(f"--chains {options.chains} --draws {options.draws}: {error}") from error
    return lambda data: fit_hazard_nuts(data, np.random.default_rng(options.seed), sampling)


def read_attempts(path: Path, budget: int) -> Attempts:
    """Attempts from a CSV file. Raises UserError naming file, line and value."""
    from trajudge.eval.stats.difficulty.attempts import attempts  # noqa: PLC0415
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            if missing := [name for name in COLUMNS if name not in (reader.fieldnames or ())]:
                raise UserError(f"{path}: no column {missing[0]!r}: it needs {', '.join(COLUMNS)}")
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read as CSV ({error}): check the path") from error
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


def write_tasks(path: Path, data: Attempts, subset: HardSubset) -> None:
    """One line a task: site, hardness, reference success, agents, selected."""
    from trajudge.trajectories.util.errors import UserError  # noqa: PLC0415

    selected = set(subset.selected.tolist())
    try:
        file = path.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise UserError(f"--out {path}: cannot be written ({error}): check the folder") from error
    with file:
        writer = csv.writer(file)
        writer.writerow(["task_id", "site", "hardness", "reference_success", "agents", "selected"])
        for t, name in enumerate(data.task_names):
            numbers = (f"{subset.hardness[t]:.4f}", f"{subset.reference_success[t]:.4f}")
            site = data.site_names[data.site[t]]
            writer.writerow([name, site, *numbers, data.agents_per_task[t], int(t in selected)])


def describe(data: Attempts, subset: HardSubset, rules: SubsetRules) -> Iterator[str]:
    """How many were selected, from where, and how hard they are."""
    chosen = subset.selected
    yield f"selected {len(chosen)} of {len(data.task_names)} tasks"
    for s, name in enumerate(data.site_names):
        yield f"  {name}: {(data.site[chosen] == s).sum()} of {(data.site == s).sum()}"
    hard = (subset.reference_success[chosen] <= rules.hard).mean()
    sure = (subset.hardness[chosen] >= 0.9).mean()
    yield f"reference success at most {rules.hard:.2f}: {hard:.1%} of the selected"
    yield f"hard with probability 0.9 or more: {sure:.1%}"


def validate(
    data: Attempts,
    subset: HardSubset,
    select: Callable[[Attempts], HardSubset],
    options: argparse.Namespace,
) -> Iterator[str]:
    """Whether the subset ranks and scores the agents as the pool does."""
    import numpy as np  # noqa: PLC0415

    from trajudge.eval.stats.difficulty.subset_validation import leave_one_out, validate_subset  # noqa: PLC0415

    rng = np.random.default_rng(options.seed)
    found = validate_subset(data, subset.selected, rng, n_resamples=options.resamples)
    yield (
        f"agents' ranking, Kendall tau {found.tau:.3f} "
        f"(at least 0.90 in {found.tau_pass_rate:.0%} of the resamples)"
    )
    yield (
        f"agents' success rates, mean absolute error {found.mae:.3f} "
        f"(at most 0.06 in {found.mae_pass_rate:.0%})"
    )
    if options.leave_one_out:
        left = leave_one_out(data, subset, select)
        for name, tau, overlap in zip(data.agent_names, left.tau, left.overlap, strict=True):
            yield f"  without {name}: tau {tau:.3f}, {overlap:.0%} of the tasks selected again"


if __name__ == "__main__":
    sys.exit(main())
