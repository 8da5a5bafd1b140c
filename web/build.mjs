// Type-checks the sources and writes dist/report.js and dist/report.css, each a single file that
// can stand inside an HTML page. The build script of the crate dyno-report calls this.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

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
  entryPoints: { report: "src/main.ts" },
  outdir: "dist",
  bundle: true,
  format: "iife",
  target: ["es2022"],
  minify: true,
  legalComments: "inline",
  logLevel: "warning",
});
