"""The embedded proxy: plain HTTP sites, and model APIs by their base address.

It runs on asyncio alone. A wait is always awaited: a fault holds back its own request, no other.
"""
