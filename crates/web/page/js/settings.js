// What can be set: each with its range, its words, and what it does to a scenario.

const KBIT = { "bit/s": 0.001, "kbit/s": 1, "Mbit/s": 1000, "Gbit/s": 1e6 };
const SECONDS = { us: 1e-6, ms: 0.001, s: 1, min: 60, h: 3600, d: 86400 };
const BYTES = { B: 1, kB: 1000, MB: 1e6, GB: 1e9, KiB: 1024, MiB: 1048576 };

function quantity(text, units) {
  const [number, unit] = String(text).split(" ");
  return units[unit] === undefined ? null : Number(number) * units[unit];
}

const ways = (scenario) => (scenario.path ? [scenario.path.uplink, scenario.path.downlink] : []);
const links = (scenario) => (scenario.network ? Object.values(scenario.network.links) : ways(scenario));
const cuts = (scenario) => (scenario.timeline ?? []).filter((event) => event.kind === "restart");
const overUdp = (scenario) => scenario.clients.filter((group) => group.controller !== undefined);
const named = (controller) => (typeof controller === "object" ? controller.preset ?? null : controller);
const total = (scenario) => scenario.clients.reduce((sum, group) => sum + group.count, 0);

/** So many clients in all, each group with its share of them. */
function share(scenario, devices) {
  const factor = devices / total(scenario);
  let left = devices;
  scenario.clients.forEach((group, place, groups) => {
    const rest = groups.length - place - 1;
    group.count = rest === 0 ? left : Math.max(1, Math.min(left - rest, Math.round(group.count * factor)));
    left -= group.count;
  });
}

/** Part of the devices keep the old firmware: groups of their own, with the standard's timer. */
function split(scenario, percent) {
  scenario.clients = scenario.clients.flatMap((group) => {
    const renewed = Math.round((group.count * percent) / 100);
    const old = { ...group, count: group.count - renewed, controller: "rfc7252" };
    return [{ ...group, count: renewed }, old].filter((part) => part.count > 0);
  });
}

/** Without an event, what waits for one would happen at the start. */
function leaveOut(group) {
  if (!Array.isArray(group.workload)) return;
  const others = group.workload.filter((workload) => workload.kind !== "after-event");
  if (others.length > 0) group.workload = others;
}

/**
 * key: the name in the address. `values`: the stops of a slider, or `choices` of a list. `read` tells what a scenario has (null:
 * nothing that can be told), `apply` sets it, `fits` whether it can be set there.
 */
