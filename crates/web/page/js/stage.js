// The picture: devices, the queue in front of each link, packets on the link. One canvas shows one run.

import { MOSTLY, bytes, count, duration, percent } from "./words.js";

const IN_VAIN = 1;
const TAU = 2 * Math.PI;

/** The colours of the page, read anew when they change. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return { useful: of("useful"), vain: of("vain"), ink: of("ink"), soft: of("soft"), line: of("line"), ground: of("card") };
}

export class Stage {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.replay = null;
  }

  /** `limit`: of the queue in bytes, or null. `most`: the longest queue of all runs shown, for a common scale. */
  show(replay, limit, most) {
    Object.assign(this, { replay, limit, most });
  }

  /** Draws one moment. `speed`: simulated seconds a second. */
  draw(at, speed, palette) {
    const { canvas, context: ctx, replay } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const dots = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * dots) || canvas.height !== Math.round(height * dots)) {
      canvas.width = Math.round(width * dots);
      canvas.height = Math.round(height * dots);
    }
    ctx.setTransform(dots, 0, 0, dots, 0, 0);
    ctx.clearRect(0, 0, width, height);
    if (replay === null) return;
    this.palette = palette;
    this.small = width < 520;
    ctx.font = `${this.small ? 11 : 12}px ${getComputedStyle(canvas).fontFamily}`;
    ctx.textBaseline = "alphabetic";
    const places = this.places(width, height);
    this.devices(places.devices, at);
    this.pond(places.pond, at);
    this.link(places.link, replay.shown, at, speed, -1);
    const other = replay.lanes.length === 2 ? 1 - replay.shown : -1;
    if (other >= 0) this.link(places.back, other, at, speed, 1);
    this.server(places.server);
  }

  places(width, height) {
    const pad = this.small ? 8 : 16;
    const head = 20;
    const left = Math.min(0.27 * width, height - 2 * head);
    const right = this.small ? 0.30 * width : 0.34 * width;
    const serverWidth = this.small ? 34 : 56;
    const top = head + 66;
    const pond = { x: width - pad - serverWidth - 10 - right, y: top, w: right, h: height - top - 30 };
    const devices = { x: pad, y: head + 8, w: left, h: height - head - 8 - 30 };
    const from = devices.x + devices.w + 10;
    return {
      devices,
      pond,
      link: { x: from, y: pond.y + pond.h - 12, w: pond.x - from - 2 },
      back: { x: from, y: head + 14, w: width - pad - serverWidth - 10 - from },
      server: { x: width - pad - serverWidth, y: head + 2, w: serverWidth, h: height - head - 32 },
    };
  }

  text(words, x, y, { colour = this.palette.soft, align = "left", size = null, weight = 400 } = {}) {
    const { context: ctx } = this;
    const font = ctx.font;
    if (size !== null || weight !== 400) ctx.font = `${weight} ${size ?? 12}px ${font.slice(font.indexOf("px") + 3)}`;
    ctx.fillStyle = colour;
    ctx.textAlign = align;
    ctx.fillText(words, x, y);
    ctx.font = font;
  }

  /** A dot for each device: pale, or waiting, or waiting after copies. */
  devices({ x, y, w, h }, at) {
    const { context: ctx, replay, palette } = this;
    const shown = Math.min(replay.devices, 2500);
    const step = Math.max(3, Math.floor(Math.sqrt((w * h) / shown)));
    const columns = Math.max(1, Math.floor(w / step));
    const radius = Math.min(7, 0.34 * step);
    const kinds = [[], [], []];
    for (let device = 0; device < shown; device++) {
      const copy = replay.waitOf(device, at);
      kinds[copy < 0 ? 0 : copy === 0 ? 1 : 2].push(device);
    }
    kinds.forEach((devices, kind) => {
      ctx.beginPath();
      for (const device of devices) {
        const cx = x + (device % columns) * step + step / 2;
        const cy = y + Math.floor(device / columns) * step + step / 2;
        if (cy > y + h) break;
        ctx.moveTo(cx + radius, cy);
        ctx.arc(cx, cy, radius, 0, TAU);
      }
      // Who has sent copies is a ring, so that nothing hangs on colour alone.
      ctx.fillStyle = [palette.line, palette.useful][kind] ?? palette.ground;
      ctx.fill();
      if (kind === 2) {
        ctx.strokeStyle = palette.vain;
        ctx.lineWidth = Math.max(1.2, 0.55 * radius);
        ctx.stroke();
      }
    });
    const waiting = kinds[1].length + kinds[2].length;
    this.text(this.small ? `${count(replay.devices)} devices` : `${count(replay.devices)} devices, ${count(waiting)} waiting`, x, y - 8);
    this.text(`${count(kinds[2].length)} sent again`, x, y + h + 20, { colour: kinds[2].length > 0 ? palette.vain : palette.soft });
  }

  /** The queue of the link that is looked at as water: who leaves next lies at the bottom. In each row the useful ones come first. */
  pond({ x, y, w, h }, at) {
    const { context: ctx, replay, palette } = this;
    const lane = replay.lanes[replay.shown];
    const size = Math.max(3, Math.min(9, Math.floor(2 * Math.sqrt((w * h) / Math.max(1, this.most * 1.08))) / 2));
    const columns = Math.max(1, Math.floor(w / size));
    const rows = Math.max(1, Math.floor(h / size));
    const each = Math.max(1, Math.ceil(this.most / (columns * rows)));
    const [head, tail] = replay.hasPackets ? lane.waiting(at) : [0, 0];
    const dot = size < 4 ? size - 0.5 : size - 1;
    const paint = { useful: new Path2D(), vain: new Path2D() };
    const perRow = columns * each;
    for (let row = 0; head + row * perRow < tail && row < rows; row++) {
      const [from, to] = [head + row * perRow, Math.min(tail, head + (row + 1) * perRow)];
      let useful = 0;
      for (let place = from; place < to; place++) if (lane.fates[place] !== IN_VAIN) useful++;
      const cells = Math.ceil((to - from) / each);
      const blue = Math.round(useful / each);
      const top = y + h - (row + 1) * size;
      for (let cell = 0; cell < cells; cell++) {
        // Flat, where there is room to see it.
        const flat = cell >= blue && size >= 5 ? 0.3 * dot : 0;
        paint[cell < blue ? "useful" : "vain"].rect(x + cell * size, top + flat / 2, dot, dot - flat);
      }
    }
    ctx.fillStyle = palette.useful;
    ctx.fill(paint.useful);
    ctx.fillStyle = palette.vain;
    ctx.fill(paint.vain);
    // The bed: left, bottom, right.
    ctx.strokeStyle = palette.soft;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.moveTo(x - 3, y - 6);
    ctx.lineTo(x - 3, y + h + 2);
    ctx.lineTo(x + columns * size + 2, y + h + 2);
    ctx.lineTo(x + columns * size + 2, y - 6);
    ctx.stroke();
    const queued = replay.queueAt(at);
    const wait = replay.lines[replay.shown].queueBytes[replay.frame(at)] / replay.drain;
    const told = `${count(queued)} ${this.small ? "wait" : "in the queue"}`;
    this.text(told, x, y - (queued > 0 ? 25 : 10), { colour: palette.ink, size: this.small ? 12 : 14, weight: 600 });
    if (queued > 0 && Number.isFinite(wait)) this.text(`${duration(wait)} ${this.small ? "long" : "until the last one leaves"}`, x, y - 10);
    const refused = lane.refusedBy(at);
    const room = this.limit === null ? "" : `room for ${bytes(this.limit)}`;
    this.text(refused > 0 ? `${count(refused)} turned away` : room, x, y + h + 20, { colour: refused > 0 ? palette.vain : palette.soft });
  }

  /** Packets that have left a queue, on their way. When time is fast only every so-manieth is drawn. */
  link({ x, y, w }, link, at, speed, way) {
    const { context: ctx, replay, palette } = this;
    const lane = replay.lanes[link];
    ctx.strokeStyle = palette.line;
    ctx.lineWidth = 10;
    ctx.lineCap = "round";
    ctx.beginPath();
    ctx.moveTo(x + 5, y);
    ctx.lineTo(x + w - 5, y);
    ctx.stroke();
    const isShown = link === replay.shown;
    if (replay.hasPackets) {
      // As many packets lie on the link as leave in 1.2 s of the reader's time, or as are really on it.
      const pace = Math.max(lane.pace(replay.seconds / 2, replay.seconds / 2), 1);
      const onIt = Math.max(8, pace * Math.max(0.4, speed * 1.2));
      const every = Math.max(1, Math.ceil((onIt * 11) / w));
      const left = lane.left(at);
      const paint = { useful: new Path2D(), vain: new Path2D() };
      for (let packet = Math.floor(left / every) * every; packet >= 0 && left - packet < onIt; packet -= every) {
        if (packet >= lane.fates.length || lane.sent[packet] === Infinity) continue;
        const way01 = (left - packet) / onIt;
        const px = way < 0 ? x + w - way01 * w : x + way01 * w;
        const vain = lane.fates[packet] === IN_VAIN;
        const path = paint[vain ? "vain" : "useful"];
        path.moveTo(px + 3.4, y);
        path.arc(px, y, 3.4, 0, TAU);
      }
      ctx.fillStyle = palette.useful;
      ctx.fill(paint.useful);
      ctx.strokeStyle = palette.vain;
      ctx.lineWidth = 2;
      ctx.stroke(paint.vain);
    }
    if (!isShown) return;
    const share = replay.shareAt(at);
    if (Number.isFinite(share) && !this.small) {
      const colour = share < MOSTLY ? palette.vain : palette.useful;
      this.text(percent(share), x + w / 2, y - 34, { colour, align: "center", size: 26, weight: 650 });
      this.text("of the link is of use", x + w / 2, y - 16, { align: "center" });
    } else if (Number.isFinite(share)) {
      this.text(percent(share), x + w / 2, y - 14, { colour: share < MOSTLY ? palette.vain : palette.useful, align: "center", size: 15, weight: 650 });
    }
  }

  server({ x, y, w, h }) {
    const { context: ctx, palette } = this;
    ctx.fillStyle = palette.line;
    ctx.beginPath();
    ctx.roundRect(x, y, w, h, 8);
    ctx.fill();
    ctx.save();
    ctx.translate(x + w / 2 + 4, y + h / 2);
    ctx.rotate(-Math.PI / 2);
    this.text("server", 0, 0, { colour: palette.ink, align: "center" });
    ctx.restore();
  }
}
