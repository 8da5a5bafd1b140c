// Shared parts of all charts: fonts, axes, legends with the values under the cursor, logarithmic scales, and adaptation to
// the width of the page.

import uPlot from "uplot";
import { type Shape, SHAPES } from "./shapes";
import { color } from "./theme";

export interface Curve {
  label: string;
  color: string;
  width?: number;
  dash?: number[];
  /** Fills the area under the curve with this colour. */
  fill?: string;
}

/** Smallest height of a chart, and its height as a share of its width. */
const MIN_HEIGHT = 230;
const ASPECT = 0.36;

/** Height of a chart that is one of many below each other. */
const LOW_HEIGHT = 170;

/** Width on paper: what is left of A4 and of Letter between their margins. */
const PRINT_WIDTH = 660;

/** Width of a drawing in an element, in CSS pixels. */
export function widthIn(element: Element | null): number {
  return matchMedia("print").matches ? PRINT_WIDTH : Math.max(200, element?.clientWidth ?? 0);
}

export const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

export function axisStyle(): uPlot.Axis {
  return {
    font: FONT,
    labelFont: FONT,
    stroke: color("--text-soft"),
    grid: { stroke: color("--grid"), width: 1 },
    ticks: { show: false },
    border: { show: false },
    gap: 6,
  };
}

/** Steps of a time axis in seconds: those that clocks have. */
export const TIME_STEPS = [
  0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600,
  43_200, 86_400, 172_800, 604_800,
];

/** A horizontal axis takes one line. */
export const X_AXIS_HEIGHT = 28;

/** Above this many points a line is thin, or neighbouring peaks run into one area. */
const DENSE_POINTS = 600;

/** A series in uPlot's form; `write` formats the value under the cursor. */
export function curveSeries(curve: Curve, points: number, write: (value: number) => string): uPlot.Series {
  return {
    label: curve.label,
    stroke: curve.color,
    width: points > DENSE_POINTS ? 0.8 : (curve.width ?? 1.75),
    ...(curve.dash ? { dash: curve.dash } : {}),
    ...(curve.fill ? { fill: curve.fill } : {}),
    // Points only where a line would be invisible: around isolated values.
    points: { size: 5, fill: curve.color, stroke: curve.color },
    value: (chart, _value, index, place) => valueBefore(chart, index, place, write),
  };
}

/**
 * The value in the legend. Without a cursor `place` is null and the legend shows names alone.
 * Curves of different lengths share an axis; where one has no point, its last one before counts.
 */
export function valueBefore(
  chart: uPlot,
  index: number,
  place: number | null,
  write: (value: number) => string,
): string {
  if (place === null) {
    return "";
  }
  const values = chart.data[index];
  for (let i = place; values && i >= 0; i--) {
    const value = values[i];
    if (value === null) return "–";
    if (value !== undefined) return write(value);
  }
  return "–";
}

/** Splits at round numbers, about as many as wanted. */
export function evenSplits([from, to]: [number, number], wanted: number): number[] {
  const rough = (to - from) / Math.max(1, wanted);
  const decade = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((factor) => factor * decade).find((candidate) => candidate >= rough) ?? rough;
  const found: number[] = [];
  for (let value = Math.ceil(from / step - 1e-9) * step; value <= to + step * 1e-9; value += step) {
    found.push(value);
  }
  return found;
}

/** Splits of a logarithmic axis: decades, with 2 and 5 between them where there is room. */
export function logSplits(min: number, max: number): number[] {
  const steps = Math.log10(max / min) > 3.2 ? [1] : [1, 2, 5];
  const splits: number[] = [];
  for (let decade = Math.floor(Math.log10(min)); decade <= Math.ceil(Math.log10(max)); decade++) {
    for (const step of steps) {
      const value = step * 10 ** decade;
      if (value >= min && value <= max) {
        splits.push(value);
      }
    }
  }
  // Two labels are too few to read a value between them.
  return splits.length > 2 ? splits : evenSplits([min, max], 6);
}

