"""From a plan to a program: plans, scenarios and their changes, the cells that are to be run."""
