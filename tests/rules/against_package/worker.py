"""Judge cases with the installed package; run by that package's own interpreter.

Standard input holds one JSON list of cases a line, standard output one list of replies a line.
Nothing of this project is imported here: it is not installed there.
"""

from __future__ import annotations

import importlib
import json
import logging
import resource
import signal
import sys
import time
from typing import Any

SECONDS = 10.0  # of processor time for one case

Case = dict[str, Any]


class OutOfTime(BaseException):
    """No ``Exception``: the package catches those and goes on."""


def _stop(*_: object) -> None:
    raise OutOfTime


class Package:
    """The package's classes, and one evaluator for each configuration of the sites."""

    def __init__(self) -> None:
        logging.disable(logging.CRITICAL)
        api = "webarena_verified.api.internal.evaluator"
        # It reads and hashes its task file for every run; the sum is in no comparison here.
        importlib.import_module(api).compute_data_file_checksum = lambda _: ""  # type: ignore[attr-defined]
        self.kinds = importlib.import_module("webarena_verified.core.evaluation.data_types")
        self.api = importlib.import_module("webarena_verified.api.webarena_verified")
        self.config = importlib.import_module("webarena_verified.types.config")
        self.evaluators: dict[str, Any] = {}

    def value(self, case: Case) -> Case:
        """Tell whether two values of a kind are equal, or which of them is none."""
        kind = self.kinds.TYPE_REGISTRY[case["kind"]]
        try:
            expected = kind(case["expected"])
        except Exception as error:
            return {"verdict": "error", "reason": f"expected: {error}"}
        try:
            actual = kind(case["actual"])
        except Exception as error:
            return {"verdict": "different", "reason": f"actual: {error}"}
        try:
            return {"verdict": "equal" if expected == actual else "different", "reason": ""}
        except Exception as error:
            return {"verdict": "error", "reason": str(error)}

    def run(self, case: Case) -> Case:
        """Evaluate a run of a task."""
        evaluator = self._evaluator(case["hosts"])
        if "task" in case:
            context = self._context(case, evaluator.config)
            made = evaluator._evaluator.evaluate_task(context=context)
        else:
            made = evaluator.evaluate_task(
                task_id=case["task_id"],
                agent_response=case["answer"],
                network_trace=case["entries"],
            )
        reasons = [made.error_msg] if made.error_msg else []
        for part in made.evaluators_results:
            reasons += [part.error_msg] if part.error_msg else []
            for one in part.assertions or ():
                reasons.append(f"{one.assertion_name}: {'; '.join(map(str, one.assertion_msgs))}")
        return {
            "verdict": str(made.status.value),
            "score": made.score,
            "reason": " | ".join(reasons),
        }

    def _context(self, case: Case, config: Any) -> Any:
        """Return what the package needs to judge a run of a task that is not in its file."""
        load = importlib.import_module
        made: Any = load("webarena_verified.types.eval").TaskEvalContext
        task = load("webarena_verified.types.task").WebArenaVerifiedTask
        trace = load("webarena_verified.types.tracing").NetworkTrace
        return made(
            task=task.model_validate(case["task"]),
            agent_response_raw=case["answer"],
            network_trace=trace.from_content(case["entries"]),
            config=config,
        )

    def _evaluator(self, hosts: dict[str, list[str]]) -> Any:
        key = json.dumps(hosts)
        if key not in self.evaluators:
            places = {name: {"urls": urls} for name, urls in hosts.items()} or None
            config = self.config.WebArenaVerifiedConfig(environments=places)
            self.evaluators[key] = self.api.WebArenaVerified(config=config)
        return self.evaluators[key]

    def tasks(self) -> str:
        """Return where the package's own task file is."""
        return str(self.config.WebArenaVerifiedConfig().test_data_file)


def judged(package: Package, case: Case) -> Case:
    """Return the reply to one case, whatever happens, within its time."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return package.value(case) if "kind" in case else package.run(case)
    except OutOfTime:
        return {"verdict": "no end", "reason": f"stopped after {SECONDS} s of processor time"}
    except Exception as error:
        return {"verdict": "raised", "reason": f"{type(error).__name__}: {error}"}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def main() -> None:
    """Answer until the input ends."""
    signal.signal(signal.SIGPROF, _stop)
    resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
    package = Package()
    sys.stdout.write(json.dumps({"tasks": package.tasks()}) + "\n")
    sys.stdout.flush()
    for line in sys.stdin:
        started, used = time.perf_counter(), time.process_time()
        replies = [judged(package, case) for case in json.loads(line)]
        spent = [time.perf_counter() - started, time.process_time() - used]
        sys.stdout.write(json.dumps({"replies": replies, "spent": spent}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
