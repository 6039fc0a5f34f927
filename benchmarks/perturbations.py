"""Every perturbation on every run of the bundled sample: is it valid, and does the checker agree?

``python -m benchmarks.perturbations`` applies the catalogue to all runs, checks each variant
(``trajudge.robustness.validity``), asks the checker of the run's application again with the goal
and the last message that the variant has, on the state that the run left, and prints how often its
labels are those of the declared relation, with the time per variant. Exit code 1 if one is not.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from statistics import median
from time import perf_counter

from trajudge.environments.model.config import Config
from trajudge.environments.recheck.rechecking import labels_again
from trajudge.robustness.apply import apply, problems
from trajudge.robustness.catalogue import catalogue
from trajudge.robustness.model import NotApplicable, truth_after
from trajudge.robustness.perturb import state_of
from trajudge.robustness.subjects import FACTS, read_by_key, subjects


def main() -> int:
    """Measure, and print one line a family."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=1000, help="runs of each perturbation")
    options.add_argument("--data", default="sample")
    chosen = options.parse_args()
    loaded = subjects(chosen.data)
    assert loaded.folder is not None, "the data has no facts.jsonl"
    recorded = read_by_key(loaded.folder / FACTS)
    rows: dict[str, Counter[str]] = {family: Counter() for family in "ABCDE"}
    seconds: dict[bool, list[float]] = {True: [], False: []}
    wrong: list[str] = []
    changes = [one for one in catalogue().values() if one.asking is None]
    for one in changes:
        left = chosen.runs
        for source in loaded.trajectories:
            facts = loaded.facts[source.key]
            began = perf_counter()
            made = apply(one, source, facts)
            took = perf_counter() - began
            if isinstance(made, NotApplicable) or not left:
                continue
            left -= 1
            drawn = one.name.startswith(("picture", "inject-pixels", "foreign"))
            seconds[drawn].append(took)
            row = rows[one.family]
            row["variants"] += 1
            bad = problems(one, source, made, facts)
            row["valid"] += not bad
            known, config = state_of(source, made, facts, recorded)
            labels = labels_again(made.trajectory, known, Config.model_validate(config))
            for question, relation in made.relations.items():
                truth = truth_after(relation, getattr(facts, question))
                if truth is None:
                    continue
                row["claims"] += 1
                row["agree"] += getattr(labels, question) is truth
                if getattr(labels, question) is not truth:
                    bad.append(f"{question}: {truth} declared, {getattr(labels, question)} found")
            wrong += [f"{one.name}, {source.key}: {text}" for text in bad]
    print("family  perturbations  variants   valid  claims on the truth  checker agrees")
    for family, row in rows.items():
        number = sum(one.family == family for one in changes)
        print(
            f"{family:<6} {number:>14} {row['variants']:>9} {row['valid']:>7} "
            f"{row['claims']:>20} {row['agree']:>15}"
        )
    for drawn, times in seconds.items():
        kind = "drawn" if drawn else "text"
        print(f"{kind}: {len(times)} variants, median {1000 * median(times):.2f} ms a variant")
    print("\n".join(wrong[:40]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
