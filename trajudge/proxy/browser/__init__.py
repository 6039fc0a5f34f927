"""What the agent's browser itself says of its pages, by its debugging port (CDP)."""
