// Reads the address on standard input as the page does; prints what became of it and how many bytes were inflated.

import { readFileSync } from "node:fs";

const Native = globalThis.DecompressionStream;
let inflated = 0;

globalThis.DecompressionStream = class {
  constructor(format) {
    const native = new Native(format);
    const counting = new TransformStream({
      transform(chunk, controller) {
        inflated += chunk.length;
        controller.enqueue(chunk);
      },
    });
    this.writable = native.writable;
    this.readable = native.readable.pipeThrough(counting);
  }
};

const { read } = await import("../page/js/state.js");
const told = await read(readFileSync(0, "utf8"), (text) => ({ characters: text.length })).then(
  (state) => `read ${state.own.json.characters} characters`,
  (error) => error.message,
);
console.log(`${told}\n${inflated}`);
