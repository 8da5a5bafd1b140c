// Density charts: counts at each place of two axes, as described in crates/report/src/page/density.rs. Panels of one chart
// are side by side, or below each other on a narrow page, with the same axes and colours.

import { bytes, clock, count, latency, latencyTick } from "./format";
import { byteSplits, FONT, place, TIME_STEPS, widthIn } from "./plot";
import { color, mix, type Rgb, rgb } from "./theme";

type Measure = "count" | "rate" | "time" | "seconds" | "bytes";

interface DensityAxis {
  label: string;
  measure: Measure;
  start: number;
  end: number;
}

/** Ends of columns or rows of one width. */
interface Edges {
  start: number;
  step: number;
  count: number;
}

interface DensityPanel {
  label: string;
  words: string;
  x_edges: Edges;
  y_edges: Edges;
  cells: string;
}

export interface DensityData {
  id: string;
  title: string;
  counted: string;
  x: DensityAxis;
  y: DensityAxis;
  most: number;
  panels: DensityPanel[];
}

/** Room for the labels, in CSS pixels. */
const LEFT = 80;
const BOTTOM = 40;
const TOP = 8;
const RIGHT = 14;

/** Height as a share of the width, and its bounds in CSS pixels. */
const ASPECT = 0.42;
const HEIGHTS = [240, 420] as const;

/** A cell is drawn at least this large, so that a single call can be seen; CSS pixels. Few cells have room to be larger. */
const SMALLEST_DOT = 1.5;
const SPARSE_DOT = 2.5;
const SPARSE_CELLS = 4_000;

/** The largest level; 0 is an empty cell. */
const LEVELS = 254;

/** Levels of the cells, row by row from the bottom. */
function decode(cells: string, size: number): Uint8Array {
  const packed = atob(cells);
  const levels = new Uint8Array(size);
  let at = 0;
  for (let i = 0; i < packed.length; i++) {
    const level = packed.charCodeAt(i);
    if (level === 0) {
      i += 1;
      at += packed.charCodeAt(i);
    } else {
      levels[at] = level;
      at += 1;
    }
  }
  return levels;
}

function edgeAt(edges: Edges, index: number): number {
  return edges.start + edges.step * index;
}

/** The cell of a value; -1 outside. */
function cellOf(edges: Edges, value: number): number {
  const index = Math.floor((value - edges.start) / edges.step);
  return index >= 0 && index < edges.count ? index : -1;
}

/** About how often something happened in a cell of a level. */
function countOf(level: number, most: number): number {
  return Math.max(1, Math.round(Math.expm1(((level - 1) / LEVELS) * Math.log1p(most))));
}

/** The colour of each level. */
function palette(): Rgb[] {
  const [low, middle, high] = [rgb("--density-low"), rgb("--density-middle"), rgb("--density-high")];
  return Array.from({ length: LEVELS + 2 }, (_, level) => {
    const share = Math.max(0, level - 1) / LEVELS;
    return share < 0.5 ? mix(low, middle, share * 2) : mix(middle, high, share * 2 - 1);
  });
}

/** From values to places between 0 and `length`. */
function scale(axis: DensityAxis, length: number): (value: number) => number {
  const span = axis.end - axis.start || 1;
  return (value) => ((value - axis.start) / span) * length;
}

/** The value at a place. */
function valueAt(axis: DensityAxis, share: number): number {
  return axis.start + (axis.end - axis.start) * share;
}

function splits(axis: DensityAxis, length: number): number[] {
  if (axis.measure === "bytes") {
    return byteSplits(axis.end).filter((value) => value >= axis.start && value <= axis.end);
  }
  const span = axis.end - axis.start;
  const least = (span * 70) / length;
  const small = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05];
  const step = [...small, ...TIME_STEPS].find((candidate) => candidate >= least) ?? span;
  const found: number[] = [];
  for (let value = Math.ceil(axis.start / step - 1e-9) * step; value <= axis.end + step * 1e-9; value += step) {
    found.push(Math.abs(value) < step * 1e-6 ? 0 : value);
  }
  return found;
}

function tick(axis: DensityAxis, value: number): string {
  switch (axis.measure) {
    case "bytes":
      return bytes(value);
    case "time":
      return latencyTick(value);
    case "seconds":
      return clock(value, axis.end);
    default:
      return count(value);
  }
}

