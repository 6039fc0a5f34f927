"""The rules of WebArena and its descendants beside each harness's own source, case by case.

python -m benchmarks.rules_against_original --tasks test.raw.json --harness DIR

``DIR`` is a checkout of the dialect's harness (github.com/web-arena-x/webarena, for one). Of its
``evaluation_harness/evaluators.py`` the classes that compare answers and addresses are run, and
nothing else. Every reference address of the tasks is held against itself with one change
(slashes doubled, added and left out, parameters, case, escapes, hosts, neighbouring paths) and
against the addresses of other tasks; every reference answer against itself with one change. Answers
that a model judges are left out, and where NLTK is not installed those that are cut into tokens.
"""

from __future__ import annotations

import argparse
import ast
import collections
import json
import sys
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NamedTuple, Optional, Union

import msgspec
from msgspec import UNSET

from trajudge.rules.verdict import Outcome
from trajudge.rules.webarena.evaluator import WebArenaEvaluator, alternatives, options_of
from trajudge.rules.webarena.tasks import Task, Trace, load_tasks

SITES = {
    "__SHOPPING__": "http://shop.example:7770",
    "__SHOPPING_ADMIN__": "http://shop.example:7780/admin",
    "__REDDIT__": "http://forum.example:9999",
    "__GITLAB__": "http://lab.example:8023",
    "__WIKIPEDIA__": "http://wiki.example:8888/wiki",
    "__MAP__": "http://map.example:3000",
    "__HOMEPAGE__": "http://home.example:4399",
}
OTHERS = 75  # addresses of other tasks that each reference is held against
_CLASSES = (
    *("Evaluator", "NumericEvaluator", "StringEvaluator"),
    *("URLEvaluator", "URLExactEvaluator"),
)

Evaluator = Callable[[list[dict[str, Any]], Path, Any], float]


class ChangedRun(NamedTuple):
    """A run of a task, and what was changed in it."""

    change: str
    task: Task
    url: str
    answer: str


class HarnessDifference(NamedTuple):
    """A case that the harness and our rules judge otherwise; None: the harness raised."""

    case: ChangedRun
    harness: bool | None
    ours: Outcome


def harness(folder: Path) -> dict[str, Evaluator]:
    """Return the harness's evaluators by the name that a task gives them. Only its own classes are
    run: what the file imports is not needed for them."""
    path = folder / "evaluation_harness" / "evaluators.py"
    tree = ast.parse(path.read_text())
    kept: list[ast.stmt] = [
        node for node in tree.body if isinstance(node, ast.ClassDef) and node.name in _CLASSES
    ]
    names: dict[str, Any] = {
        **{"json": json, "collections": collections, "urllib": urllib, "Any": Any, "Path": Path},
        **{"beartype": lambda function: function, "Page": Any, "CDPSession": Any},
        **{"PseudoPage": Any, "Trajectory": Any, "Action": Any, "StateInfo": Any},
        **{"Union": Union, "Optional": Optional, "is_bearable": lambda *_: True},
        **{"word_tokenize": _tokenizer()},
    }
    exec(compile(ast.Module(kept, []), str(path), "exec"), names)
    made: dict[str, Evaluator] = {
        "string_match": names["StringEvaluator"](),
        "url_match": (names.get("URLEvaluator") or names["URLExactEvaluator"])(),
    }
    return made


def _tokenizer() -> Callable[[str], list[str]] | None:
    """Return NLTK's tokenizer of words; None where it is not installed."""
    try:
        from nltk.tokenize.destructive import NLTKWordTokenizer  # type: ignore[import-not-found]
    except ImportError:
        return None
    tokenize: Callable[[str], list[str]] = NLTKWordTokenizer().tokenize
    return tokenize


def changed_addresses(url: str) -> Iterator[tuple[str, str]]:
    """Yield an address with one change each, and the change's name."""
    start, mark, query = url.partition("?")
    origin = start[: start.find("/", start.find("://") + 3)]
    path = start.removeprefix(origin)
    tail = mark + query
    yield "as it is", url
    for end in ("/", "//", "#top", "?", "&", "/#top", " ", "/more", "more"):
        yield f"{end!r} at the end", url + end
    for at in range(len(path)):
        if path[at] == "/":
            yield "a slash doubled", origin + path[:at] + "/" + path[at:] + tail
            yield "a slash left out", origin + path[:at] + path[at + 1 :] + tail
    yield "a slash before the query", f"{start.rstrip('/')}/{tail}"
    yield "two slashes before the query", f"{start.rstrip('/')}//{tail}"
    yield "no slash before the query", start.rstrip("/") + tail
    yield "parameters of the path", f"{start};a=b{tail}"
    yield "in capitals", url.upper()
    yield "the path in capitals", origin + path.upper() + tail
    yield "escaped", origin + urllib.parse.quote(path) + tail
    yield "without escapes", urllib.parse.unquote(url)
    yield "another scheme", url.replace("http://", "https://")
    yield "no scheme", url.removeprefix("http://")
    yield "another port", f"{origin}1{path}{tail}"
    yield "another host", f"http://other.example{path}{tail}"
    yield "a path before it", f"{origin}/before{path}{tail}"
    yield "the page above", origin + path.rpartition("/")[0] + tail
    yield "inside another address", f"http://other.example/?to={url}"
    yield "an empty page", "about:blank"
    yield "no address", ""
    yield from _changed_queries(start, query)


