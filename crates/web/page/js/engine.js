// The page's end of the worker: calls with answers, and a fresh engine after one that broke.

let worker = null;
let last = 0;
const open = new Map();

function start() {
  worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }) => {
    const call = open.get(data.id);
    open.delete(data.id);
    if (data.broken) restart(data.error);
    if (data.error !== undefined) call?.reject(new Error(data.error));
    else call?.resolve(data.result);
  };
  worker.onerror = (event) => restart(event.message || "the engine could not be loaded");
}

function restart(why) {
  worker.terminate();
  worker = null;
  for (const call of open.values()) call.reject(new Error(why));
  open.clear();
}

/** Does a task of worker.js; rejects with one line. */
export function ask(task, what = {}) {
  if (worker === null) start();
  const id = ++last;
  return new Promise((resolve, reject) => {
    open.set(id, { resolve, reject });
    worker.postMessage({ id, task, what });
  });
}
