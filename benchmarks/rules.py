"""Time and verdicts on runs of WebArena Verified, compared with the published package.

``python -m benchmarks.rules [--data DIR] [--package PYTHON]`` judges the same runs with both: a
passing run of every task, built by ``rules.audit.verified``, in memory; and the demo with its HAR
file read from disk. Both alternate, and times are the minimum of several repeats: processor time
for one process, wall time for workers. ``DIR`` has ``webarena-verified.json`` and ``demo/108``
(default: ``webarena`` in ``TRAJUDGE_REAL_DATA``); ``PYTHON`` is the interpreter of an environment
with the package, which is created if none is given.

``--cases N`` compares verdicts instead: pairs of values, runs that are unrelated to their task, and
honest runs with one to three changes, all drawn from the seed, are judged by both. Differences are
printed; the exit code is 1 if there are any.

``--tests CHECKOUT`` runs the package's own tests of its evaluation, except skipped ones, from a
checkout of its release, with its evaluator and with the release mode. The exit code is 1 if a test
has another result.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.rules.against_package.comparing import SHARES, Comparison, Tally
from tests.rules.against_package.peer import PACKAGE, PYTHON, PackageProcess
from trajudge.util.errors import UserError
from trajudge.util.machine import NoEnvironment

ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "tests/rules/against_package/own_tests.py"
PLUGIN_OPTIONS = "TRAJUDGE_PACKAGE_TESTS"  # own_tests.OPTIONS: it is imported by pytest alone
PYTEST = ("-p", "no:cacheprovider", "-p", "no:xdist", "tests/api")
REPEATS = 5
ROUNDS = 4  # in which ours and the package take turns
WORKS = ("synthetic", "parsed", "disk")
_IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"

# What the package is asked to do, in an environment where this project is not installed.
_RELEASE = """
import json, logging, sys, time
from pathlib import Path
logging.disable(logging.CRITICAL)
from webarena_verified.api.webarena_verified import WebArenaVerified
from webarena_verified.types.config import WebArenaVerifiedConfig
from webarena_verified.types.tracing import NetworkTrace
runs, demo, repeats = json.load(open(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3])
traces = {}
judges = {}
for task_id, answer, entries, hosts in runs:
    key = json.dumps(hosts)
    if key not in judges:
        environments = {name: {"urls": urls} for name, urls in hosts.items()}
        judges[key] = WebArenaVerified(config=WebArenaVerifiedConfig(environments=environments))
    traces[task_id] = (judges[key], answer, NetworkTrace.from_content(entries))
def all_of_them():
    for task_id, (judge, answer, trace) in traces.items():
        judge.evaluate_task(task_id=task_id, agent_response=answer, network_trace=trace)
judge = WebArenaVerified()
trace = NetworkTrace.from_content(demo / "network.har")
answer = (demo / "agent_response.json").read_text()
def one_parsed():
    judge.evaluate_task(task_id=108, agent_response=answer, network_trace=trace)
def one_from_disk():
    judge.evaluate_task(task_id=108, agent_response=(demo / "agent_response.json").read_text(),
                        network_trace=demo / "network.har")
works = {"synthetic": (all_of_them, len(traces)), "parsed": (one_parsed, 1),
         "disk": (one_from_disk, 1)}
for name in sys.stdin:
    work, count = works[name.strip()]
    times = []
    for _ in range(repeats):
        start = time.process_time(); work(); times.append((time.process_time() - start) / count)
    print(min(times), flush=True)
"""


def _best(work: Callable[[], object], count: int = 1) -> float:
    """Return the processor seconds per unit of work, the minimum of the repeats."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        times.append((time.process_time() - start) / count)
    return min(times)


def _best_wall(work: Callable[[], object]) -> float:
    """Return the wall seconds, the minimum of the repeats, for work in other processes."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _imported(python: str, module: str) -> float:
    run = [python, "-c", _IMPORT.format(module)]
    times = [
        subprocess.run(run, check=True, capture_output=True, text=True) for _ in range(REPEATS)
    ]
    return min(float(done.stdout) for done in times)


Work = tuple[Callable[[], object], int]  # and how many runs it judges


def ours(data: Path, mode: str) -> tuple[dict[str, Work], list[object]]:
    """Return trajudge's work, and the synthetic runs for the package."""
    from trajudge.rules.audit.verified import synthesise
    from trajudge.rules.values import Mode
    from trajudge.rules.verified.evaluator import VerifiedEvaluator
    from trajudge.rules.verified.network import load_trace
    from trajudge.rules.verified.tasks import load_tasks

    tasks = load_tasks(data / "webarena-verified.json")
    demo = next(task for task in tasks if task.task_id == 108)
    made = [(task, found.run) for task in tasks if (found := synthesise(task, Mode(mode))).run]
    judged = [
        (VerifiedEvaluator(mode=Mode(mode), hosts=run.hosts), task, run.answer, run.trace)
        for task, run in made
    ]

    def all_of_them() -> None:
        for evaluator, task, answer, trace in judged:
            trace.memory.clear()
            evaluator.evaluate(task, answer, trace)

    one = VerifiedEvaluator(mode=Mode(mode))
    folder = data / "demo/108"
    answer = (folder / "agent_response.json").read_bytes()
    trace = load_trace(folder / "network.har")

    def from_disk() -> None:
        said = (folder / "agent_response.json").read_bytes()
        one.evaluate(demo, said, load_trace(folder / "network.har"))

    def parsed() -> None:
        trace.memory.clear()
        one.evaluate(demo, answer, trace)

    works: dict[str, Work] = {
        "synthetic": (all_of_them, len(judged)),
        "parsed": (parsed, 1),
        "disk": (from_disk, 1),
    }
    return works, [(task.task_id, run.answer, run.entries, run.hosts) for task, run in made]


