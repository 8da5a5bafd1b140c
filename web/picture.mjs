// Writes a picture of a report from its top to the end of an element.
//
//   node web/picture.mjs REPORT.html SELECTOR PICTURE.png

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const WIDTH = 1200;
const [report = "", selector = "", picture = ""] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"],
});
try {
  const page = await browser.newPage({ viewport: { width: WIDTH, height: 900 }, colorScheme: "light" });
  await page.goto(pathToFileURL(resolve(report)).href);
  await page.waitForSelector("html[data-charts]", { state: "attached" });
  const box = await page.locator(selector).first().boundingBox();
  if (!box) throw new Error(`${report} has no ${selector}`);
  await page.screenshot({ path: picture, fullPage: true, clip: { x: 0, y: 0, width: WIDTH, height: box.y + box.height + 16 } });
} finally {
  await browser.close();
}
