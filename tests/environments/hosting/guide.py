"""The examples of the guide to agents."""

from __future__ import annotations

import re
from pathlib import Path

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "agent.md"
OWN, SERVED, OPENENV = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.M | re.S)