export const SETTINGS = [
  {
    key: "controller",
    label: "Controller",
    about: "How long a device waits for an answer before it sends a copy. In CoAP this timer is all there is of congestion control.",
    choices: [],
    read: (scenario) => named(overUdp(scenario)[0]?.controller),
    fits: (scenario) => overUdp(scenario).length > 0,
    apply: (scenario, name) => overUdp(scenario).forEach((group) => (group.controller = name)),
  },
  {
    key: "devices",
    label: "Devices",
    about: "They share one cell, as meters of a district do. Each asks for one thing at a time.",
    values: [1, 10, 25, 50, 75, 100, 150, 200, 250, 300, 350, 400, 450, 500, 600, 800, 1000],
    read: total,
    fits: (scenario) => !scenario.mesh,
    apply: share,
  },
  {
    key: "buffer",
    label: "Buffer of the base station",
    about: "What finds it full is dropped. A large one drops nothing, and lets everybody wait.",
    values: [1000, 2500, 5000, 10000, 14100, 20000, 28200, 40000, 56000, 80000, 113000, 226000, 450000, 1410000],
    read: (scenario) => quantity(links(scenario).at(-1)?.queue, BYTES),
    fits: (scenario) => links(scenario).length > 0,
    apply: (scenario, bytes) => links(scenario).forEach((link) => (link.queue = `${bytes} B`)),
  },
  {
    key: "rate",
    label: "Rate to the devices",
    about: "The bottleneck. The other way is twice as fast, as in a cell of NB-IoT.",
    values: [10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 300],
    read: (scenario) => quantity(scenario.path?.downlink.rate, KBIT),
    fits: (scenario) => !!scenario.path,
    apply(scenario, kbit) {
      const [up, down] = ways(scenario);
      const before = quantity(down.rate, KBIT);
      up.rate = `${Math.max(1, Math.round((1000 * kbit * quantity(up.rate, KBIT)) / before))} bit/s`;
      down.rate = `${Math.round(1000 * kbit)} bit/s`;
    },
  },
  {
    key: "loss",
    label: "Loss of the radio",
    about: "Packets that the radio loses, each way, whatever the load. A timer cannot tell them from packets that wait.",
    values: [0, 0.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30],
    read(scenario) {
      const loss = scenario.path?.downlink.loss;
      if (loss === undefined || loss === "none" || loss?.kind === "none") return 0;
      return loss?.kind === "bernoulli" && typeof loss.rate === "number" ? 100 * loss.rate : null;
    },
    fits: (scenario) => !!scenario.path,
    apply: (scenario, percent) =>
      ways(scenario).forEach((way) => (way.loss = percent === 0 ? { kind: "none" } : { kind: "bernoulli", rate: percent / 100 })),
  },
  {
    key: "spread",
    label: "Spread of starts",
    about: "Devices come back at random within this time. With none, all of them speak in the same instant.",
    values: [0, 5, 10, 20, 30, 60, 90, 120, 180, 240],
    read(scenario) {
      const [cut] = cuts(scenario);
      if (cut === undefined) return quantity(scenario.clients[0]?.start_spread ?? "0 s", SECONDS);
      return cut.back === undefined || cut.back === "at-once" ? 0 : quantity(cut.back, SECONDS);
    },
    fits: () => true,
    apply(scenario, seconds) {
      cuts(scenario).forEach((cut) => (cut.back = seconds === 0 ? "at-once" : `${seconds} s`));
      if (cuts(scenario).length === 0) scenario.clients.forEach((group) => (group.start_spread = `${seconds} s`));
    },
  },
  {
    key: "firmware",
    label: "Share of new firmware",
    about: "Only these devices have the controller chosen above; the others keep the timer of RFC 7252.",
    values: [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100],
    read: () => 100,
    fits: (scenario, isOwn) => !isOwn,
    apply: (scenario, percent) => percent < 100 && split(scenario, percent),
  },
  {
    key: "work",
    label: "What devices do",
    about: "A report a minute, and ten requests after a power cut; or without end, one request after another, "
      + "remembering the path or forgetting it time and again, as devices do that take turns.",
    choices: [
      { value: "reports", text: "reports, and ten requests after a power cut" },
      { value: "continuous", text: "one request after another" },
      { value: "fresh", text: "the same, forgetting the path every few requests" },
    ],
    read: () => "reports",
    fits: (scenario, isOwn) => !isOwn,
    apply(scenario, work) {
      const workloads = { continuous: "continuous", fresh: "fresh-batches" };
      if (workloads[work] === undefined) return;
      scenario.clients.forEach((group) => Object.assign(group, { workload: workloads[work], exchanges: 5000 }));
      scenario.timeline = [];
      // What is learned shows late.
      scenario.run.for = "600 s";
    },
  },
  {
    key: "cut",
    label: "Power cut",
    about: "",
    hidden: true,
    read: (scenario) => quantity(cuts(scenario)[0]?.at, SECONDS) ?? -1,
    fits: () => true,
    apply(scenario, at) {
      const others = (scenario.timeline ?? []).filter((event) => event.kind !== "restart");
      const cut = { ...cuts(scenario)[0], kind: "restart", at: `${Math.round(1000 * at)} ms` };
      const events = at < 0 ? others : [...others, cut];
      if (at < 0 && !others.some((event) => event.kind === "alarm")) scenario.clients.forEach(leaveOut);
      scenario.timeline = events.sort((one, other) => quantity(one.at, SECONDS) - quantity(other.at, SECONDS));
    },
  },
];

/** The setting of that key. */
export const setting = (key) => SETTINGS.find((one) => one.key === key);

/** When devices of a scenario restart, and when the clocks of its other events strike, in seconds. */
export const events = (scenario) =>
  (scenario.timeline ?? []).map((event) => ({ at: quantity(event.at, SECONDS), kind: event.kind }));

/** The limit of a link's queue in bytes; null if it counts packets or there is none of that name. */
export function limit(scenario, name) {
  const found = scenario.path?.[name] ?? scenario.network?.links[name];
  return found ? quantity(found.queue, BYTES) : null;
}

/** The scenario of the page itself: a cell of NB-IoT as in the study anrw18, and a power cut. */
export const OWN = {
  title: "A power cut in a narrow cell",
  path: {
    uplink: { rate: "60 kbit/s", delay: "215 ms", queue: "1410000 B" },
    downlink: { rate: "30 kbit/s", delay: "415 ms", queue: "1410000 B" },
  },
  clients: [
    {
      count: 400,
      controller: "rfc7252",
      workload: [
        { kind: "periodic", period: "60 s" },
        { kind: "after-event", arrival: "at-once", requests: 10 },
      ],
    },
  ],
  server: { duplicates: "afresh" },
  timeline: [{ kind: "restart", at: "60 s", back: "at-once" }],
  run: { for: "300 s" },
};
