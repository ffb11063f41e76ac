// A recording with what is needed to show any moment of it at once.

/** The first place at which `is` holds, in a list where it then holds to the end. */
function first(length, is) {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (is(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

const greatest = (numbers) => numbers.reduce((most, now) => Math.max(most, now), 0);
const sum = (numbers) => numbers.reduce((all, now) => all + now, 0);

const REFUSED = 2;
const LOST = 3;

/** The packets of one link that it took, in the order in which they left. */
class Lane {
  constructor(link) {
    this.name = link.name;
    const taken = [];
    const refused = [];
    for (let place = 0; place < link.came.length; place++) {
      const fate = link.fates[place];
      if (fate === REFUSED || (fate === LOST && link.sent[place] === Infinity)) refused.push(link.came[place]);
      else taken.push(place);
    }
    this.came = Float32Array.from(taken, (place) => link.came[place]);
    this.sent = Float32Array.from(taken, (place) => link.sent[place]);
    this.fates = Uint8Array.from(taken, (place) => link.fates[place]);
    // Jitter may have packets overtake each other behind the queue, never in it.
    for (let place = 1; place < this.sent.length; place++) {
      if (this.sent[place] < this.sent[place - 1]) this.sent[place] = this.sent[place - 1];
    }
    this.refused = Float32Array.from(refused);
  }

  /** Those that wait at a moment: from the first to leave up to, not including, the second number. */
  waiting(at) {
    const head = first(this.sent.length, (place) => this.sent[place] > at);
    return [head, Math.max(head, first(this.came.length, (place) => this.came[place] > at))];
  }

  /** How many have left, with the part of the next one that has. */
  left(at) {
    const next = first(this.sent.length, (place) => this.sent[place] > at);
    if (next >= this.sent.length || this.sent[next] === Infinity) return next;
    const began = Math.max(this.came[next], next > 0 ? this.sent[next - 1] : 0);
    const whole = this.sent[next] - began;
    return next + (at <= began || whole <= 0 ? 0 : (at - began) / whole);
  }

  /** Packets a second around a moment. */
  pace(at, span) {
    const places = [at - span, at + span].map((edge) => first(this.sent.length, (place) => this.sent[place] > edge));
    return (places[1] - places[0]) / (2 * span);
  }

  /** Packets that were not taken up to a moment. */
  refusedBy(at) {
    return first(this.refused.length, (place) => this.refused[place] > at);
  }
}

export class Replay {
  /** `event`: when the power was cut, or null. `endless`: devices go on for as long as the run lasts. */
  constructor(recording, event, endless) {
    Object.assign(this, { seconds: recording.seconds, step: recording.step, hasPackets: recording.hasPackets });
    // A link of whose bytes fewer are of use has collapsed.
    this.least = 1 - recording.collapse;
    this.event = event;
    this.endless = endless;
    this.took = recording.took;
    this.devices = recording.clients;
    this.done = recording.done;
    this.lines = recording.links;
    this.lanes = recording.links.map((link) => new Lane(link));
    this.longest = recording.links.map((link) => greatest(link.queue));
    // The bottleneck is the link on which packets wait longest; where none wait, that of a path to the devices.
    const waits = recording.links.map((link) => sum(link.queueBytes) / Math.max(1, greatest(link.carried)));
    this.bottleneck = waits.reduce((best, now, place) => (now >= waits[best] ? place : best), 0);
    // The link that is looked at, which a reader may choose. What became of the run is told by the bottleneck.
    this.refused = this.lanes.reduce((sum, lane) => sum + lane.refused.length, 0);
    this.waits = ordered(recording.waits, this.devices);
    this.times = Float64Array.from(this.done, (_, frame) => frame * this.step);
    this.look(this.bottleneck);
  }

  /** Shows this link from now on. */
  look(link) {
    this.shown = link;
    this.shares = smoothed(this.lines[link], this.step);
    // Bytes a second while it is busy.
    this.drain = greatest(this.lines[link].carried) / this.step;
  }

  frame(at) {
    return Math.max(0, Math.min(this.done.length - 1, Math.floor(at / this.step + 1e-6)));
  }

  queueAt(at, link = this.shown) {
    return this.lines[link].queue[this.frame(at)];
  }

  doneAt(at) {
    return this.done[this.frame(at)];
  }

  /** Of what a link carried in the seconds before, the part that was of use; NaN if it carried nothing. */
  shareAt(at, span = 5, link = this.shown) {
    const { carried, useful } = this.lines[link];
    let [all, part] = [0, 0];
    for (let frame = Math.max(0, this.frame(at - span)); frame <= this.frame(at); frame++) {
      all += carried[frame];
      part += useful[frame];
    }
    return all === 0 ? NaN : part / all;
  }

  /** The lowest goodput ratio of half a minute since the event. */
  lowest() {
    let least = 1;
    for (let at = (this.event ?? 0) + 15; at <= this.seconds; at += 5) {
      const share = this.shareAt(at, 15, this.bottleneck);
      if (share < least) least = share;
    }
    return least;
  }

  /** How long until every device was done, since the event; null if not all were. */
  finished() {
    const frame = this.done.findIndex((done) => done >= this.devices);
    return frame < 0 ? null : frame * this.step - (this.event ?? 0);
  }

  /** The copy after which a device waits for an answer at a moment, 0 being the first; -1 if it does not wait. */
  waitOf(device, at) {
    const { starts, from, to, copies } = this.waits;
    const [begin, end] = [starts[device], starts[device + 1]];
    const last = begin + first(end - begin, (place) => from[begin + place] > at) - 1;
    return last >= begin && to[last] > at ? copies[last] : -1;
  }
}

/** Waits by device, each device's in the order of time. */
function ordered(waits, devices) {
  const starts = new Uint32Array(devices + 1);
  for (const client of waits.clients) starts[client + 1]++;
  for (let device = 0; device < devices; device++) starts[device + 1] += starts[device];
  const next = starts.slice();
  const [from, to] = [new Float32Array(waits.from.length), new Float32Array(waits.from.length)];
  const copies = new Uint8Array(waits.from.length);
  for (let place = 0; place < waits.clients.length; place++) {
    const at = next[waits.clients[place]]++;
    [from[at], to[at], copies[at]] = [waits.from[place], waits.to[place], waits.copies[place]];
  }
  return { starts, from, to, copies };
}

/** The goodput ratio over time, of the last five seconds or three steps each; null where nothing was carried. */
function smoothed({ carried, useful }, step) {
  const window = Math.max(3, Math.round(5 / step));
  let [all, part] = [0, 0];
  return Array.from(carried, (bytes, frame) => {
    all += bytes;
    part += useful[frame];
    if (frame >= window) {
      all -= carried[frame - window];
      part -= useful[frame - window];
    }
    return all > 0 ? (100 * part) / all : null;
  });
}
