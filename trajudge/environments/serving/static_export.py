"""Static copies of many cases on disk, and the key to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from trajudge.environments.model.case import Case
from trajudge.environments.serving import PAGES
from trajudge.environments.serving.static_copy import NotStatic, bundle
from trajudge.util.errors import UserError
from trajudge.util.files import make_folder, write_bytes
from trajudge.util.tables import Table


def write_bundle(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of a bundle in their order: a folder that has a manifest is whole."""
    (folder / "charts").mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def export(cases: Sequence[Case], out: Path, most: int = PAGES) -> dict[str, str]:
    """Write a bundle for every case that can be one; gives the reasons of the others by case.
    Raises UserError."""
    if (out / "bundles").exists():
        raise UserError(f"{out} holds an export already: choose another --out or remove it")
    keys: list[bytes] = []
    refused: dict[str, str] = {}
    try:
        make_folder(out, "--out")
        (out / "bundles").mkdir()
        for case in cases:
            try:
                files = bundle(case, most)
            except NotStatic as reason:
                refused[case.id] = str(reason)
                continue
            name = f"{len(keys) + 1:04}"
            write_bundle(out / "bundles" / name, files)
            keys.append(orjson.dumps({"bundle": name, "case": case.model_dump(mode="json")}))
        write_bytes(out / "keys.jsonl", b"".join(key + b"\n" for key in keys))
    except OSError as error:
        raise UserError(f"{out}: cannot be written ({error.strerror or error})") from error
    return refused


def summary_table(cases: Sequence[Case], refused: Mapping[str, str]) -> Table:
    rows = []
    for app in sorted({case.config.app for case in cases}):
        own = [case for case in cases if case.config.app == app]
        why = Counter(refused[case.id] for case in own if case.id in refused)
        reasons = "; ".join(f"{reason} ({count})" for reason, count in why.most_common())
        rows.append((app, str(len(own)), str(len(own) - why.total()), reasons))
    head = ("application", "cases", "exported", "refused because")
    return Table("Static copies", head, rows, names=1)
