// Type-checks the sources and writes report.js and report.css, each a single file that can stand inside an HTML page, and
// headless.js, on which report.js draws without a browser:
//
//   node build.mjs FOLDER
//
// scripts/bundle.sh calls this. The result is committed as crates/report/bundle/.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const folder = process.argv[2];
if (folder === undefined || process.argv.length > 3) {
  console.error("usage: node build.mjs FOLDER");
  process.exit(2);
}
const here = dirname(fileURLToPath(import.meta.url));
const packages = join(here, "node_modules");

// TypeScript's own entry, so that the check does not depend on a shell or on links in .bin.
const { bin } = JSON.parse(readFileSync(join(packages, "typescript/package.json"), "utf8"));
const check = spawnSync(process.execPath, [join(packages, "typescript", bin.tsc), "--noEmit"], {
  cwd: here,
  stdio: "inherit",
});
if (check.status !== 0) {
  process.exit(1);
}

await build({
  absWorkingDir: here,
  entryPoints: { report: "src/main.ts", headless: "src/headless.ts" },
  outdir: resolve(folder),
  bundle: true,
  format: "iife",
  target: ["es2022"],
  minify: true,
  legalComments: "inline",
  logLevel: "warning",
});
