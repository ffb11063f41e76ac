// The page: state in the address, runs from the engine, one picture for each.

import { Charts } from "./charts.js";
import { Controls, isCut, names } from "./controls.js";
import { ask } from "./engine.js";
import { csv, handOut, takeIn } from "./files.js";
import { Replay } from "./replay.js";
import { Player } from "./player.js";
import { events, limit, setting } from "./settings.js";
import { colours, Stage } from "./stage.js";
import { fresh, read, scenario, value, write } from "./state.js";
import { Tour } from "./tour.js";
import { clock, count, HEADLINES, moment, verdict } from "./words.js";

const $ = (id) => document.getElementById(id);
const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

let state = fresh();
let replays = [];
let palette = colours();
let asked = 0;

const stages = [new Stage($("stage-a")), new Stage($("stage-b"))];
const charts = new Charts($("charts"), (time) => player.seek(time));
const controls = new Controls($("settings"), $("beside"), {
  change(key, what) {
    state.values[key] = what;
    leave();
    compute();
  },
  beside(what) {
    state.beside = what;
    leave();
    compute();
  },
});
const player = new Player(
  { button: $("play"), slider: $("scrub"), time: $("time"), speed: $("speed") },
  {
    show(time, speed) {
      state.at = time;
      replays.forEach((replay, place) => stages[place].draw(time, speed, palette));
      charts.at(time);
      if (!player.playing) tell();
    },
    rest() {
      document.body.classList.remove("unfolding");
      tell();
      remember();
    },
  },
);
const tour = new Tour($("tour"), ({ values, beside, at }) => {
  state = { ...fresh(), values: structuredClone(values), beside, seed: state.seed };
  player.pause();
  compute({ at, play: !calm.matches });
});

/** What the reader now sees is no longer a stop of the tour. */
function leave() {
  document.body.classList.remove("unfolding");
  $("tour").classList.add("left");
}

function tell() {
  $("now").textContent = replays.length > 0 ? moment(replays[0], player.now) : "";
}

function fail(error) {
  $("error").hidden = false;
  $("error-text").textContent = error.message ?? error;
}

let remembering;
/** The address follows, at most a few times a second: browsers refuse more. */
function remember() {
  clearTimeout(remembering);
  remembering = setTimeout(async () => history.replaceState(null, "", `${location.pathname}${location.search}${await write(state)}`), 250);
}

/** Runs what the state says and shows it. The newest call wins. */
async function compute({ at = null, play = false } = {}) {
  const mine = ++asked;
  controls.show(state);
  describe();
  document.body.classList.add("busy");
  try {
    const sides = state.beside === "" ? [false] : [false, true];
    const scenarios = sides.map((side) => scenario(state, side));
    const made = [];
    for (const json of scenarios) {
      if (mine !== asked) return;
      made.push(await ask("run", { json, seed: state.seed }));
    }
    if (mine !== asked) return;
    $("error").hidden = true;
    display(made, scenarios);
    if (at !== null) player.now = Math.min(at, player.length);
    player.draw();
    if (performance.getEntriesByName("picture").length === 0) performance.mark("picture");
    if (play) player.play();
    else remember();
  } catch (error) {
    if (mine === asked) fail(error);
  } finally {
    if (mine === asked) document.body.classList.remove("busy");
  }
}

function display(made, scenarios) {
  replays = made.map((recording, place) => {
    const cut = events(scenarios[place]).find((event) => event.kind === "restart" || event.kind === "alarm");
    return new Replay(recording, cut?.at ?? null, cut === undefined && scenarios[place].run.for !== undefined);
  });
  // Two pictures are judged by the same link.
  replays.slice(1).filter((replay) => replay.lines.length === replays[0].lines.length).forEach((replay) => (replay.bottleneck = replays[0].bottleneck));
  look(scenarios);
  $("side-b").hidden = replays.length < 2;
  $("stages").classList.toggle("two", replays.length === 2);
  replays.forEach((replay, place) => {
    const { word, text } = verdict(replay);
    const side = "ab"[place];
    $(`word-${side}`).textContent = word;
    $(`word-${side}`).dataset.word = word;
    $(`verdict-${side}`).textContent = text;
  });
  $("headline").textContent = HEADLINES[$("word-a").textContent];
  document.body.dataset.took = replays.map((replay) => replay.took.toFixed(1)).join(" ");
  charts.show(replays, palette);
  player.load(Math.max(...replays.map((replay) => replay.seconds)));
}

/** Shows the queue of the link that the reader has chosen, else that of the bottleneck. */
function look(scenarios) {
  const links = replays[0].lines.map((line) => line.name);
  if (state.link !== "" && !links.includes(state.link)) {
    fail(`address: link: unknown \`${state.link}\` (known: ${links.join(", ")})`);
    state.link = "";
  }
  for (const replay of replays) {
    const chosen = replay.lines.findIndex((line) => line.name === state.link);
    replay.look(chosen < 0 ? replay.bottleneck : chosen);
  }
  const options = links.map((name, place) => new Option(place === replays[0].bottleneck ? `${name} (the bottleneck)` : name, name));
  $("link").replaceChildren(...options);
  $("link").value = replays[0].lines[replays[0].shown].name;
  const most = Math.max(1, ...replays.map((replay) => replay.longest[replay.shown]));
  replays.forEach((replay, place) => stages[place].show(replay, limit(scenarios[place], replay.lines[replay.shown].name), most));
}

