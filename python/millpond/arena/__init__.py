"""Candidates against published presets, on many paths: what each costs at its worst.

`drawn` makes paths out of wide ranges, `cells` puts candidates on them and on those of the studies, `verdict` compares
each with the best preset of the same cell and with what the path allows, and `page` shows it.
"""
