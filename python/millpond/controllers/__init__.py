"""The catalogue of controllers: what each is, which requirements it meets, and what its waits look like.

`requirements.judge` works for anything that has the calls of a controller, so also for one of your own.
"""

from millpond.controllers.requirements import REQUIREMENTS, Judgement, Requirement, Verdict, judge

__all__ = ["REQUIREMENTS", "Judgement", "Requirement", "Verdict", "judge"]
