"""Requests in batches: half the price, within a day.

``CollectingEngine`` answers a judge's calls from the cache; those that it cannot answer become
lines of files, which ``Batches`` submits to a provider's batch interface (``openai``,
``anthropic``) and collects into the same cache. A ``ledger`` holds what is under way, so that a
process that is killed at any moment submits nothing twice and loses no reply.
"""