/** A value under the pointer. */
function written(axis: DensityAxis, value: number): string {
  switch (axis.measure) {
    case "time":
      return latency(value);
    case "seconds":
      return `${value.toFixed(axis.end < 10 ? 3 : 1)} s`;
    default:
      return tick(axis, value);
  }
}

/** One picture. */
class Panel {
  private readonly columns: number;
  private readonly rows: number;
  private readonly levels: Uint8Array;
  private readonly dot: number;

  constructor(
    private readonly chart: DensityData,
    private readonly panel: DensityPanel,
    readonly canvas: HTMLCanvasElement,
  ) {
    this.columns = panel.x_edges.count;
    this.rows = panel.y_edges.count;
    this.levels = decode(panel.cells, this.columns * this.rows);
    const filled = this.levels.reduce((sum, level) => sum + (level > 0 ? 1 : 0), 0);
    this.dot = filled < SPARSE_CELLS ? SPARSE_DOT : SMALLEST_DOT;
  }

  draw(colors: Rgb[]): void {
    const width = widthIn(this.canvas.parentElement);
    const height = Math.round(Math.min(Math.max(width * ASPECT, HEIGHTS[0]), HEIGHTS[1]));
    const pixel = devicePixelRatio;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * pixel);
    this.canvas.height = Math.round(height * pixel);
    const ctx = this.canvas.getContext("2d");
    if (!ctx) {
      return;
    }
    const [plotWidth, plotHeight] = [width - LEFT - RIGHT, height - TOP - BOTTOM];
    ctx.scale(pixel, pixel);
    this.drawAxes(ctx, plotWidth, plotHeight);
    const size: [number, number] = [Math.round(plotWidth * pixel), Math.round(plotHeight * pixel)];
    const image = this.paint(ctx, size, colors, this.dot * pixel);
    // putImageData would erase the grid behind empty cells.
    const layer = document.createElement("canvas");
    [layer.width, layer.height] = size;
    layer.getContext("2d")?.putImageData(image, 0, 0);
    ctx.drawImage(layer, LEFT, TOP, plotWidth, plotHeight);
  }

  private drawAxes(ctx: CanvasRenderingContext2D, width: number, height: number): void {
    const { x, y } = this.chart;
    const [toX, toY] = [scale(x, width), scale(y, height)];
    ctx.font = FONT;
    ctx.strokeStyle = color("--grid");
    ctx.fillStyle = color("--text-soft");
    ctx.lineWidth = 1;
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    for (const value of splits(y, height)) {
      const at = TOP + height - toY(value);
      line(ctx, LEFT, at, LEFT + width, at);
      ctx.fillText(tick(y, value), LEFT - 7, at);
    }
    ctx.textBaseline = "top";
    let last = Number.NEGATIVE_INFINITY;
    for (const value of splits(x, width)) {
      const at = LEFT + toX(value);
      line(ctx, at, TOP, at, TOP + height);
      const text = tick(x, value);
      const half = ctx.measureText(text).width / 2;
      if (at - half > last + 10) {
        ctx.textAlign = at + half > LEFT + width + RIGHT ? "right" : "center";
        ctx.fillText(text, ctx.textAlign === "right" ? LEFT + width + RIGHT : at, TOP + height + 6);
        last = at + half;
      }
    }
    ctx.textAlign = "center";
    ctx.textBaseline = "bottom";
    ctx.fillText(x.label, LEFT + width / 2, TOP + height + BOTTOM - 1);
    ctx.save();
    ctx.translate(8, TOP + height / 2);
    ctx.rotate(-Math.PI / 2);
    ctx.textBaseline = "middle";
    ctx.fillText(y.label, 0, 0);
    ctx.restore();
  }

  /** The cells; where several share a pixel, the strongest is seen. */
  private paint(ctx: CanvasRenderingContext2D, [width, height]: [number, number], colors: Rgb[], dot: number): ImageData {
    const { x, y } = this.chart;
    const [toX, toY] = [scale(x, width), scale(y, height)];
    const strongest = new Uint8Array(width * height);
    const span = (from: number, to: number, limit: number): [number, number] => {
      const grown = Math.max(0, dot - (to - from)) / 2;
      const first = Math.max(0, Math.min(limit - 1, Math.round(from - grown)));
      return [first, Math.max(first + 1, Math.min(limit, Math.round(to + grown)))];
    };
    for (let row = 0; row < this.rows; row++) {
      const [bottom, top] = [toY(edgeAt(this.panel.y_edges, row)), toY(edgeAt(this.panel.y_edges, row + 1))];
      const [y0, y1] = span(height - top, height - bottom, height);
      for (let column = 0; column < this.columns; column++) {
        const level = this.levels[row * this.columns + column] ?? 0;
        if (level === 0) {
          continue;
        }
        const [left, right] = [edgeAt(this.panel.x_edges, column), edgeAt(this.panel.x_edges, column + 1)];
        const [x0, x1] = span(toX(left), toX(right), width);
        for (let py = y0; py < y1; py++) {
          for (let px = x0; px < x1; px++) {
            const at = py * width + px;
            strongest[at] = Math.max(strongest[at] ?? 0, level);
          }
        }
      }
    }
    const image = ctx.createImageData(width, height);
    strongest.forEach((level, at) => {
      const rgba = colors[level];
      if (level > 0 && rgba) {
        image.data.set([...rgba, 255], at * 4);
      }
    });
    return image;
  }

  /** What is under the pointer. */
  read(event: PointerEvent): string {
    const box = this.canvas.getBoundingClientRect();
    const [width, height] = [box.width - LEFT - RIGHT, box.height - TOP - BOTTOM];
    const across = (event.clientX - box.left - LEFT) / width;
    const up = 1 - (event.clientY - box.top - TOP) / height;
    if (!(across >= 0 && across <= 1 && up >= 0 && up <= 1)) {
      return "";
    }
    const [atX, atY] = [valueAt(this.chart.x, across), valueAt(this.chart.y, up)];
    const [column, row] = [cellOf(this.panel.x_edges, atX), cellOf(this.panel.y_edges, atY)];
    const level = column < 0 || row < 0 ? 0 : (this.levels[row * this.columns + column] ?? 0);
    const found = level === 0 ? "none" : `about ${count(countOf(level, this.chart.most))}`;
    const label = this.panel.label ? `${this.panel.label}: ` : "";
    return `${label}${written(this.chart.x, atX)}, ${written(this.chart.y, atY)}: ${found}`;
  }
}

