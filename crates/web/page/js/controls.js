// The panel of settings, each explained where it stands.

import { SETTINGS, setting } from "./settings.js";
import { base, scenario, value } from "./state.js";
import { told } from "./words.js";

/** What can stand beside: one thing that is different, with the same random numbers. Of a list every other choice. */
const BESIDE = [
  { key: "controller", label: "Another controller" },
  { key: "buffer", label: "Another buffer", values: [2500, 14100, 28200, 1410000] },
  { key: "spread", label: "Another spread of starts", values: [0, 30, 60, 120, 240] },
  { key: "firmware", label: "Another share of new firmware", values: [0, 50, 100] },
  { key: "work", label: "Other work" },
];

export class Controls {
  /** `change` is called with a key and its value, `beside` with what stands beside. */
  constructor(home, besideHome, { change, beside }) {
    this.fields = new Map();
    for (const one of SETTINGS.filter((one) => !one.hidden)) {
      const field = element("div", { className: "field" });
      const id = `set-${one.key}`;
      const label = element("label", { htmlFor: id, textContent: one.label });
      const output = element("output", { htmlFor: id });
      const about = element("p", { id: `${id}-about`, className: "about", textContent: one.about });
      const input = one.choices ? element("select", { id }) : slider(id, one.values.length);
      input.setAttribute("aria-describedby", about.id);
      const read = () => (one.choices ? input.value : one.values[Number(input.value)]);
      input.addEventListener("input", () => change(one.key, read()));
      field.append(row(label, output), input, about);
      home.append(field);
      this.fields.set(one.key, { one, field, input, output, about });
    }
    this.beside = besideHome;
    besideHome.addEventListener("change", () => beside(besideHome.value));
    this.fill("work");
  }

  /** Puts the choices of a list in. */
  fill(key) {
    const { one, input } = this.fields.get(key);
    input.replaceChildren(...one.choices.map((choice) => element("option", { value: choice.value, textContent: choice.text })));
  }

  show(state) {
    const json = base(state);
    for (const { one, field, input, output, about } of this.fields.values()) {
      const fits = one.fits(json, state.own !== null);
      const now = value(state, one.key);
      field.classList.toggle("off", !fits);
      input.disabled = !fits;
      about.textContent = fits ? one.about : "The scenario file says this in a way that cannot be set here.";
      if (one.choices) {
        if (now !== null && !Array.from(input.options).some((option) => option.value === now)) {
          input.append(element("option", { value: now, textContent: now }));
        }
        input.value = now ?? "";
        output.textContent = "";
      } else {
        input.value = nearest(one.values, now);
        output.textContent = told(one.key, now);
        input.setAttribute("aria-valuetext", output.textContent);
      }
    }
    this.fillBeside(state, json);
  }

  fillBeside(state, json) {
    const groups = BESIDE.filter(({ key }) => setting(key).fits(json, state.own !== null)).map(({ key, label, values }) => {
      const all = values ?? setting(key).choices.map((choice) => choice.value);
      const others = all.filter((other) => other !== value(state, key) || `${key}:${other}` === state.beside);
      const options = others.map((other) => element("option", { value: `${key}:${other}`, textContent: besideName(key, other) }));
      const group = element("optgroup", { label });
      group.append(...options);
      return group;
    });
    this.beside.replaceChildren(element("option", { value: "", textContent: "nothing" }), ...groups);
    if (state.beside !== "" && !this.beside.querySelector(`option[value="${CSS.escape(state.beside)}"]`)) {
      const [key, text] = state.beside.split(":");
      this.beside.append(element("option", { value: state.beside, textContent: besideName(key, text) }));
    }
    this.beside.value = state.beside;
  }
}

/** A value as a name of a run: `fasor-token`, `buffer 14.1 kB`. */
export function besideName(key, what) {
  const one = setting(key);
  const choice = one.choices?.find((known) => known.value === what);
  if (one.choices) return choice?.text ?? what;
  return `${one.label.toLowerCase()} ${told(key, Number(what))}`;
}

/** The two names under which runs stand side by side. */
export function names(state) {
  const [key, text] = state.beside === "" ? ["controller", ""] : state.beside.split(":");
  const now = value(state, key);
  return [now === null ? "as the file says" : besideName(key, now), text === "" ? "" : besideName(key, text)];
}

/** Whether the scenario of a state has a power cut. */
export const isCut = (state) => (scenario(state).timeline ?? []).some((event) => event.kind === "restart");

function nearest(values, now) {
  if (now === null) return 0;
  return values.reduce((best, one, place) => (Math.abs(one - now) < Math.abs(values[best] - now) ? place : best), 0);
}

function slider(id, stops) {
  return element("input", { id, type: "range", min: 0, max: stops - 1, step: 1 });
}

function row(...parts) {
  const line = element("div", { className: "row" });
  line.append(...parts);
  return line;
}

function element(name, properties) {
  return Object.assign(document.createElement(name), properties);
}
