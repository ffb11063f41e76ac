// The engine, away from the page: one scenario and seed in, one recording out.

import init, { Scenario, collapse, run, controllers } from "../engine/engine.js";

const ready = init({ module_or_path: new URL("../engine/engine_bg.wasm", import.meta.url) });

/** Everything that a page draws of a run, as plain arrays. */
function unpack(recording) {
  const links = recording.links().map((name, link) => ({
    name,
    queue: recording.queue(link),
    queueBytes: recording.queueBytes(link),
    carried: recording.carried(link),
    useful: recording.useful(link),
    came: recording.came(link),
    sent: recording.sent(link),
    fates: recording.fates(link),
  }));
  return {
    seconds: recording.seconds,
    step: recording.step,
    hasPackets: recording.hasPackets,
    collapse: collapse(),
    links,
    done: recording.done(),
    waits: {
      clients: recording.waitClients(),
      copies: recording.waitCopies(),
      from: recording.waitFrom(),
      to: recording.waitTo(),
    },
  };
}

const tasks = {
  /** What can be chosen. */
  controllers: () => JSON.parse(controllers()),

  /** A scenario file, checked: the same with every default written out. */
  read({ toml, origin }) {
    const scenario = Scenario.fromToml(toml, origin);
    const json = JSON.parse(scenario.toJson());
    scenario.free();
    return json;
  },

  /** A scenario as a file. */
  write({ json }) {
    const scenario = Scenario.fromJson(JSON.stringify(json), "scenario");
    const toml = scenario.toToml();
    scenario.free();
    return toml;
  },

  run({ json, seed, tables }) {
    const scenario = Scenario.fromJson(JSON.stringify(json), "scenario");
    const began = performance.now();
    const recording = run(scenario, seed);
    const took = performance.now() - began;
    const clients = scenario.clients;
    scenario.free();
    const told = tables ? { tables: recording.tables() } : { ...unpack(recording), clients };
    recording.free();
    return { ...told, took };
  },
};

self.onmessage = async ({ data: { id, task, what } }) => {
  try {
    await ready;
    self.postMessage({ id, result: tasks[task](what) });
  } catch (error) {
    // A refused scenario is text; anything else is a fault of the engine, after which it cannot go on.
    const refused = typeof error === "string";
    self.postMessage({ id, error: refused ? error : `the engine stopped: ${error.message}`, broken: !refused });
  }
};
