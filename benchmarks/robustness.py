"""Do the intervals of ``trajudge robust`` hold what they promise, and how long does it take?

``python -m benchmarks.robustness`` simulates judges whose behaviour is known (``--simulations``,
2,000 by default): tasks differ, runs of a task agree more than others. It prints how often each
interval covers the truth, and how often the lower limits of precision under an attack lie below it,
these in eleven more designs too: few tasks, many attacks, attacks that resemble each other, a judge
that is hardly fooled, runs that agree more or less, few successes, large data. Then it times the
measurement of 100,000 verdicts on variants and the expansion of 40 perturbations. Exit
code 1 if an interval covers less than 93 %.

``--contrast MODEL`` asks a model instead, for the contrast cases of the Universal Verifier: one for
each of its source's 113 rules, two traces that differ only in what the rule decides. The other
stages are scripted, so that a trace takes a call or two. It prints how many pairs are decided right
by stage; a coin gets a quarter, a model that never looks none.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from statistics import median
from time import perf_counter

import numpy as np
from numpy.random import Generator

from tests.judges.methods.universal_verifier.contrast import (
    OPTIONS,
    ORDER,
    Contrast,
    contrasts,
    decided_right,
)
from tests.worlds.robustness import DESIGN, OTHERS, coverage, outcomes, simulated, worst_cases
from trajudge.judges.calls.handle import ModelHandle, single_model
from trajudge.judges.calls.settings import CallConfig
from trajudge.judges.methods.universal_verifier.model import UniversalVerifierOptions
from trajudge.robustness.apply import apply, problems
from trajudge.robustness.catalogue import chosen, core_suite
from trajudge.robustness.model import NotApplicable
from trajudge.robustness.rates import (
    all_rates,
    operating_points,
    overall_rates,
    undetectable,
    worst_case,
)
from trajudge.robustness.report import THREATS
from trajudge.robustness.subjects import subjects
from trajudge.util.errors import UserError


def in_other_designs(simulations: int, rng: Generator) -> Mapping[str, Mapping[str, float]]:
    """Return the shares for the lower limits of precision by design."""
    return {
        name: coverage(
            simulations,
            lambda design=design: worst_cases(simulated(rng, design), design, rng),  # type: ignore[misc]
        )
        for name, design in OTHERS.items()
    }


def measuring(variants: int = 100_000) -> float:
    """Return the seconds of all rates and worst cases of so many verdicts on variants."""
    rng = np.random.default_rng(0)
    one = simulated(rng, DESIGN._replace(tasks=833))
    many = [
        one[3 + number % DESIGN.attacks]._replace(name=f"attack-{number}")
        for number in range(variants // len(one[0].clean))
    ]
    began = perf_counter()
    all_rates([one[0], one[2], *many], dict.fromkeys((x.name for x in many), "twin"))
    overall_rates([one[0], *many], [x.name for x in many], [], one[0])
    operating_points(many)
    undetectable(many)
    for _ in THREATS:
        worst_case(many, one[0], rng)
    return perf_counter() - began


def expanding(runs: int) -> tuple[int, float, float]:
    """Apply and check 40 perturbations without pictures; return how many variants, the seconds, and
    the median milliseconds of one."""
    known = subjects("sample")
    perturbations = [one for one in chosen(core_suite()) if "pixels" not in one.name][:40]
    sources = (known.trajectories * (runs // len(known.trajectories) + 1))[:runs]
    took = []
    began = perf_counter()
    for one in perturbations:
        for source in sources:
            start = perf_counter()
            facts = known.facts[source.key]
            made = apply(one, source, facts)
            if not isinstance(made, NotApplicable):
                problems(one, source, made, facts)
                took.append(perf_counter() - start)
    return len(took), perf_counter() - began, 1000 * median(took)


async def contrasting(
    handle: ModelHandle, cases: Sequence[Contrast], reply_tokens: int
) -> list[tuple[bool | None, ...]]:
    """Ask a model for both traces of every case; return whether it was right, None without a
    usable reply."""
    options = UniversalVerifierOptions.model_validate(
        {
            **OPTIONS,
            "max_prompt_tokens": handle.max_prompt_tokens,
            "images": handle.images,
            "reply_tokens": reply_tokens,
        }
    )
    engines, gate = handle.open_engines(0), asyncio.Semaphore(handle.calls.concurrency)

    async def both(case: Contrast) -> tuple[bool | None, ...]:
        found = []
        for name, trace in (("a", case.a), ("b", case.b)):
            async with gate:
                asked = handle.ask(engines, 0, refresh=())
                right, reply = await decided_right(case, trace, asked, options)
            found.append(right)
            said = "no reply" if right is None else "right" if right else "wrong"
            print(
                f"{case.stage} {case.rule} {name}: {said}: {' '.join(reply.split())[:120]}",
                flush=True,
            )
        return tuple(found)

    try:
        return await asyncio.gather(*map(both, cases))
    finally:
        await engines.close()


def contrast(chosen_options: argparse.Namespace) -> int:
    """Print the pairs that a model decides right, by stage."""
    calls = CallConfig(
        base_url=chosen_options.base_url,
        concurrency=chosen_options.concurrency,
        timeout=chosen_options.timeout,
        max_tokens=chosen_options.reply_tokens,
    )
    handle = single_model(chosen_options.contrast, calls)
    stages = chosen_options.stage or ORDER
    cases = [case for case in contrasts() if case.stage in stages]
    if chosen_options.pairs < len(cases):
        rng = np.random.default_rng(chosen_options.seed)
        drawn = sorted(rng.choice(len(cases), chosen_options.pairs, replace=False))
        cases = [cases[number] for number in drawn]
    began = perf_counter()
    found = asyncio.run(contrasting(handle, cases, chosen_options.reply_tokens))
    print(f"\n{'stage':<16} {'pairs':>5} {'right':>5} {'traces':>6} {'right':>5} {'no reply':>8}")
    for name in (*stages, "all"):
        some = [f for case, f in zip(cases, found, strict=True) if name in (case.stage, "all")]
        single = [one for both in some for one in both]
        print(
            f"{name:<16} {len(some):>5} {sum(all(both) for both in some):>5} {len(single):>6} "
            f"{single.count(True):>5} {single.count(None):>8}"
        )
    print(f"{handle.model}, {perf_counter() - began:.0f} s")
    return 0


def main() -> int:
    """Simulate, time, print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--contrast", metavar="MODEL", help="ask this model for contrast cases")
    options.add_argument("--stage", nargs="+", choices=ORDER, help="their stages (default: all)")
    options.add_argument("--pairs", type=int, default=113, help="how many, drawn by the seed")
    options.add_argument("--base-url", help="of a server that speaks OpenAI's protocol")
    options.add_argument("--concurrency", type=int, default=8, help="traces at once")
    options.add_argument("--timeout", type=float, default=600, help="seconds for a reply")
    options.add_argument("--reply-tokens", type=int, default=1024)
    options.add_argument("--simulations", type=int, default=2000)
    options.add_argument("--runs", type=int, default=1000, help="runs that are expanded")
    options.add_argument("--seed", type=int, default=0)
    chosen_options = options.parse_args()
    if chosen_options.contrast:
        try:
            return contrast(chosen_options)
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
    simulations, rng = chosen_options.simulations, np.random.default_rng(chosen_options.seed)
    found = coverage(simulations, lambda: outcomes(rng))
    print(f"{simulations} simulations, {DESIGN.tasks} tasks of {DESIGN.runs} runs")
    for name, share in found.items():
        print(f"  {name:<36} {100 * share:.1f} %")
    others = in_other_designs(simulations // 4, rng)
    print(
        f"{simulations // 4} simulations of each design, all lower limits at once, the least of "
        "them, and the least upper one"
    )
    for name, shares in others.items():
        print(f"  {name:<36} {', '.join(f'{100 * share:.1f} %' for share in shares.values())}")
    print(f"100,000 verdicts on variants measured in {measuring():.1f} s")
    variants, seconds, each = expanding(chosen_options.runs)
    print(
        f"40 perturbations of {chosen_options.runs} runs: {variants} variants made and checked in "
        f"{seconds:.0f} s, median {each:.2f} ms"
    )
    held = [*found.values(), *(share for each in others.values() for share in each.values())]
    return int(min(held) < 0.93)


if __name__ == "__main__":
    sys.exit(main())
