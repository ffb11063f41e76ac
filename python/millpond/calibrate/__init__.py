"""The settings under which a study's published rows would come out: declared beside its plan, searched, and judged.

description.py      what a study declares: parameters with ranges, rows that fit and rows that test
trial.py            one setting carried out, and how far its rows lie from the published ones
search.py           many settings tried, in processes, kept as they end
answer.py           the best, how flat, and what holds under it
page.py             what is shown of it
"""
