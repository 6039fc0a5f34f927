"""Judges side by side: one table per benchmark, one static page and one CSV.

``sources`` reads what is compared (folders of runs, published verdicts, judges without a model),
``build`` scores it, ``output`` writes the page and the CSV.
"""
