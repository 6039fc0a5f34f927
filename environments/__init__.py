"""Sandboxed sites with known ground truth, and the recorder of agents that act in them.

``shop/`` is a small web shop of static pages whose state lives in the browser; ``tasks`` says what
is asked there and which final state answers it; ``agents`` are scripts with known behaviour;
``axtree`` writes the accessibility tree as text; ``labels`` follow from the final state and the
trace; ``python -m environments.record`` drives it all in Chromium.
"""
