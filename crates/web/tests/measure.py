"""How fast the page is in this machine's Chromium: `python crates/web/tests/measure.py` prints a table in Markdown.

Medians of several openings, each with an empty cache, over the loopback interface.
"""

from __future__ import annotations

import shutil
import statistics
import threading

from playwright.sync_api import Browser, sync_playwright

from millpond.explore import server

OPENINGS = 7

#: Moves time at every frame, as a reader who drags does, and counts frames.
_DRAG = """async () => {
  const slider = document.getElementById("scrub");
  const gaps = [];
  let last = await new Promise(requestAnimationFrame);
  for (let frame = 0; frame < 180; frame++) {
    slider.value = slider.max * (0.5 + 0.5 * Math.sin(frame / 20));
    slider.dispatchEvent(new Event("input"));
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - last);
    last = now;
  }
  return gaps;
}"""


def _opened(browser: Browser, place: str) -> tuple[float, list[float], list[float]]:
    """Milliseconds to the first picture, of the runs, and between frames while time is dragged."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(place)
    page.wait_for_selector("body.ready:not(.busy)")
    picture = page.evaluate("performance.getEntriesByName('picture')[0].startTime")
    took = [float(word) for word in page.evaluate("document.body.dataset.took").split()]
    gaps = page.evaluate(_DRAG)
    context.close()
    return picture, took, gaps


def main() -> None:
    """Measure and print."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with server.serve(0) as site, sync_playwright() as driver:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        place = server.address(site.server_address[1])
        print(f"Chromium {browser.version}, 1280 x 800, drawn by the processor\n")
        print("| page | first picture | engine, a run | frames a second while time is dragged |\n|---|---|---|---|")
        for name, words in (("the collapse", ""), ("two runs side by side", "#beside=controller:fasor-token")):
            told = [_opened(browser, place + words) for _ in range(OPENINGS)]
            picture = statistics.median(one for one, _, _ in told) / 1000
            took = statistics.median(one for _, runs, _ in told for one in runs) / 1000
            frames = 1000 / statistics.mean(gap for _, _, gaps in told for gap in gaps)
            print(f"| {name} | {picture:.2f} s | {took:.3f} s | {frames:.0f} |")
        browser.close()
        site.shutdown()
        thread.join()


if __name__ == "__main__":
    main()
