"""Write DIFFERENCES.md: every difference between the two modes, by examples that were just run.

``python -m trajudge.rules.audit.differences`` rewrites the file; a test holds it in step.
"""

from __future__ import annotations

from pathlib import Path

from trajudge.rules.audit import verified
from trajudge.rules.values import differences as values
from trajudge.rules.verified.network import DEFAULT_PORTS, named

PATH = Path(__file__).parents[1] / "DIFFERENCES.md"

_HEAD = """\
# How `sound` differs from `release-1.2.3`

`sound` is the default. `release-1.2.3` does what version 1.2.3 of the published package does, for
comparison with published results. Both columns of verdicts are computed from the examples by
`python -m trajudge.rules.audit.differences`.

## Values
"""

_SITES = """
## Where the sites are

`--site SITE=URL` and `--sites FILE` give the sites' addresses. Without them `release-1.2.3` takes
the hosts of the trace in their order, so that a trace of a foreign site can pass. `sound` takes a
site to be the one host whose pages are on the benchmark's own port for it ({ports}), and says so in
the result's `notes` and below the summary; a host on another port, or two hosts on that one, are no
evidence of where the site is, and what asks for the site is *unknown*.
"""
_RUNS = "\n## Runs\n"
_PATTERNS = """
## Patterns of addresses

A specification's pattern `^…$` is held against an address without query and fragment, in an answer
and in a request alike; the query is compared apart, and one that the specification does not ask for
(`query_params`) or ignore (`ignored_query_params`) is a difference: `^http://a.test/.*$` is not
`http://a.test/1?b=2`. Both modes agree on this."""

_OPEN = """
## What a specification cannot tell

`sound` calls *unknown*, where the specification says so, an answer of which only the shape is known
(`shape_only`) and requests after which the site was changed again (`changing_urls`): see schema.md.
`release-1.2.3` has no such fields, and passes both.
"""
_UNEQUAL = """
## Where `release-1.2.3` is not the package

Letters of other scripts than Latin, Greek and Cyrillic (Chinese, Japanese, Korean, Arabic, Hebrew,
the scripts of India, and others), rare letters of these three, vowel marks, and Braille stay as
they are here; the package spells them in Latin letters (`北京` is `bei jing`). Two texts that are
equal letter by letter are equal in both; a `location-name` in which one side alone has such letters
may be nearer or farther, and a text may equal its own transliteration there alone. A value of which
the package does not come back is none here.
"""
_DIALECTS = """
## Dialects of task files

Each is read as its own harness reads it. A harness's own words in `trajudge.rules.dialects`:

| | WebArena | WebChoreArena | VisualWebArena | WebArena-Lite |
|---|---|---|---|---|
| alternatives in an answer's `must_include` | none | ` \\|or\\| `, any letter case | ` \\|OR\\| ` | ` \\|OR\\| ` |
| a reference is part of the answer | anywhere; a lone character as a word | as WebArena | one word as a word | also between slashes |
| score of a list | all or nothing | the share that holds | all or nothing | all or nothing |
| the last address | holds the reference's base, and its query's values | the same, letter case aside | equals it, one `/` at the end aside; with `GOLD in PRED` holds it | as VisualWebArena |
| `a//` for `a` | matches | matches | fails (`EXACT`) | fails (`EXACT`) |
| a fuzzy match asks | a question each | one, joined by `; ` | a question each | one, joined by `, ` |
| also | | `or` | `must_exclude`, `one_of`, `required_values`, pictures | as VisualWebArena |

Differences that are left: what a model or a picture decides is *unknown* (there it is asked for). A
text is cut into words by the conventions of NLTK's tokenizer, without its trained model of
sentences: a full stop before a space ends a word, but for abbreviations such as `e.g.`. A helper
function's number was recorded as text, and is read as one where a number is asked for. An
alternative of one character in a list of one passes every answer in WebChoreArena's harness, and
here: the linter calls it `vacuous`.
"""  # noqa: E501 - the rows of a table
_COUNTS = """
## Findings on published task files

`trajudge rules lint` on WebChoreArena's 532 tasks gives 614 findings on 369 of them: 254
`response_substring`, 140 `page_substring`, 112 `number_run_on`, 71 `locator_substring`, 24
`llm_evaluation`, 5 `page_content`, 5 `dead_field`, 2 `dead_marker`, 1 `given_away`. By the rules of
the original harness (`--dialect webarena`) 49 more markers would be dead, which its own reads.
"""


def document() -> str:
    """Return the whole file."""
    ports = ", ".join(f"{named(site)} {port}" for site, port in DEFAULT_PORTS.items())
    sites = _SITES.format(ports=ports)
    tables = [_HEAD, *values.table(), _RUNS, *verified.table()]
    return "\n".join([*tables, _PATTERNS, sites + _OPEN + _UNEQUAL + _DIALECTS + _COUNTS])


if __name__ == "__main__":
    PATH.write_text(document(), encoding="utf-8")
