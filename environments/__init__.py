"""Sandboxed sites with known ground truth, and the recorder of agents that act in them."""
