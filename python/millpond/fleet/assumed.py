"""What a description did not say and was assumed, or said in few words: in sentences, with the keys that change it."""

from __future__ import annotations

from millpond.fleet import told
from millpond.fleet.answer import Answer
from millpond.fleet.description import NEVER, REPORTING
from millpond.fleet.scenario import FLIGHTS, HEADER, LEAD_S, RECORD, TOKEN, path
from millpond.plan import quantity


def lines(answer: Answer) -> list[str]:
    """Traffic, headers, devices and server, runs."""
    return [_traffic(answer), _headers(answer), *_devices(answer), _everyday(answer), *_runs(answer)]


# ----------------------------------------------------------------------------------------------- helpers


def _traffic(answer: Answer) -> str:
    keys = answer.fleet.keys
    waking, event = keys.waking, keys.event
    if event.kind == "command":
        return f"The server asks each device once, with {event.command} (event.command)."
    if event.kind == "firmware":
        blocks = f"{event.image} in blocks of {event.block}, an exchange a block"
        return f"Each device fetches {blocks} (event.image, event.block)."
    report = f"a report of {keys.everyday.report} (everyday.report)"
    if event.kind == "hourly":
        return f"Each device sends {report}, answered by {waking.answer} (waking.answer)."
    does = []
    if waking.handshake != "none":
        flights = ", ".join(f"{size} B" for size in FLIGHTS)
        does.append(f"a handshake of three exchanges, {flights} from the device (waking.handshake)")
    if quantity.in_bytes(waking.registration):
        does.append(f"a registration of {waking.registration} (waking.registration)")
    if waking.observations:
        does.append(f"{_several(waking.observations, 'observation')} set up by the device (waking.observations)")
    if waking.readings:
        times = "" if waking.readings == 1 else f"{waking.readings} times "
        does.append(f"{times}{report} (waking.readings)")
    return f"Each device, one exchange after another: {'; '.join(does)}. Answers have {waking.answer} (waking.answer)."


def _headers(answer: Answer) -> str:
    keys, cell = answer.fleet.keys, path(answer.fleet)
    header = quantity.in_bytes(str(cell.get("header", HEADER)))
    inside = f", of which {RECORD} B are a record of DTLS" if keys.waking.handshake != "none" else ""
    sent, size = (answer.as_it_is.median(name) for name in ("messages", "bytes"))
    return (
        f"Sizes are payloads. Each message has {header:g} B below CoAP{inside}, and in CoAP 4 B, a token of {TOKEN} B, "
        f"its options and the payload marker. As it is a device sends {sent:.3g} messages and {size:.4g} B with all of "
        "them."
    )


def _devices(answer: Answer) -> list[str]:
    keys = answer.fleet.keys
    groups = [
        f"{size} {group.name}: controller {_name(group.controller)}, MAX_RETRANSMIT {group.max_retransmit}, reconnect "
        f"{_name(group.reconnect)}"
        for size, group in zip(answer.fleet.sizes, keys.group, strict=True)
    ]
    duplicates = {
        "stored": "answers every retransmission with the reply that it stored",
        "afresh": "processes every retransmission afresh",
        "calm": "is calm",
    }[keys.server.duplicates]
    given_up = "" if any(group.reconnect == "lwm2m" for group in keys.group) else (
        " A device that gives a message up is never done: applications that begin anew afterwards are not modelled."
    )  # fmt: skip
    return [f"{'; '.join(groups)} (group).{given_up}", f"The server {duplicates} (server.duplicates)."]


def _everyday(answer: Answer) -> str:
    every, others = answer.fleet.keys.everyday.every, answer.fleet.keys.everyday.others
    own = {NEVER: "Devices report on no other day", REPORTING: "Devices report as in 3GPP TR 45.820 annex E"}.get(
        every, f"Each device reports every {every} besides"
    )
    load = f"{100 * answer.fleet.keys.everyday.others_load:g} %"
    beside = f"; {others} others report to take {load} of the cell" if others else "; nobody else is in the cell"
    return f"{own} (everyday.every){beside} (everyday.others, everyday.others_load)."


def _runs(answer: Answer) -> list[str]:
    arrival = answer.fleet.keys.event.arrival
    back = {"power-cut": "devices are back within 10 s, Beta(3, 4)"}.get(answer.fleet.keys.event.kind, "all at once")
    seeds = answer.seeds
    return [
        f"When it happens: {back if arrival is None else _name(arrival)} (event.arrival), {LEAD_S} s after a run "
        f"begins; it ends {told.time(answer.fleet.horizon_s)} later, and what is not done by then counts as never done "
        "(horizon).",
        f"One device alone keeps the {answer.cost.bottleneck} busy for {told.time(answer.cost.work_s)}, which was "
        "measured; the cell's own minimum and the times over which starts are spread follow from that.",
        "The cell is rate, delay, buffer and loss: random access, scheduling and coverage classes are not in it. Seeds "
        f"{seeds[0]} to {seeds[-1]}.",
    ]


def _several(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"


def _name(written: object) -> str:
    """A word, or a table as TOML has it on one line."""
    if isinstance(written, dict):
        return "{ " + ", ".join(f"{key} = {value}" for key, value in written.items()) + " }"
    return str(written)
