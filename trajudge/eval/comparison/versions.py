"""A judge whose prompts changed is another judge: versions are not compared without a word."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping


def mixed_versions(versions: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Warn of every judge that stands beside itself in another version.

    ``versions`` holds, by the judge's id in the table, the versions on the cards of that judge and
    of its members (``eval.data.manifest.recorded_versions``).
    """
    by_name: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for judge_id, cards in versions.items():
        for name, version in cards.items():
            by_name[name][version].append(judge_id)
    for name, by_version in sorted(by_name.items()):
        if len(by_version) > 1:
            listed = "; ".join(
                f"version {version} in {', '.join(sorted(ids))}"
                for version, ids in sorted(by_version.items())
            )
            yield (
                f"warning: judge {name} is compared in several versions ({listed}): they differ in "
                f"their prompts as well; judge again with the version of this release "
                f"(trajudge judges show {name})"
            )
