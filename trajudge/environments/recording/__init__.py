"""Agents let loose in runs: one episode, many jobs, what is kept of them on disk."""
