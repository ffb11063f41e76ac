// Scenario files in and out.

/** The longest scenario that is read, from a file or an address: far more than any has. */
export const MOST = 1_000_000;

/** Calls `take` with the name and text of every file that is dropped on the page or chosen, `fail` with one line. */
export function takeIn({ zone, input }, take, fail) {
  const read = async (file) => {
    if (file === undefined) return;
    if (file.size > MOST) {
      fail(`${file.name}: ${file.size} bytes are too many for a scenario: at most ${MOST}`);
      return;
    }
    try {
      await take(file.name, await file.text());
    } catch (error) {
      fail(error);
    }
  };
  input.addEventListener("change", () => {
    read(input.files[0]);
    input.value = "";
  });
  const over = (is) => zone.classList.toggle("over", is);
  window.addEventListener("dragover", (event) => {
    event.preventDefault();
    over(true);
  });
  window.addEventListener("dragleave", (event) => event.relatedTarget === null && over(false));
  window.addEventListener("drop", (event) => {
    event.preventDefault();
    over(false);
    read(event.dataTransfer.files[0]);
  });
}

/** Hands a text to the reader as a file. */
export function handOut(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A table of columns as comma-separated values. */
export function csv(columns) {
  const names = Object.keys(columns);
  const cell = (what) => (what === null ? "" : /[",\n]/.test(what) ? `"${String(what).replaceAll('"', '""')}"` : String(what));
  const rows = columns[names[0]].map((_, row) => names.map((name) => cell(columns[name][row])).join(","));
  return `${[names.join(","), ...rows].join("\n")}\n`;
}
