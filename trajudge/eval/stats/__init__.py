"""Statistics of judges and agents: numpy in, frozen dataclasses out.

Every estimator names its source; randomness comes only from a ``numpy.random.Generator``
passed in, and the digits depend neither on the number of threads nor on the block size.
Import the module that you need: nothing is loaded here, so that commands which need no statistics
stay quick to start.
"""
