// What the page shows, and the same as an address.

import { MOST } from "./files.js";
import { OWN, SETTINGS, setting } from "./settings.js";

/** `own`: a scenario file that was put in, `{ name, json, text }`. `values`: what was set, by key. `beside`: the one thing that is
 * different in the run beside, as `key:value`. `link`: whose queue is shown; empty: the bottleneck's. */
export function fresh() {
  return { own: null, values: {}, beside: "", link: "", seed: 1, at: 0 };
}

/** The value of a setting: what was set, or what the scenario has. */
export function value(state, key) {
  return state.values[key] ?? setting(key).read(base(state));
}

/** The scenario before anything was set. */
export const base = (state) => state.own?.json ?? OWN;

/** The scenario to run; `beside`: that of the run beside. */
export function scenario(state, isBeside = false) {
  const json = structuredClone(base(state));
  const values = { ...state.values };
  if (isBeside) {
    const [key, text] = state.beside.split(":");
    values[key] = readable(key, text);
  }
  for (const one of SETTINGS) {
    if (values[one.key] !== undefined && one.fits(json, state.own !== null)) one.apply(json, values[one.key]);
  }
  return json;
}

function readable(key, text) {
  return setting(key).choices || Number.isNaN(Number(text)) ? text : Number(text);
}

/** The address of a state, without the page's own. */
export async function write(state) {
  const words = new URLSearchParams();
  for (const [key, what] of Object.entries(state.values)) words.set(key, what);
  if (state.beside !== "") words.set("beside", state.beside);
  if (state.link !== "") words.set("link", state.link);
  if (state.seed !== 1) words.set("seed", state.seed);
  if (state.at > 0) words.set("at", state.at.toFixed(1));
  if (state.own !== null) {
    words.set("file", state.own.name);
    words.set("scenario", await packed(state.own.text));
  }
  const text = words.toString().replaceAll("%3A", ":");
  return text === "" ? "" : `#${text}`;
}

/** Reads an address; `open` checks the text of a scenario. Rejects with one line. */
export async function read(hash, open) {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const state = fresh();
  for (const [key, text] of words) {
    if (key === "beside") state.beside = checkedBeside(text);
    else if (key === "link") state.link = text;
    else if (key === "seed") state.seed = whole(key, text, 0, 0xffff_ffff);
    else if (key === "at") state.at = number(key, text, 0, Infinity);
    else if (key !== "file" && key !== "scenario") state.values[key] = checked(key, text);
  }
  if (words.has("scenario")) {
    const name = words.get("file") ?? "scenario.toml";
    const text = await unpacked(words.get("scenario"));
    state.own = { name, text, json: await open(text, name) };
  }
  return state;
}

function checked(key, text) {
  const one = setting(key);
  if (one === undefined) throw new Error(`address: unknown key \`${key}\` (known: ${SETTINGS.map((known) => known.key).join(", ")})`);
  if (!one.choices) return number(key, text, one.values ? one.values[0] : -1, one.values ? one.values.at(-1) : 1e9);
  if (one.choices.length > 0 && !one.choices.some((choice) => choice.value === text)) {
    throw new Error(`address: ${key}: unknown \`${text}\` (known: ${one.choices.map((choice) => choice.value).join(", ")})`);
  }
  return text;
}

function checkedBeside(text) {
  if (text === "") return "";
  const [key, what] = text.split(":");
  checked(key, what ?? "");
  return text;
}

function number(key, text, least, most) {
  const found = Number(text);
  if (text.trim() === "" || !Number.isFinite(found) || found < least || found > most) {
    throw new Error(`address: ${key}: \`${text}\` is no number from ${least} to ${most}`);
  }
  return found;
}

function whole(key, text, least, most) {
  const found = number(key, text, least, most);
  if (!Number.isInteger(found)) throw new Error(`address: ${key}: \`${text}\` is no whole number`);
  return found;
}

const through = (stream, bytes) => new Blob([bytes]).stream().pipeThrough(stream);

async function packed(text) {
  const compressed = through(new CompressionStream("deflate-raw"), new TextEncoder().encode(text));
  const bytes = new Uint8Array(await new Response(compressed).arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The text of a packed scenario, which is as long as a file at most: a short address can inflate to gigabytes. */
async function unpacked(text) {
  let length = 0;
  let inflated = "";
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
    const decoder = new TextDecoder();
    for await (const chunk of chunks(through(new DecompressionStream("deflate-raw"), bytes))) {
      length += chunk.length;
      if (length > MOST) break;
      inflated += decoder.decode(chunk, { stream: true });
    }
    inflated += decoder.decode();
  } catch {
    throw new Error("address: scenario: it is damaged; ask for the address anew, or drop the scenario file here");
  }
  if (length > MOST) throw new Error(`address: scenario: inflates to more than ${MOST} bytes, too many for a scenario`);
  return inflated;
}

/** The chunks of a stream, which is cancelled if they are not wanted to the end: not every browser can iterate one. */
async function* chunks(stream) {
  const reader = stream.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    await reader.cancel();
  }
}
