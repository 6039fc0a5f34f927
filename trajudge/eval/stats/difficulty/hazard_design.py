"""The hazard model's linear predictor as sparse matrices, one block of columns an effect."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from trajudge.eval.stats.difficulty.attempts import BIN_STARTS, Attempts, step_bin
from trajudge.eval.stats.interval import Floats


@dataclass(frozen=True, eq=False)
class Design:
    """Columns of the linear predictor: sparse (N, P), blocks by name, and sum-to-zero contrasts."""

    matrix: sparse.csr_matrix
    offset: Floats
    blocks: dict[str, slice]
    contrasts: Floats


def build_design(attempts: Attempts) -> Design:
    """Build the linear predictor of every attempt, appendix B's effects in the formula's order."""
    task, n_agents = attempts.task, len(attempts.agent_names)
    contrasts = linalg.null_space(np.ones((1, n_agents)))
    n = len(task)
    parts = {
        "mu": sparse.csr_matrix(np.ones((n, 1))),
        "ability": sparse.csr_matrix(contrasts[attempts.agent]),
        "difficulty": -_one_hot(task, len(attempts.task_names)),
        "site": _one_hot(attempts.site[task], len(attempts.site_names)),
        "template": _one_hot(attempts.template[task], int(attempts.template.max()) + 1),
        "category": _one_hot(attempts.category[task], int(attempts.category.max()) + 1),
        "bin": _one_hot(step_bin(attempts.steps), len(BIN_STARTS)),
        "delta": sparse.csr_matrix(attempts.exhausted.astype(float)[:, None]),
    }
    ends = np.cumsum([0, *(part.shape[1] for part in parts.values())]).tolist()
    blocks = {name: slice(ends[i], ends[i + 1]) for i, name in enumerate(parts)}
    matrix = sparse.hstack(list(parts.values()), format="csr")
    return Design(matrix, np.log1p(attempts.steps.astype(float)), blocks, contrasts)


def reference_rows(attempts: Attempts, design: Design) -> sparse.csr_matrix:
    """Each task (T, P) at its site's reference steps: average agent, budget not exhausted."""
    tasks = np.arange(len(attempts.task_names))
    parts = {
        "mu": sparse.csr_matrix(np.ones((len(tasks), 1))),
        "ability": sparse.csr_matrix((len(tasks), len(attempts.agent_names) - 1)),
        "difficulty": -_one_hot(tasks, len(tasks)),
        "site": _one_hot(attempts.site, len(attempts.site_names)),
        "template": _one_hot(attempts.template, int(attempts.template.max()) + 1),
        "category": _one_hot(attempts.category, int(attempts.category.max()) + 1),
        "bin": _one_hot(step_bin(attempts.reference_steps())[attempts.site], len(BIN_STARTS)),
        "delta": sparse.csr_matrix((len(tasks), 1)),
    }
    return sparse.hstack([parts[name] for name in design.blocks], format="csr")


def _one_hot(codes: NDArray[np.int64], size: int) -> sparse.csr_matrix:
    rows = np.arange(len(codes))
    return sparse.csr_matrix((np.ones(len(codes)), (rows, codes)), shape=(len(codes), size))
