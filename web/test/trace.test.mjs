// Opens reports of traces in headless Chromium and checks what only a browser can tell of their pictures.
//
//   npm run test-trace -- FOLDER [FOLDER FOR SCREENSHOTS]
//
// FOLDER has trace.html, trace-pair.html and run-with-trace.html, as the tests of crates/report write them.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [folder, screenshots] = process.argv.slice(2);
if (!folder) {
  console.error("usage: npm run test-trace -- FOLDER [FOLDER FOR SCREENSHOTS]");
  process.exit(2);
}
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
 * Opens a page, runs the check, and fails on anything that the page complained about.
 * @param {string} name
 * @param {import("playwright-core").BrowserContextOptions} options
 * @param {(page: import("playwright-core").Page) => Promise<void>} check
 */
async function open(name, options, check) {
  const context = await browser.newContext(options);
  try {
    const page = await context.newPage();
    /** @type {string[]} */
    const complaints = [];
    page.on("console", (message) => complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(error.message));
    await page.goto(pathToFileURL(resolve(folder ?? "", `${name}.html`)).href);
    await page.waitForSelector("html[data-charts]", { state: "attached" });
    await check(page);
    if (screenshots) {
      const label = [name, options.colorScheme, options.viewport?.width].filter(Boolean).join("-");
      await page.screenshot({ path: join(screenshots, `${label}.png`), fullPage: true });
    }
    assert.deepEqual(complaints, []);
  } finally {
    await context.close();
  }
}

/**
 * Share of the pixels of each picture, inside its axes, that are not empty.
 * @param {import("playwright-core").Page} page
 * @returns {Promise<number[]>}
 */
function filled(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll("canvas[role=img]")].map((element) => {
      const canvas = /** @type {HTMLCanvasElement} */ (element);
      const [left, top, right, bottom] = [70, 8, 14, 40].map((size) => Math.round(size * devicePixelRatio));
      const width = canvas.width - (left ?? 0) - (right ?? 0);
      const height = canvas.height - (top ?? 0) - (bottom ?? 0);
      // A copy that is made to be read: Chromium warns about reading the picture itself twice.
      const copy = new OffscreenCanvas(canvas.width, canvas.height);
      const context = copy.getContext("2d", { willReadFrequently: true });
      context?.drawImage(canvas, 0, 0);
      const data = context?.getImageData(left ?? 0, top ?? 0, width, height).data ?? [];
      let count = 0;
      for (let at = 0; at < data.length; at += 4) {
        const [r, g, b, a] = [data[at] ?? 0, data[at + 1] ?? 0, data[at + 2] ?? 0, data[at + 3]];
        // The lines of the grid are grey.
        const isGrey = Math.max(r, g, b) - Math.min(r, g, b) < 24;
        count += a === 255 && !isGrey ? 1 : 0;
      }
      return count / (width * height);
    }),
  );
}

for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
  test(`every picture of a trace shows something in ${colorScheme} colours`, async () => {
    await open("trace", { colorScheme, viewport: { width: 1200, height: 900 } }, async (page) => {
      const shares = await filled(page);
      assert.equal(shares.length, 2);
      for (const share of shares) {
        assert.ok(share > 0.001 && share < 0.6, `${shares}`);
      }
    });
  });
}

for (const name of ["trace", "trace-pair", "run-with-trace"]) {
  test(`${name} fits on a phone`, async () => {
    await open(name, { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 }, async (page) => {
      const widths = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok((widths[0] ?? 0) <= (widths[1] ?? 0), `${widths}`);
      assert.ok((await filled(page)).every((share) => share > 0));
    });
  });
}

test("before and after stand side by side on a wide screen and below each other on a narrow one", async () => {
  for (const [width, isBeside] of /** @type {const} */ ([[1200, true], [390, false]])) {
    await open("trace-pair", { viewport: { width, height: 900 } }, async (page) => {
      const tops = await page.evaluate(() => {
        const pair = document.querySelector(".density-panels.pair");
        return [...(pair?.querySelectorAll("canvas") ?? [])].map((canvas) => canvas.getBoundingClientRect().top);
      });
      assert.equal(tops.length, 2);
      assert.equal(tops[0] === tops[1], isBeside, `${tops}`);
    });
  }
});

test("the pointer reads place, time and number of a picture", async () => {
  await open("trace", { viewport: { width: 1200, height: 900 } }, async (page) => {
    const canvas = page.locator("canvas[role=img]").nth(1);
    await canvas.scrollIntoViewIfNeeded();
    const box = await canvas.boundingBox();
    assert.ok(box);
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    const text = await page.locator(".density-key .under").nth(1).textContent();
    assert.match(text ?? "", /^[\d.]+ s, [\d.]+ MiB: (none|about \d+)$/);
  });
});

test("the colours follow the theme that the reader chooses", async () => {
  await open("trace", { colorScheme: "light", viewport: { width: 1200, height: 900 } }, async (page) => {
    const key = page.locator(".density-key i").first();
    const before = await key.evaluate((element) => getComputedStyle(element).backgroundImage);
    await page.click("#theme");
    await page.click("#theme");
    assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
    const after = await key.evaluate((element) => getComputedStyle(element).backgroundImage);
    assert.notEqual(before, after);
  });
});
