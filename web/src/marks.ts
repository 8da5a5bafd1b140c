// What all charts over time show besides their curves: changes of level as vertical lines, and the time that a piece of
// evidence is about, once the reader has followed its link.

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

/** The text, without its end where there is no room for it; its number stays. */
function fitting(ctx: CanvasRenderingContext2D, label: string, room: number): string {
  if (ctx.measureText(label).width <= room) {
    return label;
  }
  const number = label.slice(0, label.indexOf(":"));
  return ctx.measureText(number).width <= room ? number : "";
}

/** Vertical lines at changes of level, with their numbers in the list of the page. */
export function changeMarks(changes: ChangeMark[]): uPlot.Plugin {
  const draw = (chart: uPlot) => {
    const { ctx, bbox } = chart;
    const right = bbox.left + bbox.width;
    const places = changes.map(({ at_s }) => Math.round(chart.valToPos(at_s, "x", true)));
    ctx.save();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textBaseline = "top";
    ctx.lineWidth = devicePixelRatio;
    changes.forEach(({ label }, index) => {
      const x = places[index] ?? 0;
      if (x < bbox.left || x > right) {
        return;
      }
      ctx.strokeStyle = color("--change");
      ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const gap = 4 * devicePixelRatio;
      const room = Math.min(places[index + 1] ?? right, right) - x - 2 * gap;
      const text = fitting(ctx, label, room);
      // Curves may run behind the label.
      ctx.fillStyle = color("--background");
      ctx.globalAlpha = 0.8;
      ctx.fillRect(x + gap / 2, bbox.top + gap / 2, ctx.measureText(text).width + gap, 14 * devicePixelRatio);
      ctx.globalAlpha = 1;
      ctx.fillStyle = color("--change");
      ctx.fillText(text, x + gap, bbox.top + gap);
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
