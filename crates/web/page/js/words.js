// Numbers and sentences.

const group = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const count = (number) => group.format(number);

/** 83 → 1:23. */
export function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const [h, min, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (number) => String(number).padStart(2, "0");
  return h > 0 ? `${h}:${two(min)}:${two(s)}` : `${min}:${two(s)}`;
}

export const percent = (share) => (Number.isFinite(share) ? `${Math.round(100 * share)} %` : "–");

/** 14100 → 14.1 kB. */
export function bytes(number) {
  if (number < 1000) return `${number} B`;
  const [value, unit] = number < 1e6 ? [number / 1000, "kB"] : [number / 1e6, "MB"];
  return `${Number(value.toPrecision(3))} ${unit}`;
}

/** 47 s, 1 min 30 s. */
export function duration(seconds) {
  if (seconds < 10) return `${Number(seconds.toFixed(1))} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const [min, s] = [Math.floor(seconds / 60), Math.round(seconds % 60)];
  return s === 0 ? `${min} min` : `${min} min ${s} s`;
}

/** A value of a setting as people write it. */
export function told(key, what) {
  if (what === null || what === undefined) return "as the file says";
  switch (key) {
    case "buffer": return bytes(what);
    case "rate": return `${Number(what.toPrecision(3))} kbit/s`;
    case "loss": return `${what} %`;
    case "firmware": return `${what} %`;
    case "spread": return what === 0 ? "none" : duration(what);
    case "devices": return count(what);
    default: return String(what);
  }
}

/** What stands at one moment, in one sentence. */
export function moment(replay, at) {
  const queue = replay.queueAt(at);
  const share = replay.shareAt(at);
  const parts = [
    `${count(queue)} ${queue === 1 ? "packet waits" : "packets wait"} for the link`,
    Number.isFinite(share) ? `${percent(share)} of what it carries is of use` : "which is idle",
  ];
  if (!replay.endless) parts.push(`${count(replay.doneAt(at))} of ${count(replay.devices)} devices have all their answers`);
  return `At ${clock(at)}: ${parts.join(", ")}.`;
}

/** What stands above the picture once it is known what becomes of the run. */
export const HEADLINES = {
  Collapse: "Nothing is broken, and nothing gets through.",
  Recovered: "It was near, and the cell came back.",
  Calm: "Everybody gets an answer.",
  Strained: "It gets through, and it takes its time.",
};

/** A link mostly carries what is needed if at least this share of its bytes is of use. */
export const MOSTLY = 0.5;

/** What became of a run, in one or two sentences. */
export function verdict(replay) {
  const end = replay.shareAt(replay.seconds, 30, replay.bottleneck);
  const finished = replay.finished();
  const stand = replay.endless ? "" : ` ${count(replay.doneAt(replay.seconds))} of ${count(replay.devices)} devices have all their answers.`;
  const turned = replay.refused > 0 ? ` ${count(replay.refused)} packets found the buffer full.` : "";
  if (Number.isFinite(end) && end < replay.least && replay.queueAt(replay.seconds, replay.bottleneck) > 0) {
    return { word: "Collapse", text: `At the end ${percent(1 - end)} of what the link carries are copies that nobody needs.${stand}` };
  }
  if (finished !== null && !replay.endless) {
    const lowest = replay.lowest();
    const since = replay.event === null ? "" : " after the power cut";
    const rough = lowest < MOSTLY ? ` It was near: for a while only ${percent(lowest)} were of use.` : "";
    return {
      word: lowest < MOSTLY ? "Recovered" : "Calm",
      text: `The last device had all its answers ${duration(finished)}${since}.${rough}`,
    };
  }
  const share = Number.isFinite(end) ? ` At the end ${percent(end)} of what the link carries are of use.` : " At the end the link is idle.";
  const isCalm = replay.endless && !(end < 0.9);
  return { word: isCalm ? "Calm" : "Strained", text: `${share}${stand}${turned}`.trim() };
}
