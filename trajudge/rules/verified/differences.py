"""Write DIFFERENCES.md: every difference between the two modes, by examples that were just run.

``python -m trajudge.rules.verified.differences`` rewrites the file; a test holds it in step.
"""

from __future__ import annotations

from pathlib import Path

from trajudge.rules.values import differences as values
from trajudge.rules.verified.audit import differences as verified
from trajudge.rules.verified.network.sites import DEFAULT_PORTS, named

PATH = Path(__file__).parents[1] / "DIFFERENCES.md"

_HEAD = """\
# How `sound` differs from `release-1.2.3`

`sound` is the default. `release-1.2.3` does what version 1.2.3 of the published package does, for
comparison with published results. Both columns of verdicts are computed from the examples by
`python -m trajudge.rules.verified.differences`.

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
_COUNTS = """
## Findings on published task files

`trajudge rules lint` on WebChoreArena's 532 tasks gives 634 findings on 369 of them: 254
`response_substring`, 140 `page_substring`, 83 `number_run_on`, 71 `locator_substring`, 51
`dead_marker`, 24 `llm_evaluation`, 5 `page_content`, 5 `dead_field`, 1 `given_away`. A former count
of 676 had 42 `dead_field` more: 42 tasks without `string_match` give `{}` as `reference_answers`,
which holds no check that could be passed over. 49 of the `dead_marker` are ` |OR| ` in an answer's
`must_include`, which WebChoreArena's own evaluator reads and the original harness does not.
"""


def document() -> str:
    """Return the whole file."""
    ports = ", ".join(f"{named(site)} {port}" for site, port in DEFAULT_PORTS.items())
    sites = _SITES.format(ports=ports)
    tables = [_HEAD, *values.table(), _RUNS, *verified.table()]
    return "\n".join([*tables, _PATTERNS, sites + _OPEN + _COUNTS])


if __name__ == "__main__":
    PATH.write_text(document(), encoding="utf-8")
