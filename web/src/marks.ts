// Marks in all charts over time: level shifts as vertical lines, and the time range of a piece of evidence after the reader
// followed its link.

import uPlot from "uplot";
import type { ChangeMark } from "./data";
import { clock } from "./format";
import { color } from "./theme";

interface Stretch {
  from_s: number;
  to_s: number;
}

/** The time of the evidence that was followed last. */
let followed: Stretch | null = null;

/** Where a stretch of time lies in the chart, in pixels of the canvas; null outside of it. */
function across(chart: uPlot, { from_s, to_s }: Stretch): [number, number] | null {
  const { left, width } = chart.bbox;
  const from = Math.max(left, chart.valToPos(from_s, "x", true));
  const to = Math.min(left + width, chart.valToPos(to_s, "x", true));
  return to > from ? [from, to] : null;
}

/** Shades the time of the evidence behind the curves. */
export function evidenceBand(): uPlot.Plugin {
  const draw = (chart: uPlot) => {
    const place = followed && across(chart, followed);
    if (!place) {
      return;
    }
    const { ctx, bbox } = chart;
    const [from, to] = place;
    ctx.save();
    ctx.fillStyle = color("--evidence");
    ctx.fillRect(from, bbox.top, to - from, bbox.height);
    ctx.strokeStyle = color("--accent");
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(from, bbox.top);
    ctx.lineTo(to, bbox.top);
    ctx.stroke();
    ctx.restore();
  };
  return { hooks: { drawClear: [draw] } };
}

/** Height above the curves at which phases and changes have their names, as a distance in pixels of the page. */
const LABEL_RISE = 3;

/** The font of names above the curves. */
export function labelFont(): string {
  return `${11 * devicePixelRatio}px system-ui, sans-serif`;
}

/** The text, or its number alone where there is no room for more, or nothing. */
function fitting(ctx: CanvasRenderingContext2D, label: string, room: number): string {
  const number = label.slice(0, label.indexOf(":"));
  return [label, number].find((text) => ctx.measureText(text).width <= room) ?? "";
}

/**
 * Vertical lines at changes of level, with their numbers in the list of the page. `taken` says up to where, from a
 * place on, names of phases stand above the curves.
 */
export function changeMarks(changes: ChangeMark[], taken: (chart: uPlot, x: number) => number): uPlot.Plugin {
  const draw = (chart: uPlot) => {
    const { ctx, bbox } = chart;
    const right = bbox.left + bbox.width;
    const places = changes.map(({ at_s }) => Math.round(chart.valToPos(at_s, "x", true)));
    ctx.save();
    ctx.font = labelFont();
    ctx.textBaseline = "bottom";
    ctx.textAlign = "left";
    ctx.lineWidth = devicePixelRatio;
    ctx.strokeStyle = color("--change");
    ctx.fillStyle = color("--change");
    ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    changes.forEach(({ label }, index) => {
      const x = places[index] ?? 0;
      if (x < bbox.left || x > right) {
        return;
      }
      const top = bbox.top - LABEL_RISE * devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const gap = 4 * devicePixelRatio;
      const start = Math.max(x, taken(chart, x) + gap);
      const end = Math.min(places[index + 1] ?? chart.ctx.canvas.width, chart.ctx.canvas.width);
      ctx.fillText(fitting(ctx, label, end - start - gap), start, top);
    });
    ctx.restore();
  };
  return { hooks: { draw: [draw] } };
}

/** Says in words what is shaded, above the chart that the link leads to. */
function tell(link: HTMLAnchorElement, { from_s, to_s }: Stretch): void {
  document.querySelector(".followed")?.remove();
  const caption = document.querySelector(`${link.hash} figcaption`);
  const note = document.createElement("p");
  note.className = "followed";
  note.setAttribute("role", "status");
  note.textContent = `Shaded, ${clock(from_s, to_s)} to ${clock(to_s, to_s)} of the run: ${link.textContent}`;
  caption?.append(note);
}

/** Makes links of evidence shade its time in all charts over time; the browser goes to the chart by itself. */
export function followEvidence(refresh: () => void): void {
  for (const link of document.querySelectorAll<HTMLAnchorElement>(".evidence a[data-from-s]")) {
    link.addEventListener("click", () => {
      followed = { from_s: Number(link.dataset["fromS"]), to_s: Number(link.dataset["toS"]) };
      tell(link, followed);
      refresh();
    });
  }
}
