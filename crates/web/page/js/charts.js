// The lines below the picture: queue, goodput ratio, devices that are done.

import { clock, count } from "./words.js";

const DASHES = [[], [6, 4]];
/** Seconds between two marks below: what divides minutes and hours. */
const MARKS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

const KINDS = [
  { title: "Packets in the queue", of: (replay) => Array.from(replay.lines[replay.shown].queue), told: (value) => count(value) },
  { title: "Goodput ratio of the link", of: (replay) => replay.shares, told: (value) => `${Math.round(value)} %`, range: [0, 100] },
  {
    title: "Devices with all their answers",
    of: (replay) => Array.from(replay.done, (done) => (replay.devices > 0 ? (100 * done) / replay.devices : 0)),
    told: (value) => `${Math.round(value)} %`,
    range: [0, 100],
  },
];

export class Charts {
  /** `seek` is called with the time that the reader points at. */
  constructor(home, seek) {
    this.seek = seek;
    this.boxes = KINDS.map((kind) => {
      const figure = document.createElement("figure");
      const caption = document.createElement("figcaption");
      caption.textContent = kind.title;
      const box = document.createElement("div");
      box.className = "plot";
      figure.append(caption, box);
      home.append(figure);
      return box;
    });
    this.plots = [];
    new ResizeObserver(() => this.resize()).observe(home);
  }

  /** Shows these runs, one line each. */
  show(replays, palette) {
    this.plots.forEach((plot) => plot.destroy());
    this.replays = replays;
    this.plots = KINDS.map((kind, place) => this.plot(kind, this.boxes[place], replays, palette));
    this.at(this.time ?? 0);
  }

  plot(kind, box, replays, palette) {
    const longest = replays.reduce((one, other) => (other.times.length * other.step > one.times.length * one.step ? other : one));
    const times = Array.from(longest.times);
    const rows = replays.map((replay) => resampled(kind.of(replay), replay.step, times));
    const axis = { stroke: palette.soft, grid: { stroke: palette.line, width: 1 }, ticks: { show: false }, font: "11px system-ui", gap: 4 };
    const options = {
      width: box.clientWidth || 280,
      height: box.clientHeight || 120,
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { setScale: false, x: false, y: false } },
      scales: { x: { time: false }, y: { range: kind.range ?? ((_, least, most) => [0, Math.max(10, 1.1 * most)]) } },
      axes: [
        { ...axis, size: 22, space: 48, incrs: MARKS, values: (_, ticks) => ticks.map(clock) },
        { ...axis, size: 44, space: 28, values: (_, ticks) => ticks.map(kind.told) },
      ],
      series: [{}, ...replays.map((_, place) => this.series(kind, place, palette))],
      hooks: { draw: [(plot) => this.marks(plot, replays, palette)] },
    };
    const plot = new window.uPlot(options, [times, ...rows], box);
    const seek = (event) => {
      const rect = plot.over.getBoundingClientRect();
      this.seek(plot.posToVal(Math.max(0, Math.min(rect.width, event.clientX - rect.left)), "x"));
    };
    plot.over.addEventListener("pointerdown", (event) => {
      plot.over.setPointerCapture(event.pointerId);
      seek(event);
    });
    plot.over.addEventListener("pointermove", (event) => plot.over.hasPointerCapture(event.pointerId) && seek(event));
    const head = document.createElement("div");
    head.className = "playhead";
    plot.over.append(head);
    plot.head = head;
    return plot;
  }

  series(kind, place, palette) {
    const stroke = place === 0 ? palette.ink : palette.soft;
    return { stroke, width: 1.75, dash: DASHES[place], points: { show: false }, spanGaps: false };
  }

  /** The power cut as a line. */
  marks(plot, replays, palette) {
    const { ctx, bbox } = plot;
    for (const at of new Set(replays.map((replay) => replay.event).filter((event) => event !== null))) {
      const x = plot.valToPos(at, "x", true);
      ctx.save();
      ctx.strokeStyle = palette.vain;
      ctx.lineWidth = window.devicePixelRatio || 1;
      ctx.setLineDash([2 * ctx.lineWidth, 3 * ctx.lineWidth]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.restore();
    }
  }

  /** Moves the line of the present moment. */
  at(time) {
    this.time = time;
    for (const plot of this.plots) plot.head.style.transform = `translateX(${plot.valToPos(time, "x")}px)`;
  }

  resize() {
    this.plots.forEach((plot, place) => {
      const { clientWidth: width, clientHeight: height } = this.boxes[place];
      if (width > 0) plot.setSize({ width, height });
    });
    this.at(this.time ?? 0);
  }
}

function resampled(values, step, times) {
  return times.map((time) => values[Math.round(time / step)] ?? null);
}
