"""`python -m millpond`."""

from millpond.cli import main

main()