function line(ctx: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
}

/** The pictures of a chart, with the key to their colours. */
export class Density {
  private readonly panels: Panel[];
  private readonly key: HTMLElement | null;
  private readonly bar = document.createElement("i");
  private width = 0;

  constructor(
    private readonly chart: DensityData,
    private readonly element: HTMLElement,
  ) {
    const canvases = element.querySelectorAll("canvas");
    this.panels = chart.panels.flatMap((panel, index) => {
      const canvas = canvases[index];
      return canvas ? [new Panel(chart, panel, canvas)] : [];
    });
    this.key = place(`key-${chart.id}`);
    this.setUpKey();
    new ResizeObserver(() => {
      if (this.element.clientWidth !== this.width) {
        this.draw();
      }
    }).observe(element);
    this.draw();
  }

  /** The key, and in its place what is under the pointer. */
  private setUpKey(): void {
    const { key, chart } = this;
    if (!key) {
      return;
    }
    const [least, most, under] = [0, 1, 2].map(() => document.createElement("span"));
    if (!least || !most || !under) {
      return;
    }
    const isEven = chart.most <= 1;
    least.textContent = isEven ? "" : "1";
    most.textContent = isEven ? "one call in each cell" : `${count(chart.most)} ${chart.counted} in a cell`;
    this.bar.hidden = isEven;
    under.className = "under";
    key.replaceChildren(least, this.bar, most, under);
    for (const panel of this.panels) {
      panel.canvas.addEventListener("pointermove", (event) => {
        under.textContent = panel.read(event);
      });
      panel.canvas.addEventListener("pointerleave", () => {
        under.textContent = "";
      });
    }
  }

  draw(): void {
    this.width = this.element.clientWidth;
    const colors = palette();
    const stops = [0, 0.25, 0.5, 0.75, 1].map((share) => colors[1 + Math.round(share * LEVELS)]);
    this.bar.style.background = `linear-gradient(to right, ${stops.map((stop) => `rgb(${stop?.join(" ")})`).join(", ")})`;
    for (const panel of this.panels) {
      panel.draw(colors);
    }
  }
}

/** All densities of the page. */
export function densityCharts(charts: DensityData[]): Density[] {
  return charts.flatMap((chart) => {
    const element = place(chart.id);
    return element ? [new Density(chart, element)] : [];
  });
}
