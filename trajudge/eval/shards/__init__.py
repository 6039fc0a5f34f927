"""A run in shards: several workers, on one machine or many, share one run in a folder or an object
store, and ``merge`` makes an ordinary run folder of it.

``plan`` cuts the run, ``claims`` gives a shard to one worker at a time, ``session`` judges it,
``outcome`` stores and reads what came of it; ``replies`` and ``limits`` are what the workers have
in common: the answers that were paid for, and rates and dollars.
"""
