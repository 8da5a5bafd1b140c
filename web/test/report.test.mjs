// Opens a report in headless Chromium and checks what only a browser can tell.
//
//   npm test -- REPORT.html [FOLDER FOR SCREENSHOTS]
//
// The environment variables REPORT, SCREENSHOTS and CHROMIUM are used where arguments are missing.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const report = process.argv[2] ?? process.env["REPORT"];
const screenshots = process.argv[3] ?? process.env["SCREENSHOTS"];
if (!report) {
  console.error("usage: npm test -- REPORT.html [FOLDER FOR SCREENSHOTS]");
  process.exit(2);
}
const address = pathToFileURL(resolve(report)).href;
if (screenshots) {
  mkdirSync(screenshots, { recursive: true });
}

/** @type {import("playwright-core").Browser} */
let browser;

before(async () => {
  browser = await chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"],
  });
});

after(async () => {
  await browser?.close();
});

/**
 * Opens the report, runs the check, and fails on anything that the page complained about or
 * tried to load.
 * @param {import("playwright-core").BrowserContextOptions} options
 * @param {(page: import("playwright-core").Page) => Promise<void>} check
 */
async function open(options, check) {
  const context = await browser.newContext(options);
  try {
    const page = await context.newPage();
    /** @type {string[]} */
    const complaints = [];
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") {
        complaints.push(`console: ${message.text()}`);
      }
    });
    page.on("pageerror", (error) => complaints.push(`exception: ${error.message}`));
    page.on("request", (request) => {
      if (request.url() !== address) {
        complaints.push(`request: ${request.url()}`);
      }
    });
    await page.goto(address);
    await page.waitForSelector("html[data-charts]", { state: "attached" });
    await check(page);
    assert.deepEqual(complaints, []);
  } finally {
    await context.close();
  }
}

/**
 * @param {import("playwright-core").Page} page
 * @param {string} name
 */
async function screenshot(page, name) {
  if (screenshots) {
    await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
  }
}

/**
 * Per chart: its id, how many pixels are painted, and how many colours they have.
 * @param {import("playwright-core").Page} page
 */
function canvases(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll(".plot")].map((plot) => {
      const canvas = plot.querySelector("canvas");
      const colours = new Set();
      let painted = 0;
      if (canvas && canvas.width > 0 && canvas.height > 0) {
        // A copy that is made to be read: Chromium warns about reading the chart itself twice.
        const copy = new OffscreenCanvas(canvas.width, canvas.height);
        const context = copy.getContext("2d", { willReadFrequently: true });
        context?.drawImage(canvas, 0, 0);
        const pixels = context?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
        for (let i = 0; i < pixels.length; i += 4) {
          if ((pixels[i + 3] ?? 0) > 200) {
            painted += 1;
            colours.add(`${pixels[i]},${pixels[i + 1]},${pixels[i + 2]}`);
          }
        }
      }
      const isLow = plot.classList.contains("low");
      return { id: plot.id, isLow, painted, colours: colours.size, width: canvas?.clientWidth ?? 0 };
    }),
  );
}

/** @param {import("playwright-core").Page} page */
async function assertChartsAreDrawn(page) {
  const drawn = await canvases(page);
  const expected = await page.evaluate(() => Number(document.documentElement.dataset["charts"]));
  assert.equal(drawn.length, expected);
  for (const { id, isLow, painted, colours } of drawn) {
    assert.ok(painted > 500, `${id}: ${painted} pixels are painted`);
    // A chart of a resource that does nothing has one flat line.
    assert.ok(colours > (isLow ? 5 : 10), `${id}: there are ${colours} colours`);
  }
}

/** @param {import("playwright-core").Page} page */
function bodyColours(page) {
  return page.evaluate(() => {
    const style = getComputedStyle(document.body);
    const brightness = (/** @type {string} */ colour) =>
      (colour.match(/[\d.]+/g) ?? []).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3;
    return { background: brightness(style.backgroundColor), text: brightness(style.color) };
  });
}

