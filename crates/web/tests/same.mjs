// The engine of the page in Node.js: `node same.mjs SITE SCENARIO.toml SEED` prints the tables of one run as JSON.

import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const [site, file, seed] = process.argv.slice(2);
const engine = await import(pathToFileURL(`${site}/engine/engine.js`));
await engine.default({ module_or_path: await readFile(`${site}/engine/engine_bg.wasm`) });
const scenario = engine.Scenario.fromToml(await readFile(file, "utf8"), file);
console.log(engine.run(scenario, Number(seed)).tables());
