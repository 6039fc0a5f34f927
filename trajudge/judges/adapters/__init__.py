"""Adapters: each turns a Request into a Reply with one SDK, or with none.

``errors`` is what can go wrong, ``routing`` chooses an adapter by the model's name, ``provider`` is
the loop that all of them send by.
"""