/** @type {("light" | "dark")[]} */
const schemes = ["light", "dark"];
for (const colorScheme of schemes) {
  test(`every chart is drawn in a ${colorScheme} system`, async () => {
    await open({ colorScheme, viewport: { width: 1280, height: 900 } }, async (page) => {
      await assertChartsAreDrawn(page);
      const { background, text } = await bodyColours(page);
      assert.equal(background > text, colorScheme === "light");
      assert.ok(Math.abs(background - text) > 150, `${background} and ${text}`);
      await screenshot(page, colorScheme);
    });
  });
}

test("the button changes the theme whatever the system says", async () => {
  await open({ colorScheme: "dark" }, async (page) => {
    assert.ok((await bodyColours(page)).background < 100);
    await page.click("#theme");
    assert.ok((await bodyColours(page)).background > 200);
    await assertChartsAreDrawn(page);
    await page.click("#theme");
    assert.ok((await bodyColours(page)).background < 100);
  });
});

test("nothing is wider than a phone", async () => {
  const phone = { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2, isMobile: true };
  await open(phone, async (page) => {
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.equal(width, 360);
    await assertChartsAreDrawn(page);
    await screenshot(page, "phone");
  });
});

test("charts follow the width of the window", async () => {
  await open({ viewport: { width: 1280, height: 900 } }, async (page) => {
    const before = await canvases(page);
    if (before.length === 0) return;
    await page.setViewportSize({ width: 600, height: 900 });
    await page.waitForFunction(
      (width) => (document.querySelector(".plot canvas")?.clientWidth ?? 0) < width,
      before[0]?.width ?? 0,
    );
    await assertChartsAreDrawn(page);
  });
});

test("paper is white, has no controls, and holds everything", async () => {
  await open({ colorScheme: "dark", viewport: { width: 1280, height: 900 } }, async (page) => {
    await page.emulateMedia({ media: "print" });
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    assert.equal((await bodyColours(page)).background, 255);
    await assertChartsAreDrawn(page);
    for (const { id, width } of await canvases(page)) {
      assert.ok(width <= 700, `${id} is ${width} pixels wide`);
    }
    assert.equal(await page.locator("#theme").isVisible(), false);
    assert.equal(await page.locator(".controls:visible").count(), 0);
    assert.equal(await page.locator("details:not([open])").count(), 0);
    if (screenshots) {
      await page.pdf({ path: join(screenshots, "print.pdf"), format: "A4" });
    }
    await page.setViewportSize({ width: 700, height: 900 });
    await screenshot(page, "print");
  });
});

test("the cursor is shown in all charts over time, with the values under it", async () => {
  await open({ viewport: { width: 1280, height: 900 } }, async (page) => {
    if ((await page.locator("#plot-rate").count()) === 0) return;
    const values = () =>
      page.evaluate(() =>
        ["plot-rate", "plot-latency"].map((id) =>
          [...document.querySelectorAll(`#${id} .u-value`)].map((value) => value.textContent),
        ),
      );
    for (const empty of (await values()).flat()) {
      assert.equal(empty, "");
    }
    const area = page.locator("#plot-rate .u-over");
    await area.scrollIntoViewIfNeeded();
    const box = await area.boundingBox();
    assert.ok(box);
    await page.mouse.move(box.x + box.width * 0.7, box.y + box.height / 2);
    const [rate, latency] = await values();
    assert.match(rate?.[0] ?? "", /–/);
    assert.match(rate?.join(" ") ?? "", /\/s/);
    assert.equal(latency?.[0], rate?.[0]);
    assert.match(latency?.join(" ") ?? "", /(µs|ms| s)/);
    await screenshot(page, "cursor");
  });
});

test("another operation or time can be chosen", async () => {
  await open({ viewport: { width: 1280, height: 900 } }, async (page) => {
    const subject = page.locator("#subject-latency");
    if ((await subject.count()) === 0) return;
    const shown = await subject.textContent();
    await page.locator("#controls-latency").getByLabel("service time").check();
    await page.waitForFunction(
      (text) => document.getElementById("subject-latency")?.textContent !== text,
      shown,
    );
    assert.match((await subject.textContent()) ?? "", /^Service time of /);
    await page.locator("#controls-latency").getByLabel("linear").check();
    await assertChartsAreDrawn(page);
  });
});

