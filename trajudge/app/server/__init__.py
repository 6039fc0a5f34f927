"""The web application's frame: what it serves, how it is guarded, how a page is made.

``application`` puts rooms of pages together behind ``security``; ``pages`` is what a handler uses.
"""
