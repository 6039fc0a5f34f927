"""Requests in batches: half the price, within a day.

``CollectingEngine`` takes a judge's calls and answers them from the cache; those that it cannot
answer become lines of files (``files``), which ``Batches`` submits to a provider's batch interface
(``services``) and collects into the same cache. A ledger (``ledger``) holds what is under way, so
that a process that is killed at any moment submits nothing twice and loses no reply.
"""
