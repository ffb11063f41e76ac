// A guided tour: each stop sets the same controls that the reader has.

export const STOPS = [
  {
    title: "What happens here",
    text: "Four hundred devices report once a minute, and the cell is nearly idle. At 1:00 the power fails for an instant. All come back at "
      + "once, each with ten requests. Answers wait in the queue for longer than a timer of RFC 7252 has patience, so every device sends copies of "
      + "requests that were never lost. The copies take the place of answers, the queue grows, and the cell does not come back.",
    values: {}, beside: "", at: 45,
  },
  {
    title: "Why more buffer makes it worse",
    text: "The same cut, beside a base station whose buffer is a hundredth as large. It drops packets, and that is its merit: an answer "
      + "waits less than four seconds or not at all, so fewer retransmissions are useless, and the cell is calm again within the run. Some devices give a request up on the "
      + "way. A large buffer loses nothing but time, and time is what these timers measure.",
    values: { buffer: 1410000 }, beside: "buffer:14100", at: 55,
  },
  {
    title: "Why CoCoA collapses with fresh clients",
    text: "CoCoA learns the round trip from its answers, from doubtful ones too. Devices that remember it hold on to nearly half of the link. Beside it "
      + "they forget every few requests, as devices do that wake, speak and sleep: each batch begins anew with a timer far shorter than the queue. They "
      + "give up one request after another, and every answer comes too late for the one that it belongs to.",
    values: { controller: "cocoa-03", work: "continuous" }, beside: "work:fresh", at: 0,
  },
  {
    title: "What Full Backoff does",
    text: "A device that had to send copies does not begin its next request with the short timer: it carries the backed-off timeout "
      + "over, and each answer that came without copies halves it. So it is patient as long as the queue is long; the queue drains, and the cell comes back.",
    values: { controller: "rfc7252" }, beside: "controller:default-fb2", at: 55,
  },
  {
    title: "New firmware for half of them",
    text: "Not every device in the field can be updated. Here half of them have FASOR, which lets the queue drain before it believes a round "
      + "trip, and the old ones alone keep the cell down; beside it all have it. The share of new firmware is a control below: find out how much is enough.",
    values: { controller: "fasor-token", firmware: 50 }, beside: "firmware:100", at: 55,
  },
];

export class Tour {
  /** `go` is called with a stop's state. */
  constructor(home, go) {
    this.home = home;
    this.go = go;
    this.title = home.querySelector("h2");
    this.text = home.querySelector("p");
    this.place = home.querySelector(".place");
    this.back = home.querySelector("[data-step='-1']");
    this.next = home.querySelector("[data-step='1']");
    this.back.addEventListener("click", () => this.to(this.now - 1));
    this.next.addEventListener("click", () => this.to(this.now + 1));
    this.show(0);
  }

  to(stop) {
    this.show(stop);
    this.go(STOPS[this.now]);
  }

  show(stop) {
    this.now = Math.max(0, Math.min(STOPS.length - 1, stop));
    const { title, text } = STOPS[this.now];
    this.title.textContent = title;
    this.text.textContent = text;
    this.place.textContent = `${this.now + 1} of ${STOPS.length}`;
    this.back.disabled = this.now === 0;
    this.next.disabled = this.now === STOPS.length - 1;
    this.next.textContent = this.now === 0 ? "Begin the tour" : "Next";
  }
}
