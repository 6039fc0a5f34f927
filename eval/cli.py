"""The console script ``trajudge``: ``trajudge judge ...`` is ``python -m eval.judge ...``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "judge": ("eval.judge", "judge trajectories and score the judge against expert annotations"),
    "score": ("eval.score", "what judges are worth: tables, plots, comparison, wrong verdicts"),
    "reparse": ("eval.reparse", "read the recorded replies of a run again, without a call"),
    "select": ("eval.select.command", "choose the judge and threshold that filter trajectories"),
    "accept": ("eval.accept", "keep the trajectories that a judge accepts, for fine-tuning"),
    "recertify": ("eval.recertify", "certify a choice of judge again for other agents"),
    "audit": ("eval.audit.__main__", "where a rule-based evaluator is wrong, and what it changes"),
    "agreement": ("eval.agreement", "measure how far annotators agree: kappa, alpha, intervals"),
    "hard-subset": ("eval.hard_subset", "select a hard, category-balanced subset of tasks"),
    "judges": ("judges.__main__", "list the judges, or show one with its prompts"),
    "rules": ("rules.evaluate", "evaluate runs by the rules of WebArena Verified"),
    "probe": ("rules.verified.state", "record what a site's probes say before or after a run"),
    "lint": ("rules.lint", "find what is wrong with a benchmark's rule-based evaluators"),
    "naive": ("rules.naive", "what agents that look at nothing score under the rules"),
    "naive-model": ("eval.naive", "what a model that sees no page scores under the rules"),
    "mutate": ("rules.mutate", "ask whether the rules notice near misses of correct runs"),
    "telemetry": ("eval.telemetry", "train the judge that reads only numbers of the run"),
    "fetch": ("trajectories.fetch", "download the parts of a benchmark that a run needs"),
    "generate": ("environments.generate", "make checked tasks in the bundled applications"),
    "validate": ("environments.validate", "solve generated tasks in Chromium"),
    "record": ("environments.record", "record scripted agents or a model in the applications"),
    "replay": ("environments.replay", "whether blind replay of recorded actions still succeeds"),
    "equivalence": ("environments.equivalence", "blind replay beside pass@k, on real runs"),
    "results": ("environments.results", "what agents reach, by level, dimension and axis"),
    "export": ("environments.export", "static copies of generated tasks, for sharing"),
    "prism": ("environments.prism.__main__", "hold environments against the PRISM principles"),
}


def usage() -> str:
    lines = [f"  {name:<12}{purpose}" for name, (_, purpose) in COMMANDS.items()]
    return "usage: trajudge COMMAND [OPTION ...]\n\n" + "\n".join(
        [*lines, "", "trajudge COMMAND --help shows the options of a command"]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (2: no such command)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(usage() + "\n")
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        sys.stderr.write(f"error: no command {name!r}: use one of {', '.join(COMMANDS)}\n")
        return 2
    exit_code: int = import_module(f"trajudge.{COMMANDS[name][0]}").main(rest)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
