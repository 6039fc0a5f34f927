"""Prompt templates, one folder a judge: Jinja2 files and a card (source, deviations, scale)."""
