"""Agents that act in the environments: scripts with known behaviour, and models."""

SECONDS = 120.0
"""Seconds that a user's agent may take for an action, unless the user sets another number."""
MEMORY = 4096
"""Mebibytes of data that its process may hold, unless the user sets another number."""