/**
 * Whether the page is that of an experiment with charts over an axis.
 * @param {import("playwright-core").Page} page
 */
async function hasExperimentCharts(page) {
  return (await page.locator("[id^='controls-plot-']").count()) > 0;
}

test("under the cursor stand the values with their intervals, of the point and of the curves", async () => {
  await open({ viewport: { width: 1280, height: 900 } }, async (page) => {
    if (!(await hasExperimentCharts(page))) return;
    const area = page.locator(".plot .u-over").first();
    await area.scrollIntoViewIfNeeded();
    const box = await area.boundingBox();
    assert.ok(box);
    const hasIntervals = await page.evaluate(() => {
      const { plots } = JSON.parse(document.getElementById("data")?.textContent ?? "");
      return plots[0].series.some((/** @type {{ low: (number | null)[] }} */ series) => series.low.some((low) => low !== null));
    });
    const wanted = hasIntervals ? /\d(\/s| µs| ms| s) \(\d.* – \d.*\)/ : /\d(\/s| µs| ms| s)/;
    let seen = "";
    for (let share = 0.02; share < 1 && !wanted.test(seen); share += 0.005) {
      await page.mouse.move(box.x + box.width * share, box.y + box.height / 2);
      seen = (await page.locator(".plot").first().locator(".u-value").allTextContents()).join(" | ");
    }
    assert.match(seen, wanted);
    await screenshot(page, "cursor");
  });
});

test("axes can be made logarithmic and back, and say what they are", async () => {
  await open({ viewport: { width: 1280, height: 900 } }, async (page) => {
    if (!(await hasExperimentCharts(page))) return;
    const plot = page.locator(".plot").first();
    const id = await plot.getAttribute("id");
    const picture = () => plot.locator("canvas").evaluate((canvas) => /** @type {HTMLCanvasElement} */ (canvas).toDataURL());
    const pictures = new Set([await picture()]);
    for (const group of ["Across", "Up"]) {
      const controls = page.locator(`#controls-${id}`).getByRole("group", { name: group });
      const other = controls.locator("input:not(:checked)");
      await other.check();
      pictures.add(await picture());
    }
    assert.equal(pictures.size, 3);
    await assertChartsAreDrawn(page);
  });
});

for (const width of [360, 1280]) {
  test(`rows and their labels do not cover each other at ${width} pixels`, async () => {
    await open({ viewport: { width, height: 900 } }, async (page) => {
      const covered = await page.evaluate(() => {
        /** @param {Element} element */
        const box = (element) => element.getBoundingClientRect();
        /** @param {DOMRect} a @param {DOMRect} b */
        const overlap = (a, b) =>
          Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
        const found = [];
        for (const chart of document.querySelectorAll(".rows-chart")) {
          const texts = [...chart.querySelectorAll(".row-label, .row-value, .tick")].filter((text) => text.textContent);
          texts.forEach((text, index) => {
            for (const other of texts.slice(index + 1)) {
              if (overlap(box(text), box(other))) found.push(`${text.textContent} / ${other.textContent}`);
            }
            if (box(text).right > innerWidth || box(text).left < 0) found.push(`${text.textContent} is outside`);
          });
          for (const part of chart.querySelectorAll(".bar, .interval, .band")) {
            const track = box(/** @type {Element} */ (part.parentElement));
            if (box(part).right > track.right + 1 || box(part).left < track.left - 1) found.push("a part leaves its track");
          }
        }
        return found;
      });
      assert.deepEqual(covered, []);
    });
  });
}

test("folded charts have the whole width once they are opened", async () => {
  await open({ viewport: { width: 1280, height: 900 } }, async (page) => {
    const charts = page.locator(".pictures .plot canvas");
    if ((await charts.count()) === 0) return;
    assert.equal(await charts.first().isVisible(), false);
    await unfold(page);
    await page.waitForFunction(() => (document.querySelector(".pictures .plot canvas")?.clientWidth ?? 0) > 300);
    await assertChartsAreDrawn(page);
  });
});

