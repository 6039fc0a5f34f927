"""The ten lines of a notebook: in a running loop, and in a kernel."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import trajudge as tj
from tests.conftest import missing
from tests.llm_server import LlmServer

ROOT = Path(__file__).parents[2]
CELLS = """
import trajudge as tj
runs, truth = tj.load("sample"), tj.labels("sample")
rules = tj.judge(runs, "heuristic")
model = tj.judge(runs, "simplified", model="gpt-4o-mini", base_url=URL, limit=12, yes=True)
scores = tj.score(rules + model, truth)
table = scores._repr_html_()
frame = scores.to_frame()
axes = scores.plot()
"""


@pytest.mark.slow
def test_the_ten_lines_work_in_a_running_loop(server: LlmServer) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    assert len([line for line in CELLS.splitlines() if line]) <= 10
    space: dict[str, object] = {"URL": f"{server.url}/v1"}

    async def main() -> None:
        exec(CELLS, space)

    asyncio.run(main())
    assert isinstance(space["scores"], tj.Scores)
    assert str(space["table"]).index("precision") < str(space["table"]).index("recall")
    judges = set(space["frame"]["judge"])  # type: ignore[index]
    assert judges == {"heuristic", "simplified-axtree:gpt-4o-mini"}
    assert server.stats.answered > 0


@pytest.mark.slow
def test_a_kernel_runs_them_and_shows_progress_and_tables(server: LlmServer, folder: Path) -> None:
    try:
        import nbclient
        import nbformat
    except ImportError:
        missing("notebook", "no kernel here: install ipykernel and nbclient")
    setup = f"import sys; sys.path.insert(0, {str(ROOT)!r}); URL = '{server.url}/v1'"
    cells = [setup, *(line for line in CELLS.splitlines() if line), "model", "scores"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "", "language": "python"}
    client = nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": folder}}
    )
    client.execute()
    shown = [str(cell.outputs) for cell in notebook.cells]
    assert any("judged 12/12" in outputs for outputs in shown)
    assert "<table>" in shown[-1]
    assert "The first 10 of 12 judgments" in shown[-2]
