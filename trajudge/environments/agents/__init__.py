"""Agents that act in the environments: scripts with known behaviour, and models."""
