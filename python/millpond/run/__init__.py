"""Runs programs through the native engine: many runs, all cores, stopped and resumed at will."""
