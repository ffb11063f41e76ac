// Time: playing, scrubbing, speed.

import { clock } from "./words.js";

/** The whole run goes by in so many seconds, unless another speed is chosen. */
const WHOLE = 10;

export class Player {
  /** `show` is called with a time and the speed whenever there is something new to draw, `rest` when time stands still. */
  constructor({ button, slider, time, speed }, { show, rest }) {
    Object.assign(this, { button, slider, time, speed, show, rest });
    this.now = 0;
    this.length = 1;
    this.playing = false;
    button.addEventListener("click", () => (this.playing ? this.pause() : this.play()));
    slider.addEventListener("input", () => this.seek(Number(slider.value)));
    slider.addEventListener("change", () => this.rest());
    speed.addEventListener("change", () => this.draw());
  }

  /** Simulated seconds a second. */
  get pace() {
    return this.speed.value === "" ? this.length / WHOLE : Number(this.speed.value);
  }

  load(length) {
    this.length = length;
    this.slider.max = length;
    this.slider.step = length / 1000;
    this.now = Math.min(this.now, length);
    this.draw();
  }

  play() {
    if (this.now >= this.length) this.now = 0;
    this.playing = true;
    this.last = null;
    this.named();
    requestAnimationFrame((stamp) => this.tick(stamp));
  }

  pause() {
    this.playing = false;
    this.named();
    this.rest();
  }

  seek(time) {
    this.playing = false;
    this.named();
    this.now = Math.max(0, Math.min(this.length, time));
    // Many may come between two frames: the last one counts.
    this.due ??= requestAnimationFrame(() => {
      this.due = undefined;
      this.draw();
    });
  }

  tick(stamp) {
    if (!this.playing) return;
    // A page that was hidden does not leap.
    const passed = this.last === null ? 0 : Math.min(0.1, (stamp - this.last) / 1000);
    this.last = stamp;
    this.now = Math.min(this.length, this.now + passed * this.pace);
    this.draw();
    if (this.now >= this.length) this.pause();
    else requestAnimationFrame((next) => this.tick(next));
  }

  draw() {
    this.slider.value = this.now;
    this.slider.setAttribute("aria-valuetext", clock(this.now));
    this.time.textContent = `${clock(this.now)} / ${clock(this.length)}`;
    this.show(this.now, this.pace);
  }

  named() {
    this.button.textContent = this.playing ? "Pause" : "Play";
    this.button.setAttribute("aria-pressed", String(this.playing));
  }
}
