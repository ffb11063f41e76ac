"""Published figures and claims beside what was measured."""