/** Names and words that follow from the state alone. */
function describe() {
  const [one, other] = names(state);
  $("name-a").textContent = one;
  $("name-b").textContent = other;
  $("seed").value = state.seed;
  const devices = `${count(value(state, "devices"))} devices`;
  const own = state.own?.json.title || state.own?.name;
  $("about-run").textContent = own ?? (isCut(state) ? `A power cut of an instant, ${devices} on one narrow radio cell.` : `${devices} on one narrow radio cell.`);
  $("file-name").textContent = state.own === null ? "" : state.own.name;
  $("forget").hidden = state.own === null;
  const cut = value(state, "cut");
  const fits = setting("cut").fits(scenario(state)) && value(state, "work") === "reports";
  $("cut").disabled = !fits;
  $("no-cut").hidden = !fits || !isCut(state);
  $("cut-told").textContent = !fits ? "These devices never stop." : isCut(state) && cut >= 0 ? `The power fails at ${clock(cut)}.` : "The power does not fail.";
}

$("cut").addEventListener("click", () => {
  const end = player.length;
  state.values.cut = Math.min(Math.max(1, Math.round(player.now)), Math.floor(end) - 1);
  leave();
  compute({ at: Math.max(0, state.values.cut - 3), play: !calm.matches });
});
$("no-cut").addEventListener("click", () => {
  state.values.cut = -1;
  leave();
  compute();
});
$("seed").addEventListener("change", () => {
  const seed = Number($("seed").value);
  if (!Number.isInteger(seed) || seed < 0 || seed > 0xffff_ffff) {
    fail(`seed: \`${$("seed").value}\` is no whole number from 0 to 4294967295`);
    return;
  }
  state.seed = seed;
  compute();
});
$("link").addEventListener("change", () => {
  state.link = $("link").value;
  look([false, true].slice(0, replays.length).map((side) => scenario(state, side)));
  charts.show(replays, palette);
  player.draw();
  remember();
});
$("reset").addEventListener("click", () => {
  state = fresh();
  tour.show(0);
  $("tour").classList.remove("left");
  compute({ at: 0, play: !calm.matches });
});
$("close-error").addEventListener("click", () => ($("error").hidden = true));

takeIn({ zone: $("drop"), input: $("file") }, async (name, text) => {
  const json = await ask("read", { toml: text, origin: name });
  state = { ...fresh(), own: { name, text, json } };
  leave();
  await compute({ at: 0, play: !calm.matches });
}, fail);
$("forget").addEventListener("click", () => $("reset").click());
$("take-out").addEventListener("click", () =>
  ask("write", { json: scenario(state) }).then((toml) => handOut("scenario.toml", toml, "application/toml"), fail));
$("take-tables").addEventListener("click", async () => {
  try {
    const { tables } = await ask("run", { json: scenario(state), seed: state.seed, tables: true });
    const all = JSON.parse(tables);
    for (const name of ["flows", "links"]) handOut(`${name}.csv`, csv(all[name]), "text/csv");
  } catch (error) {
    fail(error);
  }
});

window.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA|BUTTON|A|SUMMARY)$/.test(event.target.tagName);
  if (event.ctrlKey || event.metaKey || event.altKey || typing) return;
  if (event.key === " ") player.button.click();
  else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    player.seek(player.now + (event.key === "ArrowLeft" ? -1 : 1) * (event.shiftKey ? 10 : 1));
    remember();
  } else return;
  event.preventDefault();
});

/** Colours, sizes: whatever changes them, the picture follows. */
function repaint() {
  palette = colours();
  if (replays.length > 0) charts.show(replays, palette);
  player.draw();
}
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
new ResizeObserver(() => player.draw()).observe($("stages"));

const opened = () => read(location.hash, (text, name) => ask("read", { toml: text, origin: name }));

window.addEventListener("hashchange", async () => {
  try {
    state = await opened();
    compute({ at: state.at });
  } catch (error) {
    fail(error);
  }
});

async function begin() {
  const choices = await ask("controllers");
  setting("controller").choices = choices.map(({ name }) => ({ value: name, text: name }));
  controls.fill("controller");
  let refused = null;
  try {
    state = await opened();
  } catch (error) {
    refused = error;
  }
  // An address is shown as it says; without one the collapse unfolds.
  const isFirst = location.hash === "" || refused !== null;
  if (!isFirst) leave();
  document.body.classList.toggle("unfolding", isFirst && !calm.matches);
  await compute({ at: isFirst ? (calm.matches ? 150 : 0) : state.at, play: isFirst && !calm.matches });
  if (refused !== null) fail(refused);
  document.body.classList.add("ready");
}

begin().catch(fail);
if ("serviceWorker" in navigator && window.isSecureContext) navigator.serviceWorker.register("sw.js").catch(() => {});
