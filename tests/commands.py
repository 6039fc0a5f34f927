"""Commands as functions of their words, for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trajudge.eval.cli import main

Run = Callable[[Sequence[str]], int]


def command(name: str) -> Run:
    """The command ``trajudge NAME``."""
    return lambda words: main([*name.split(), *words])


accept = command("accept")
judges = command("judges")
perturb = command("data perturb")
report = command("report")
robust = command("robust")
score = command("score")
select = command("select")
serve = command("serve")
rules_evaluate = command("rules evaluate")
rules_lint = command("rules lint")
rules_mutate = command("rules mutate")
rules_blind = command("rules blind")
rules_probe = command("rules probe")
