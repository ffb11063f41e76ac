"""The one registry of metrics: claims, terminal, report and the manual read every number from here."""

from __future__ import annotations

from millpond.errors import UsageError, unknown
from millpond.measure import clients, evidence, groups, links, nodes, proxies, runs
from millpond.measure.metric import Metric

#: Other names for the same metrics, as published figures have them.
ALIASES = {
    "link_capacity_wasted_on_unnecessary_retx": "wasted_share",
    "congestion_collapse": "wasted_share",
    "rtt_first": "rtt",
    "first_attempt_success": "share_of_exchanges_without_retx",
}


class _Metrics(dict[str, Metric]):
    """By name, in order; another name for one is as good where one is looked up."""

    def __missing__(self, name: str) -> Metric:
        return self[ALIASES[name]]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in ALIASES

    def known(self, name: str) -> Metric | None:
        """The metric of this name; None if there is none."""
        return super().get(ALIASES.get(name, name))


METRICS = _Metrics(
    {metric.name: metric for of in (clients, groups, runs, evidence, links, proxies, nodes) for metric in of.METRICS}
)
#: What is compared or told of runs unless other metrics are asked for.
USUAL = ("fct", "makespan", "unfinished", "retransmissions_per_client", "unnecessary_retx_per_client")


def metric(name: str) -> Metric:
    """The metric of this name, or of another name for it. Raises `UsageError` with the nearest one."""
    found = METRICS.known(name)
    if found is None:
        raise UsageError(unknown("metric", name, [*METRICS, *ALIASES]))
    return found
