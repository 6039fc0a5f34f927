"""A run's judgments in a database of the user's cache, for pages that show fifty of them at a time.

``index`` keeps one run's file up to date while lines are appended to it, ``combined`` puts several
runs beside each other, ``filters`` reads the filter grammar, ``listing`` reads pages of rows.
"""