test("the contents and the terms lead to parts of the page", async () => {
  await open({ viewport: { width: 1280, height: 900 } }, async (page) => {
    const lost = await page.evaluate(() => {
      const links = /** @type {HTMLAnchorElement[]} */ ([...document.querySelectorAll(".contents a, a.term")]);
      return links.filter((link) => !document.querySelector(link.hash)).map((link) => link.hash);
    });
    assert.deepEqual(lost, []);
    const headings = await page.locator("main h2").allTextContents();
    const listed = await page.locator("nav.contents a").allTextContents();
    assert.deepEqual(headings.filter((heading) => !listed.includes(heading)), []);
    assert.equal(await page.locator("a.term a, code a.term").count(), 0);
    if ((await page.locator("#plot-rate").count()) > 0) {
      assert.ok((await page.locator("a.term").count()) > 5);
    }
  });
});

test("a legend begins with a curve, and each curve has a colour and look of its own", async () => {
  await open({ viewport: { width: 1280, height: 900 } }, async (page) => {
    const wrong = await page.evaluate(() => {
      const found = [];
      for (const legend of document.querySelectorAll(".u-legend")) {
        const shown = [...legend.querySelectorAll(".u-series")].filter((row) => getComputedStyle(row).visibility !== "hidden");
        const looks = shown.map((row) => {
          const marker = /** @type {HTMLElement | null} */ (row.querySelector(".u-marker"));
          return marker && `${marker.style.color} ${marker.dataset["dash"]} ${marker.dataset["shape"]}`;
        });
        if (looks.some((look) => !look)) found.push(`an entry without a marker: ${legend.textContent}`);
        if (new Set(looks).size < looks.length) found.push(`${looks.join("; ")} in ${legend.textContent}`);
      }
      return found;
    });
    assert.deepEqual(wrong, []);
  });
});

test("findings stand before the caveats, each with its evidence", async () => {
  await open({ viewport: { width: 1280, height: 900 } }, async (page) => {
    const findings = page.locator(".findings > ol > li");
    if ((await findings.count()) === 0) return;
    for (const finding of await findings.all()) {
      assert.ok((await finding.locator(".evidence li").count()) > 0, (await finding.textContent()) ?? "");
    }
    const caveats = page.locator("section.caveats");
    if ((await caveats.count()) === 0) return;
    const [first, last] = [await caveats.boundingBox(), await findings.last().boundingBox()];
    assert.ok(first && last && last.y + last.height <= first.y);
  });
});

test("tables have a cell under every heading, a name, and can be reached with the keyboard", async () => {
  await open({ viewport: { width: 1280, height: 900 } }, async (page) => {
    const wrong = await page.evaluate(() => {
      const found = [];
      for (const table of document.querySelectorAll("table.cells")) {
        const titles = table.querySelectorAll("thead th").length;
        for (const row of table.querySelectorAll("tbody tr")) {
          if (row.children.length !== titles) found.push(`${row.textContent}: ${row.children.length} of ${titles}`);
        }
        const region = table.closest("[role=region]");
        if (!region?.getAttribute("aria-label")) found.push("a table without a name");
        if (region?.getAttribute("tabindex") !== "0") found.push("a table that the keyboard does not reach");
      }
      return found;
    });
    assert.deepEqual(wrong, []);
  });
});

/**
 * Whether the page has charts of what was watched.
 * @param {import("playwright-core").Page} page
 */
async function hasPanels(page) {
  return (await page.locator(".plot.low").count()) > 0;
}

/**
 * Opens the charts that are shown on demand only.
 * @param {import("playwright-core").Page} page
 */
async function unfold(page) {
  for (const summary of await page.locator(".pictures:not([open]) > summary").all()) await summary.click();
}

/**
 * Puts the cursor at a share of the width of a chart and gives the time that its legend tells.
 * @param {import("playwright-core").Page} page
 * @param {string} id
 * @param {number} share
 */
async function timeAt(page, id, share) {
  const area = page.locator(`#${id} .u-over`);
  await area.scrollIntoViewIfNeeded();
  const box = await area.boundingBox();
  assert.ok(box);
  await page.mouse.move(box.x + box.width * share, box.y + box.height / 2);
  return page.locator(`#${id} .u-value`).first().textContent();
}