/** A scale that begins at 0 and ends a little above the largest value. */
export function zeroScale(): uPlot.Scale {
  return { range: (_chart, _min, max) => [0, max > 0 ? max * 1.08 : 1] };
}

/** Splits of an axis of sizes: powers of 2 and half of them, so that they are round in KiB, MiB and so on. */
export function byteSplits(max: number): number[] {
  const step = 2 ** Math.ceil(Math.log2(Math.max(max, 1) / 4));
  const splits: number[] = [];
  for (let value = 0; value <= max; value += step) {
    splits.push(value);
  }
  return splits;
}

/** A logarithmic scale that fits the values instead of whole decades. */
export function logScale(): uPlot.Scale {
  return {
    distr: 3,
    log: 10,
    range: (_chart, min, max) => {
      const low = min > 0 ? min : 1;
      const high = max > low ? max : low * 10;
      return [low / 1.25, high * 1.25];
    },
  };
}

/** An axis for a logarithmic scale. */
export function logAxis(write: (value: number) => string, size: number): uPlot.Axis {
  return {
    ...axisStyle(),
    size,
    splits: (_chart, _axis, min, max) => logSplits(min, max),
    filter: (_chart, splits) => splits,
    values: (_chart, splits) => splits.map(write),
  };
}

function sizeFor(element: HTMLElement): { width: number; height: number } {
  const width = widthIn(element);
  const height = element.classList.contains("low") ? LOW_HEIGHT : Math.max(MIN_HEIGHT, Math.min(360, width * ASPECT));
  return { width, height: Math.round(height) };
}

/** The legend shows curves with their dashes and points with their shapes. */
function markLegend(element: HTMLElement, chart: uPlot, shapes: (Shape | null)[]): void {
  element.querySelectorAll(".u-series").forEach((row, index) => {
    const marker = row.querySelector<HTMLElement>(".u-marker");
    const { stroke, dash } = chart.series[index] ?? {};
    if (!marker || index === 0) {
      return;
    }
    marker.style.background = "currentColor";
    marker.style.color = String(typeof stroke === "function" ? stroke(chart, index) : stroke);
    const shape = shapes[index];
    if (shape) {
      const corners = SHAPES[shape].map(([x, y]) => `${50 + 42 * x}% ${50 + 42 * y}%`);
      marker.dataset["shape"] = shape;
      marker.style.clipPath = corners.length > 0 ? `polygon(${corners.join(", ")})` : "circle(42%)";
    } else if (dash && dash.length > 0) {
      let end = 0;
      const stops = dash.map((length, place) => {
        const paint = place % 2 === 0 ? "currentColor" : "transparent";
        return `${paint} ${end}px ${(end += length)}px`;
      });
      marker.dataset["dash"] = dash.join(" ");
      marker.style.background = `repeating-linear-gradient(90deg, ${stops.join(", ")})`;
    }
  });
}

/** A chart in `element` that can be made anew with other data or colours. */
export class Plot {
  private chart: uPlot | null = null;

  constructor(
    private readonly element: HTMLElement,
    private readonly make: () => {
      options: Omit<uPlot.Options, "width" | "height">;
      data: uPlot.AlignedData;
      shapes?: (Shape | null)[];
    },
  ) {
    new ResizeObserver(() => {
      const size = sizeFor(this.element);
      // The legend wraps with the width, and its height must not start another round.
      if (this.chart && this.chart.width !== size.width) {
        this.chart.setSize(size);
      }
    }).observe(element);
    this.draw();
  }

  /** Draws what lies over the data again, without forgetting the zoom. */
  refresh(): void {
    this.chart?.redraw(false);
  }

  draw(): void {
    this.chart?.destroy();
    const { options, data, shapes } = this.make();
    this.chart = new uPlot({ ...sizeFor(this.element), ...options }, data, this.element);
    markLegend(this.element, this.chart, shapes ?? []);
  }
}

/** The element of a chart; null if the page has none, because there is nothing to show. */
export function place(id: string): HTMLElement | null {
  return document.getElementById(id);
}
