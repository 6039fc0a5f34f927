"""Intervals of rates and metrics, trials in clusters or not."""
