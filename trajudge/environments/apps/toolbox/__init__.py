"""A workshop's web tools, with their records and saved jobs (tool use)."""
