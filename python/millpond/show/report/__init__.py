"""The report: one HTML page that opens offline, and the pictures on it for use in a notebook."""

from millpond.show.report.page import render, write_report
from millpond.show.report.values import Missing

__all__ = ["Missing", "render", "write_report"]