Clock = Callable[[str], float]  # seconds of the processor a run, by the name of the work


@contextmanager
def released(python: str, data: Path, runs: list[object]) -> Iterator[Clock]:
    """Run the package in its own process, which does a piece of work on request."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "runs.json"
        path.write_text(json.dumps(runs))
        command = [python, "-c", _RELEASE, str(path), str(data / "demo/108"), str(REPEATS)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
            assert process.stdin and process.stdout

            def told(name: str, process: subprocess.Popen[str] = process) -> float:
                assert process.stdin and process.stdout
                print(name, file=process.stdin, flush=True)
                return float(process.stdout.readline())

            yield told
            process.stdin.close()


def in_turn(clocks: dict[str, Clock]) -> dict[str, dict[str, float]]:
    """Return the minimum time of each by work. All alternate, ``ROUNDS`` times, so that other
    load affects them equally."""
    least = {name: dict.fromkeys(WORKS, math.inf) for name in clocks}
    for _ in range(ROUNDS):
        for work in WORKS:
            for name, clock in clocks.items():
                least[name][work] = min(least[name][work], clock(work))
    return least


def large_har(data: Path) -> tuple[float, float, float]:
    """Return megabytes, seconds and megabytes of peak memory for a HAR of 25 MB (Linux only)."""
    script = (
        "import re, sys, time; from pathlib import Path; "
        "from trajudge.rules.verified.network import load_trace; "
        "status = Path('/proc/self/status'); "
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', status.read_text())[1]) / 1024; "
        "t = time.perf_counter(); "
        "trace = load_trace(Path(sys.argv[1])); len(trace.documents); "
        "print(time.perf_counter() - t, peak())"
    )
    entries = json.loads((data / "demo/108/network.har").read_text())["log"]["entries"]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "large.har"
        copies = 25_000_000 // len(json.dumps(entries)) + 1
        path.write_text(json.dumps({"log": {"entries": entries * copies}}))
        size = path.stat().st_size / 1e6
        run = subprocess.run(
            [sys.executable, "-c", script, str(path)], check=True, capture_output=True, text=True
        )
    seconds, memory = map(float, run.stdout.split())
    return size, seconds, memory


def _quietly(done: int, of: int) -> None:
    return


def _cpu() -> float:
    """Return the processor seconds of this process and its ended children."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def scaling(data: Path, runs: int) -> list[tuple[int, float, float]]:
    """Return by workers the runs per second over folders of the demo's files, and the processor
    seconds per run, which do not depend on other load."""
    from trajudge.rules.verified.evaluator import VerifiedEvaluator
    from trajudge.rules.verified.runs import Batch, judge_all
    from trajudge.rules.verified.tasks import load_tasks

    tasks = {str(task.task_id): task for task in load_tasks(data / "webarena-verified.json")}
    ids = list(tasks)[:runs]
    found = []
    with TemporaryDirectory() as folder:
        for task_id in ids:
            (Path(folder) / task_id).symlink_to((data / "demo/108").resolve())
        batch = Batch(
            tasks=tasks, folder=Path(folder), ids=ids, evaluator=VerifiedEvaluator(), steps={}
        )
        for workers in (1, 2, 4):
            if workers <= (os.cpu_count() or 1):
                before = _cpu()
                seconds = _best_wall(partial(judge_all, batch, workers, _quietly))
                cpu = (_cpu() - before) / REPEATS / len(ids)
                found.append((workers, len(ids) / seconds, cpu))
    return found


