"""How an account is shown: a page, a figure, a terminal, a notebook, a file of records.

All of them draw the same thing the same way: :mod:`~unrolled.report.colour` holds the one colour scale, and
the triangle always stands on its sentence, one row for each length of n-gram, the whole sentence at the top.
"""