def _changed_queries(start: str, query: str) -> Iterator[tuple[str, str]]:
    def with_query(pairs: Sequence[tuple[str, str]]) -> str:
        return f"{start}?{urllib.parse.urlencode(pairs)}" if pairs else start

    pairs = urllib.parse.parse_qsl(query, keep_blank_values=True)
    yield "one parameter more", with_query([*pairs, ("page", "2")])
    yield "another order", with_query(pairs[::-1])
    for at, (name, value) in enumerate(pairs):
        before, after = pairs[:at], pairs[at + 1 :]
        yield "a parameter left out", with_query([*before, *after])
        yield "another value", with_query([*before, (name, f"{value}x"), *after])
        yield "no value", with_query([*before, (name, ""), *after])
        yield "twice", with_query([*pairs, (name, "other")])
        yield "its name in capitals", with_query([*before, (name.upper(), value), *after])


def changed_answers(answer: str) -> Iterator[tuple[str, str]]:
    """Yield an answer with one change each, and the change's name."""
    yield "as it is", answer
    yield "in capitals", answer.upper()
    for mark in ("'", '"', " ", "\n", "“"):
        yield f"{mark!r} around it", f"{mark}{answer}{mark}"
    yield "two pairs of quotes", f"\"'{answer}'\""
    yield "an opening quote", f"'{answer}"
    yield "in a sentence", f"The answer is {answer}."
    yield "its beginning", answer[: len(answer) // 2]
    yield "its end", answer[len(answer) // 2 :]
    yield "backwards", answer[::-1]
    yield "without spaces", answer.replace(" ", "")
    yield "twice", f"{answer} {answer}"
    yield "nothing", ""


def cases(tasks: Sequence[Task]) -> Iterator[ChangedRun]:
    """Yield the runs of all tasks that the harness decides without a browser and a model."""
    references = [
        url for task in tasks if "url_match" in task.eval.eval_types for url in _references(task)
    ]
    for at, task in enumerate(tasks):
        if task.eval.eval_types == ("url_match",):
            for url in _references(task):
                for change, found in changed_addresses(url):
                    yield ChangedRun(change, task, found, "")
            for step in range(1, OTHERS + 1):
                other = references[(at + 7 * step) % len(references)]
                yield ChangedRun("another task's", task, other, "")
        elif task.eval.eval_types == ("string_match",) and (wanted := _wanted(task)) is not None:
            for change, answer in changed_answers(wanted):
                yield ChangedRun(change, task, "about:blank", answer)


def _references(task: Task) -> list[str]:
    return [placed(url) for url in alternatives(task.eval.reference_url or "")]


def placed(text: str) -> str:
    """Return the text with the sites' addresses."""
    for placeholder, url in SITES.items():
        text = text.replace(placeholder, url)
    return text


def _wanted(task: Task) -> str | None:
    """Return the answer that a task asks for; None where a model or a tokenizer decides."""
    answers = task.eval.reference_answers
    if answers is None or answers.fuzzy_match is not UNSET:
        return None
    if answers.exact_match is not UNSET:
        return answers.exact_match
    included = answers.must_include or ()
    words = task.harness.whole_words != "lone"
    lone = len(included) == 1 and len(included[0].strip("'\" ")) == 1
    if (words or lone) and _tokenizer() is None:
        return None
    return ", ".join(options_of(text, task.harness)[-1] for text in included)


def compared(
    run: Sequence[ChangedRun], evaluators: dict[str, Evaluator]
) -> list[HarnessDifference]:
    """Judge every case by both, and return those on which they differ."""
    differing = []
    ours = WebArenaEvaluator(sites=SITES)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "task.json"
        for case in run:
            path.write_text(_configuration(case.task))
            (kind,) = case.task.eval.eval_types
            held: bool | None
            try:
                last = [{}, {"answer": case.answer}]
                held = evaluators[kind](last, path, SimpleNamespace(url=case.url)) == 1
            except Exception:  # the harness ends: nothing passes
                held = None
            outcome = ours.evaluate(case.task, case.answer, Trace(url=case.url)).outcome
            if (outcome is Outcome.PASS) is not bool(held):
                differing.append(HarnessDifference(case, held, outcome))
    return differing


def _configuration(task: Task) -> str:
    """Return the task as the harness reads it, with the sites' addresses."""
    spec = task.eval
    url = placed(spec.reference_url or "")
    record: dict[str, Any] = {
        "reference_answers": spec.reference_answers or {},
        "reference_url": url,
    }
    if spec.url_note is not UNSET:
        record["url_note"] = spec.url_note
    return msgspec.json.encode({"intent": task.intent, "eval": record}).decode()


def main() -> int:
    """Judge all cases, print the counts and what differs; return 1 if anything does."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.rules_against_original")
    made.add_argument("--tasks", type=Path, required=True, help="test.raw.json")
    made.add_argument("--harness", type=Path, required=True, help="a checkout of the harness")
    made.add_argument("--show", type=int, default=20, help="differences to print")
    made.add_argument("--dialect", help="dialect of the tasks (default: recognised)")
    options = made.parse_args()
    run = list(cases(load_tasks(options.tasks, options.dialect, keep_flawed=True)))
    differing = compared(run, harness(options.harness))
    for one in differing[: options.show]:
        spec = one.case.task.eval
        print(f"task {one.case.task.task_id}, {one.case.change}: harness {one.harness}, ours")
        print(f"    {one.ours.value}: {one.case.url!r} {one.case.answer!r} for", end=" ")
        print(placed(spec.reference_url or "") or spec.reference_answers)
    for kind, label in (("url_match", "addresses"), ("string_match", "answers")):
        total = sum(case.task.eval.eval_types == (kind,) for case in run)
        apart = Counter(
            one.harness for one in differing if one.case.task.eval.eval_types == (kind,)
        )
        print(
            f"{label}: {total:,} cases; ours passes {apart[False] + apart[None]} that the harness "
            f"does not, and not {apart[True]} that it does"
        )
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