test("a zoom into one chart over time holds for all of them, and so does the cursor", async () => {
  await open({ viewport: { width: 1280, height: 900 } }, async (page) => {
    if (!(await hasPanels(page))) return;
    await unfold(page);
    const ids = await page.evaluate(() => ["plot-rate", ...[...document.querySelectorAll(".plot.low")].map((plot) => plot.id)]);
    const whole = await timeAt(page, "plot-rate", 0.5);
    const last = ids.at(-1) ?? "";
    const area = page.locator(`#${last} .u-over`);
    await area.scrollIntoViewIfNeeded();
    const box = await area.boundingBox();
    assert.ok(box);
    const y = box.y + box.height / 2;
    await page.mouse.move(box.x + box.width * 0.7, y);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.8, y, { steps: 4 });
    await page.mouse.move(box.x + box.width * 0.9, y, { steps: 4 });
    await page.mouse.up();
    const zoomed = await timeAt(page, "plot-rate", 0.5);
    assert.notEqual(zoomed, whole);
    const shown = await page.evaluate(
      (all) => all.map((id) => document.querySelector(`#${id} .u-value`)?.textContent),
      ids,
    );
    assert.deepEqual(shown, ids.map(() => zoomed));
    await screenshot(page, "zoom");
    await page.locator("#plot-rate .u-over").dblclick();
    assert.equal(await timeAt(page, "plot-rate", 0.5), whole);
  });
});

test("evidence leads to a chart, and its time is shaded and told there", async () => {
  await open({ viewport: { width: 1280, height: 900 } }, async (page) => {
    const links = page.locator(".verdict .evidence a");
    if ((await links.count()) === 0) return;
    for (const link of await links.all()) {
      const target = await link.getAttribute("href");
      assert.equal(await page.locator(`figure${target} .plot canvas`).count(), 1, target ?? "");
    }
    const link = links.last();
    const figure = page.locator(`figure${await link.getAttribute("href")}`);
    const picture = () => figure.locator("canvas").evaluate((canvas) => /** @type {HTMLCanvasElement} */ (canvas).toDataURL());
    const before = await picture();
    await link.click();
    await page.waitForFunction((wanted) => location.hash === wanted, await link.getAttribute("href"));
    assert.notEqual(await picture(), before);
    assert.match((await figure.locator(".followed").textContent()) ?? "", /^Shaded, .* of the run: /);
    const box = await figure.boundingBox();
    assert.ok(box && box.y >= 0 && box.y < 900, `the chart is at ${box?.y}`);
    await screenshot(page, "evidence");
  });
});

test("changes of level are marked in all charts over time", async () => {
  await open({ viewport: { width: 1280, height: 900 } }, async (page) => {
    const listed = await page.locator(".changes ol > li").count();
    const marked = await page.evaluate(() => JSON.parse(document.getElementById("data")?.textContent ?? "").time?.changes?.length ?? 0);
    assert.equal(marked, listed);
    if (marked === 0) return;
    const purple = await page.evaluate(() => {
      const probe = document.body.appendChild(document.createElement("span"));
      probe.style.color = "var(--change)";
      const wanted = (getComputedStyle(probe).color.match(/\d+/g) ?? []).map(Number);
      probe.remove();
      return [...document.querySelectorAll("#plot-rate canvas, #plot-latency canvas, .plot.low canvas")].map((element) => {
        const canvas = /** @type {HTMLCanvasElement} */ (element);
        const copy = new OffscreenCanvas(canvas.width, canvas.height);
        const context = copy.getContext("2d", { willReadFrequently: true });
        context?.drawImage(canvas, 0, 0);
        const pixels = context?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
        let found = 0;
        for (let i = 0; i < pixels.length; i += 4) {
          if (wanted.every((part, place) => Math.abs((pixels[i + place] ?? 0) - part) < 8)) found += 1;
        }
        return found;
      });
    });
    assert.ok(purple.length > 1 && purple.every((pixels) => pixels > 40), purple.join(", "));
  });
});