def measure(data: Path, python: Path, workers_runs: int) -> None:
    """Measure the time of both, and print it."""
    sound, _ = ours(data, "sound")
    mine, runs = ours(data, "release-1.2.3")
    clocks: dict[str, Clock] = {
        "sound": lambda name: _best(*sound[name]),
        "1.2.3 mode": lambda name: _best(*mine[name]),
    }
    with released(str(python), data, runs) as package:
        times = in_turn({**clocks, "package": package})
    print("processor ms a task".ljust(28) + "".join(f"{name:>12}" for name in times))
    for work in WORKS:
        row = "".join(f"{1e3 * least[work]:12.3f}" for least in times.values())
        row += f"{times['package'][work] / times['sound'][work]:8.1f} times sound"
        print(f"{work:28}{row}")
    here = _imported(sys.executable, "trajudge.rules.verified.evaluator")
    there = _imported(str(python), "webarena_verified.api")
    print(f"import: {here:.3f} s, the package {there:.3f} s")
    size, seconds, memory = large_har(data)
    print(f"a HAR of {size:.1f} MB: {seconds:.3f} s, {memory:.0f} MB at most, Python included")
    measured = scaling(data, workers_runs)
    for workers, rate, cpu in measured:
        ratio = rate / measured[0][1]
        print(
            f"{workers} workers: {rate:.0f} runs of the demo's files a second, {ratio:.2f} times "
            f"one worker's; {1e3 * cpu:.2f} ms of processor time a run"
        )


def compare(python: Path, cases: int, seed: int, shown: int) -> int:
    """Compare verdicts on drawn cases, print the differences, and return their number."""
    started = time.perf_counter()
    with PackageProcess(python) as process:
        tally = Comparison(process, seed, shown).run(cases)
    for disagreement in tally.disagreements:
        print(disagreement, end="\n\n")
    print_tally(tally, time.perf_counter() - started, seed)
    return sum(tally.differing.values())


def own_tests(python: Path, checkout: Path, shown: int) -> int:
    """Run the package's tests with both evaluators, and return how many results differ."""
    script = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = subprocess.run([python, "-c", script], check=True, capture_output=True, text=True)
    site = found.stdout.strip()
    results = {}
    for name, ours in (("package", False), ("1.2.3 mode", True)):
        with TemporaryDirectory() as folder:
            out = Path(folder) / "outcomes.json"
            options = json.dumps({"site": site, "ours": ours, "out": str(out)})
            paths = map(str, (PLUGIN.parent, ROOT))
            variables = {PLUGIN_OPTIONS: options, "PYTHONPATH": os.pathsep.join(paths)}
            before = _cpu()
            ended = subprocess.run(  # noqa: PLW1510 - a test may fail
                [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN.stem, *PYTEST],
                cwd=checkout,
                env=os.environ | variables,
                capture_output=True,
                text=True,
            )
            if not out.exists():
                raise UserError(f"--tests {checkout}: {ended.stdout[-2000:]}{ended.stderr[-2000:]}")
            results[name] = json.loads(out.read_text())
        outcomes = results[name]["outcomes"]
        passed = list(outcomes.values()).count("passed")
        print(
            f"{name}: {passed:,} of {len(outcomes):,} tests pass, {results[name]['runs']:,} runs "
            f"judged, {_cpu() - before:.1f} s of processor time"
        )
    theirs, mine = (result["outcomes"] for result in results.values())
    differing = sorted(one for one in theirs | mine if theirs.get(one) != mine.get(one))
    print(f"{len(differing):,} tests end differently")
    for test in differing[:shown]:
        print(f"{test}: package {theirs.get(test)}, 1.2.3 mode {mine.get(test)}")
    return len(differing)


def print_tally(tally: Tally, seconds: float, seed: int) -> None:
    print(f"{'class (seed ' + str(seed) + ')':24}{'cases':>9}{'differing':>11}  package's verdicts")
    for label in SHARES:
        verdicts = ", ".join(
            f"{verdict} {count:,}"
            for (where, verdict), count in sorted(tally.verdicts.items())
            if where == label
        )
        print(f"{label:24}{tally.cases[label]:9,}{tally.differing[label]:11,}  {verdicts}")
    total = sum(tally.cases.values())
    print(f"{'all':24}{total:9,}{sum(tally.differing.values()):11,}")
    print(
        f"processor time: package {tally.package.cpu:.1f} s, ours {tally.ours.cpu:.1f} s; "
        f"{seconds:.1f} s in all"
    )


def main() -> int:
    """Measure or compare; the exit code is 1 if the two disagree."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.rules")
    real = os.environ.get("TRAJUDGE_REAL_DATA", ".")
    made.add_argument("--data", type=Path, default=Path(real) / "webarena", metavar="DIR")
    made.add_argument(
        "--package", metavar="PYTHON", help=f"where the package is installed; also {PYTHON}"
    )
    made.add_argument("--runs", type=int, default=400, help="runs for the worker measurement")
    made.add_argument("--cases", type=int, metavar="N", help="compare the verdicts on N cases")
    made.add_argument("--seed", type=int, default=0, help="of the cases")
    made.add_argument("--show", type=int, default=20, help="differences to print")
    made.add_argument("--tests", type=Path, metavar="CHECKOUT", help="run the package's own tests")
    options = made.parse_args()
    try:
        python = PACKAGE.python(options.package)
        if options.tests:
            return int(own_tests(python, options.tests.resolve(), options.show) > 0)
    except (NoEnvironment, UserError) as error:
        print(error, file=sys.stderr)
        return 2
    if options.cases:
        return int(compare(python, options.cases, options.seed, options.show) > 0)
    measure(options.data, python, options.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
