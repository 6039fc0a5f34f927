"""List the benchmarks with their last figures, or run one: ``python -m benchmarks [NAME ...]``.

``python -m benchmarks NAME [OPTION ...]`` runs ``benchmarks.NAME`` and keeps what it prints in
``benchmarks/figures/NAME.txt``, with the command, the date, the commit and the load of the machine
(processes that wanted to run in the last minute, and its cores) in front.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
FIGURES = HERE / "figures"


def scripts() -> dict[str, str]:
    """Return name to first sentence of every benchmark."""
    found = {}
    for path in sorted([*HERE.glob("*.py"), *HERE.glob("*/__main__.py")]):
        name = path.parent.name if path.name == "__main__.py" else path.stem
        if path != Path(__file__) and name != "__init__":
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            found[name] = text.partition("\n")[0]
    return found


def main(words: list[str]) -> int:
    """Print the list, or run a benchmark; the exit code is its own, 2 for an unknown name."""
    known = scripts()
    if not words:
        for name, title in known.items():
            print(f"{name:22} {title}")
            figures = FIGURES / f"{name}.txt"
            if figures.is_file():
                print("".join(f"    {line}\n" for line in figures.read_text().splitlines()))
        return 0
    name, *options = words
    if name not in known:
        print(f"{name}: no benchmark; there are {', '.join(known)}", file=sys.stderr)
        return 2
    return run(name, options)


def run(name: str, options: list[str]) -> int:
    """Run a benchmark, show what it prints as it comes, and keep it if it succeeds."""
    command = [sys.executable, "-m", f"benchmarks.{name}", *options]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode == 0:
        FIGURES.mkdir(exist_ok=True)
        asked = " ".join(["python -m benchmarks", name, *options])
        load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        head = f"{asked}  ({datetime.now(UTC):%Y-%m-%d}, {_commit()}, {load})\n"
        (FIGURES / f"{name}.txt").write_text(head + "".join(lines))
    return process.returncode


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "no commit"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
