"""The label store: who labels what, what they said and when, in one SQLite file beside the queue.

A queue is a folder with ``labels.sqlite``: people, items with inclusion probabilities, leases, and
events that are only ever appended. What stands is a view over the events.
Several people and processes may write at once. ``database`` makes and opens it; ``offers`` hands
items out, ``submissions`` and ``adjudication`` take what people decide, ``transfer`` exports.
"""
