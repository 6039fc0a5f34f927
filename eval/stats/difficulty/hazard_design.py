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


def build_design(data: Attempts) -> Design:
    """Build the linear predictor of every attempt, appendix B's effects in the formula's order."""
    task, n_agents = data.task, len(data.agent_names)
    contrasts = linalg.null_space(np.ones((1, n_agents)))
    n = len(task)
    parts = {
        "mu": sparse.csr_matrix(np.ones((n, 1))),
        "ability": sparse.csr_matrix(contrasts[data.agent]),
        "difficulty": -_one_hot(task, len(data.task_names)),
        "site": _one_hot(data.site[task], len(data.site_names)),
        "template": _one_hot(data.template[task], int(data.template.max()) + 1),
        "category": _one_hot(data.category[task], int(data.category.max()) + 1),
        "bin": _one_hot(step_bin(data.steps), len(BIN_STARTS)),
        "delta": sparse.csr_matrix(data.exhausted.astype(float)[:, None]),
    }
    ends = np.cumsum([0, *(part.shape[1] for part in parts.values())]).tolist()
    blocks = {name: slice(ends[i], ends[i + 1]) for i, name in enumerate(parts)}
    matrix = sparse.hstack(list(parts.values()), format="csr")
    return Design(matrix, np.log1p(data.steps.astype(float)), blocks, contrasts)


def reference_rows(data: Attempts, design: Design) -> sparse.csr_matrix:
    """Each task (T, P) at its site's reference steps: average agent, budget not exhausted."""
    tasks = np.arange(len(data.task_names))
    parts = {
        "mu": sparse.csr_matrix(np.ones((len(tasks), 1))),
        "ability": sparse.csr_matrix((len(tasks), len(data.agent_names) - 1)),
        "difficulty": -_one_hot(tasks, len(tasks)),
        "site": _one_hot(data.site, len(data.site_names)),
        "template": _one_hot(data.template, int(data.template.max()) + 1),
        "category": _one_hot(data.category, int(data.category.max()) + 1),
        "bin": _one_hot(step_bin(data.reference_steps())[data.site], len(BIN_STARTS)),
        "delta": sparse.csr_matrix((len(tasks), 1)),
    }
    return sparse.hstack([parts[name] for name in design.blocks], format="csr")


def _one_hot(codes: NDArray[np.int64], size: int) -> sparse.csr_matrix:
    rows = np.arange(len(codes))
    return sparse.csr_matrix((np.ones(len(codes)), (rows, codes)), shape=(len(codes), size))
