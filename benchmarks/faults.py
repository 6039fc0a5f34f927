"""Agents and judges under faults: ``python -m benchmarks.faults --out DIR``.

Generates 36 cases, records the scripted agents that recover (by closing a popup, loading again,
waiting, all of these, or not at all) without faults and with each of six, and prints what the
faults did to them and to judges that need no model. A recording that was stopped goes on where it
was. Needs Chromium; ``--cases`` and ``--agent`` make it shorter.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from trajudge.eval.cli import main as trajudge

AGENTS = ("every", "none", "dismiss", "reload", "wait")
TRAINING = ("judges", "train", "--data", "sample", "--folds", "3", "--save")
JUDGES = ("heuristic", "telemetry")
FAULTS = (
    {"id": "popup", "kind": "popup", "accessibility": "full"},
    {"id": "popup-unnamed", "kind": "popup", "accessibility": "none"},
    {"id": "busy", "kind": "status", "status": 503},
    {"id": "lost-answer", "kind": "status", "status": 504, "stage": "after"},
    {"id": "slow", "kind": "delay", "seconds": 2},
    {"id": "offline", "kind": "offline", "retry_seconds": 3},
)


def parser() -> argparse.ArgumentParser:
    """Make the benchmark's parser."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    made.add_argument("--out", type=Path, default=Path("faults"), help="folder to write")
    made.add_argument("--cases", type=int, default=36, help="cases to generate (default: 36)")
    made.add_argument("--seed", type=int, default=15)
    made.add_argument("--agent", nargs="+", choices=AGENTS, default=list(AGENTS))
    made.add_argument("--workers", type=int, default=2, help="browsers at once")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Record what is missing, agent by agent, and print the tables."""
    options = parser().parse_args(arguments)
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    cases, plan = out / "cases.jsonl", out / "plan.json"
    faults = [{**fault, "policy": "random(1)"} for fault in FAULTS]
    plan.write_text(json.dumps({"seed": 0, "faults": faults}, indent=1))
    if not cases.exists():
        chosen = ["--count", str(options.cases), "--seed", str(options.seed)]
        if trajudge(["env", "generate", *chosen, "--save", str(cases)]):
            return 1
    folders = []
    for agent in options.agent:
        folders.append(str(out / agent))
        words = ["--cases", str(cases), "--faults", str(plan), "--text-only", "--out", folders[-1]]
        more = ["--agent", f"resilient-{agent}", "--workers", str(options.workers)]
        if trajudge(["env", "record", *words, *more]):
            return 1
    # Trained on other runs than it judges: the bundled sample's.
    trained = out / "telemetry.json"
    if not trained.exists() and trajudge([*TRAINING, str(trained)]):
        return 1
    judges = [word for name in JUDGES for word in ("--judge", name)]
    judges += ["--judge-option", f"model={trained}"]
    return trajudge(
        ["proxy", "results", *folders, *judges, "--full", "--out", str(out / "results")]
    )


if __name__ == "__main__":
    sys.exit(main())
