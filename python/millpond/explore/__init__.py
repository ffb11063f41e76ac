"""The explorer: the simulator in a page for browsers, served on this machine alone."""
