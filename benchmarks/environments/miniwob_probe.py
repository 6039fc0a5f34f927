"""Facts of MiniWoB++, printed as JSON by a Python that has ``browsergym-miniwob`` and ``miniwob``.

Run by ``benchmarks.environments --miniwob PYTHON`` in that Python, which needs nothing of trajudge:
``PYTHON miniwob_probe.py CHROMIUM TASKS SEEDS``. Every n-th task is opened with several seeds.
BrowserGym pins a version of Playwright that looks for a Chromium of its own: the one that is given
takes its place.
"""

from __future__ import annotations

import json
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK")
_ABROAD = re.compile(r"""(?:src|href|action)=["'](?:https?:)?//""", re.IGNORECASE)
_CONTROL = re.compile(
    r"^\t*\[\w+\] (?:button|checkbox|combobox|Date|DisclosureTriangle\w*|link|listbox|menuitem"
    r"|radio|searchbox|slider|spinbutton|switch|tab|textbox|treeitem) ",
    re.MULTILINE,
)


def controls(tree: str) -> int:
    """Count what an agent can use on a page, options of lists apart."""
    return len(_CONTROL.findall(tree))


def cpu() -> float:
    """Return the seconds of this process and of all that come from it, ended ones included."""
    total, family = 0, [str(os.getpid())]
    for pid in family:
        folder = Path("/proc", pid)
        try:
            for thread in (folder / "task").iterdir():
                family += (thread / "children").read_text().split()
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        total += sum(map(int, stat[11:15]))
    return total / _TICKS


def files() -> dict[str, Any]:
    """Return what the tasks' own files say: how many there are, whose reward the page's own script
    gives, and which ask another host for anything."""
    spec = find_spec("miniwob")
    assert spec and spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0]) / "html" / "miniwob"
    pages = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.html")}
    os.environ["MINIWOB_URL"] = f"{folder.as_uri()}/"
    from browsergym.miniwob import ALL_MINIWOB_TASKS

    names = [task.get_task_id().partition(".")[2] for task in ALL_MINIWOB_TASKS]
    return {
        "names": names,
        "tasks": len(names),
        "rewarded_in_page": sum("core.endEpisode" in pages[name] for name in names),
        "asks_abroad": sum(bool(_ABROAD.search(pages[name])) for name in names),
    }


def measured(chromium: str, names: list[str], seeds: int) -> dict[str, Any]:
    """Return what opening the tasks shows."""
    import gymnasium
    import playwright.sync_api

    real = playwright.sync_api.BrowserType.launch

    def launch(self: Any, **options: Any) -> Any:
        options |= {"executable_path": chromium, "args": ["--no-sandbox"], "headless": True}
        return real(self, **options)

    playwright.sync_api.BrowserType.launch = launch  # type: ignore[method-assign]
    from browsergym.utils.obs import flatten_axtree_to_str

    def tree(seen: Any) -> str:
        shown: str = flatten_axtree_to_str(
            seen["axtree_object"],
            seen["extra_element_properties"],
            with_visible=True,
            with_clickable=True,
            ignored_roles=["LineBreak", "InlineTextBox"],
        )
        return shown

    resets, steps, sizes, usable = [], [], [], []
    distinct, same, forged, idle, opened = [], 0, 0, 0, 0
    for name in names:
        env: Any = gymnasium.make(
            f"browsergym/miniwob.{name}", headless=True, slow_mo=0, pre_observation_delay=0
        )
        starts = []
        try:
            for seed in (*range(seeds), 0):
                begun = cpu()
                seen, _ = env.reset(seed=seed)
                resets.append(cpu() - begun)
                shown = tree(seen)
                starts.append((seen["goal"], shown))
                sizes.append(len(shown))
                usable.append(controls(shown))
            begun = cpu()
            idle += env.step("noop(0)")[1] > 0
            steps.append(cpu() - begun)
            env.unwrapped.page.evaluate("core.endEpisode(1)")
            forged += env.step("noop(0)")[1] > 0
            opened += 1
            distinct.append(len(set(starts)))
            same += starts[0] == starts[-1]
        except Exception as error:  # a task that a newer Chromium does not take is one less
            print(f"{name}: {error}", file=sys.stderr)
        finally:
            env.close()
    return {
        "opened": opened,
        "seeds": seeds,
        "reset_ms": 1000 * median(resets),
        "step_ms": 1000 * median(steps),
        "characters": median(sizes),
        "controls": median(usable),
        "distinct": distinct,
        "same": same,
        "forged": forged,
        "idle": idle,
    }


def main() -> None:
    chromium, tasks, seeds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    found = files()
    names = found.pop("names")
    every = max(1, len(names) // tasks)
    found |= measured(chromium, names[::every][:tasks], seeds)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
