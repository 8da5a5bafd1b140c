// Scatter charts: one value for each of many messages in order, as described in crates/report/src/page/scatter.rs. Panels
// share their axes; dragging over a part of one zooms all of them.

import { chooser } from "./controls";
import { count, latency, latencyTick } from "./format";
import { evenSplits, FONT, logSplits, place, widthIn } from "./plot";
import { color, mix, type Rgb, rgb } from "./theme";

interface ScatterPanel {
  label: string;
  words: string;
  step: number;
  count: number;
  values: string;
}

export interface ScatterData {
  id: string;
  title: string;
  x_label: string;
  y_label: string;
  panels: ScatterPanel[];
}

type Range = [number, number];

/** What of the chart is seen: message numbers, and microseconds. */
interface View {
  x: Range;
  y: Range;
}

const LEAST_US = 0.1;
const DECADES = 9;
const STEPS = 65_534;

/** Room for the labels, in CSS pixels. */
const LEFT = 70;
const BOTTOM = 38;
const TOP = 8;
const RIGHT = 14;

/** Height as a share of the width, and its bounds in CSS pixels; of one panel alone, and of several. */
const ASPECT = 0.42;
const ALONE = [260, 420] as const;
const SEVERAL = [190, 250] as const;

/** Points are larger where there are few of them; CSS pixels. */
const DOTS: [number, number][] = [
  [400, 4],
  [4_000, 2.5],
  [Number.POSITIVE_INFINITY, 1.25],
];

/** Shades of the number of points in a pixel. */
const SHADES = 64;
const MOST_IN_A_PIXEL = 40;

/** A drag over less than this, in CSS pixels, is a click. */
const LEAST_DRAG = 6;

/** Microseconds by number; NaN where there is none. */
function decode(values: string, length: number): Float64Array {
  const packed = atob(values);
  const decoded = new Float64Array(length).fill(Number.NaN);
  for (let i = 0; i < length; i++) {
    const level = packed.charCodeAt(2 * i) + 256 * packed.charCodeAt(2 * i + 1);
    if (level > 0) {
      decoded[i] = LEAST_US * 10 ** (((level - 1) / STEPS) * DECADES);
    }
  }
  return decoded;
}

function shades(): Rgb[] {
  const [low, high] = [rgb("--density-middle"), rgb("--density-high")];
  return Array.from({ length: SHADES }, (_, shade) => mix(low, high, shade / (SHADES - 1)));
}

class Panel {
  readonly values: Float64Array;
  private width = 0;
  private height = 0;

  constructor(
    private readonly chart: ScatterData,
    private readonly panel: ScatterPanel,
    readonly canvas: HTMLCanvasElement,
    private readonly isAlone: boolean,
  ) {
    this.values = decode(panel.values, panel.count);
  }

  get end(): number {
    return this.panel.step * this.panel.count;
  }

  private get size(): [number, number] {
    return [this.width - LEFT - RIGHT, this.height - TOP - BOTTOM];
  }

  /** From values to places in the drawing, and back. */
  private scales(view: View, isLog: boolean) {
    const [width, height] = this.size;
    const f = isLog ? Math.log : (value: number) => value;
    const back = isLog ? Math.exp : (value: number) => value;
    const [low, high] = [f(view.y[0]), f(view.y[1])];
    return {
      x: (n: number) => ((n - view.x[0]) / (view.x[1] - view.x[0] || 1)) * width,
      y: (us: number) => height - ((f(us) - low) / (high - low || 1)) * height,
      atX: (x: number) => view.x[0] + (x / width) * (view.x[1] - view.x[0]),
      atY: (y: number) => back(low + (1 - y / height) * (high - low)),
    };
  }

  draw(view: View, isLog: boolean, colors: Rgb[]): void {
    this.width = widthIn(this.canvas.parentElement);
    const [least, most] = this.isAlone ? ALONE : SEVERAL;
    this.height = Math.round(Math.min(Math.max(this.width * ASPECT, least), most));
    const pixel = devicePixelRatio;
    this.canvas.style.height = `${this.height}px`;
    this.canvas.width = Math.round(this.width * pixel);
    this.canvas.height = Math.round(this.height * pixel);
    const ctx = this.canvas.getContext("2d");
    if (!ctx) {
      return;
    }
    ctx.scale(pixel, pixel);
    this.drawAxes(ctx, view, isLog);
    const [width, height] = this.size;
    const layer = document.createElement("canvas");
    [layer.width, layer.height] = [Math.round(width * pixel), Math.round(height * pixel)];
    const image = layer.getContext("2d");
    if (image) {
      image.putImageData(this.paint(image, view, isLog, colors), 0, 0);
      // putImageData itself would erase the grid behind empty places.
      ctx.drawImage(layer, LEFT, TOP, width, height);
    }
  }

  private drawAxes(ctx: CanvasRenderingContext2D, view: View, isLog: boolean): void {
    const [width, height] = this.size;
    const at = this.scales(view, isLog);
    ctx.font = FONT;
    ctx.strokeStyle = color("--grid");
    ctx.fillStyle = color("--text-soft");
    ctx.lineWidth = 1;
    const line = (x0: number, y0: number, x1: number, y1: number) => {
      ctx.beginPath();
      ctx.moveTo(x0, y0);
      ctx.lineTo(x1, y1);
      ctx.stroke();
    };
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    const inside = (value: number) => value >= view.y[0] && value <= view.y[1];
    const decades = logSplits(view.y[0], view.y[1]).filter(inside);
    const rows = isLog && decades.length > 1 ? decades : evenSplits(view.y, 4).filter((value) => value > 0 && inside(value));
    let lastY = Number.POSITIVE_INFINITY;
    for (const value of rows) {
      const y = TOP + at.y(value);
      line(LEFT, y, LEFT + width, y);
      if (lastY - y > 16) {
        ctx.fillText(latencyTick(value), LEFT - 7, y);
        lastY = y;
      }
    }
    ctx.textBaseline = "top";
    for (const value of evenSplits(view.x, width / 90)) {
      const x = LEFT + at.x(value);
      line(x, TOP, x, TOP + height);
      const half = ctx.measureText(count(value)).width / 2;
      const isLast = x + half > LEFT + width + RIGHT;
      ctx.textAlign = isLast ? "right" : "center";
      ctx.fillText(count(value), isLast ? LEFT + width + RIGHT : x, TOP + height + 6);
    }
    ctx.textAlign = "center";
    ctx.textBaseline = "bottom";
    ctx.fillText(this.chart.x_label, LEFT + width / 2, this.height - 1);
    ctx.save();
    ctx.translate(8, TOP + height / 2);
    ctx.rotate(-Math.PI / 2);
    ctx.textBaseline = "middle";
    ctx.fillText(this.chart.y_label, 0, 0);
    ctx.restore();
  }

  /** The points; the more of them share a pixel, the stronger its colour. */
  private paint(ctx: CanvasRenderingContext2D, view: View, isLog: boolean, colors: Rgb[]): ImageData {
    const pixel = devicePixelRatio;
    const [width, height] = [ctx.canvas.width, ctx.canvas.height];
    const at = this.scales(view, isLog);
    const step = this.panel.step;
    const first = Math.max(0, Math.floor(view.x[0] / step));
    const last = Math.min(this.values.length - 1, Math.ceil(view.x[1] / step));
    let seen = 0;
    for (let i = first; i <= last; i++) {
      const us = this.values[i] ?? Number.NaN;
      seen += us >= view.y[0] && us <= view.y[1] ? 1 : 0;
    }
    const dot = Math.max(1, Math.round((DOTS.find(([most]) => seen <= most)?.[1] ?? 1) * pixel));
    const counts = new Uint16Array(width * height);
    for (let i = first; i <= last; i++) {
      const us = this.values[i] ?? Number.NaN;
      if (!(us >= view.y[0] && us <= view.y[1])) {
        continue;
      }
      const left = Math.round(at.x(i * step) * pixel - dot / 2);
      const top = Math.round(at.y(us) * pixel - dot / 2);
      for (let y = Math.max(0, top); y < Math.min(height, top + dot); y++) {
        for (let x = Math.max(0, left); x < Math.min(width, left + dot); x++) {
          counts[y * width + x] = (counts[y * width + x] ?? 0) + 1;
        }
      }
    }
    const image = ctx.createImageData(width, height);
    counts.forEach((found, place) => {
      if (found > 0) {
        const share = Math.min(1, Math.log(found) / Math.log(MOST_IN_A_PIXEL));
        image.data.set([...(colors[Math.round(share * (SHADES - 1))] ?? [0, 0, 0]), 255], place * 4);
      }
    });
    return image;
  }

  /** A place of the pointer, in the drawing. */
  private inside(x: number, y: number): [number, number] {
    const box = this.canvas.getBoundingClientRect();
    const [width, height] = this.size;
    const clamp = (value: number, most: number) => Math.min(Math.max(value, 0), most);
    return [clamp(x - box.left - LEFT, width), clamp(y - box.top - TOP, height)];
  }

  /** What of the view is between two places of the pointer; all of it up and down where the drag was flat. */
  between(from: [number, number], to: [number, number], view: View, isLog: boolean): View | null {
    const at = this.scales(view, isLog);
    const [[x0, y0], [x1, y1]] = [this.inside(...from), this.inside(...to)];
    if (Math.abs(x1 - x0) < LEAST_DRAG) {
      return null;
    }
    const [left, right] = [Math.min(x0, x1), Math.max(x0, x1)];
    const isFlat = Math.abs(y1 - y0) < 3 * LEAST_DRAG;
    const y: Range = isFlat ? view.y : [at.atY(Math.max(y0, y1)), at.atY(Math.min(y0, y1))];
    return { x: [at.atX(left), at.atX(right)], y };
  }

  outline(from: [number, number], to: [number, number]): void {
    const ctx = this.canvas.getContext("2d");
    if (!ctx) {
      return;
    }
    const [[x0, y0], [x1, y1]] = [this.inside(...from), this.inside(...to)];
    const isFlat = Math.abs(y1 - y0) < 3 * LEAST_DRAG;
    const [top, bottom] = isFlat ? [0, this.size[1]] : [Math.min(y0, y1), Math.max(y0, y1)];
    ctx.strokeStyle = color("--text-soft");
    ctx.setLineDash([4, 3]);
    ctx.strokeRect(LEFT + Math.min(x0, x1), TOP + top, Math.abs(x1 - x0), bottom - top);
    ctx.setLineDash([]);
  }

  /** The message under the pointer. */
  read(event: PointerEvent, view: View, isLog: boolean): string {
    const [x] = this.inside(event.clientX, event.clientY);
    const n = Math.round(this.scales(view, isLog).atX(x) / this.panel.step);
    const us = this.values[n] ?? Number.NaN;
    const value = Number.isNaN(us) ? "no value" : latency(us);
    return `${this.panel.label}, ${this.chart.x_label} ${count(Math.round(n * this.panel.step))}: ${value}`;
  }
}

/** The panels of a chart, and what of them is seen. */
export class Scatter {
  private readonly panels: Panel[];
  private readonly full: View;
  private view: View;
  /** The view as it is drawn. */
  private shown: View;
  private isLog = true;
  private width = 0;
  private readonly all = document.createElement("button");
  private readonly under = document.createElement("span");

  constructor(
    chart: ScatterData,
    private readonly element: HTMLElement,
  ) {
    const canvases = element.querySelectorAll("canvas");
    this.panels = chart.panels.flatMap((panel, index) => {
      const canvas = canvases[index];
      return canvas ? [new Panel(chart, panel, canvas, chart.panels.length === 1)] : [];
    });
    let [least, most] = [Number.POSITIVE_INFINITY, 0];
    for (const panel of this.panels) {
      for (const us of panel.values) {
        if (us < least) least = us;
        if (us > most) most = us;
      }
    }
    const y: Range = most > 0 ? [least / 1.2, most * 1.2] : [1, 10];
    this.full = { x: [0, Math.max(1, ...this.panels.map((panel) => panel.end))], y };
    this.view = this.full;
    this.shown = this.full;
    this.setUp(chart);
    new ResizeObserver(() => {
      if (this.element.clientWidth !== this.width) {
        this.draw();
      }
    }).observe(element);
    this.draw();
  }

  private setUp(chart: ScatterData): void {
    const controls = place(`controls-${chart.id}`);
    if (controls) {
      const kinds = [
        { value: "log", label: "logarithmic" },
        { value: "linear", label: "linear" },
      ];
      chooser(controls, "Up", kinds, "log", (value) => {
        this.isLog = value === "log";
        this.draw();
      });
    }
    this.all.type = "button";
    this.all.textContent = "See all";
    this.all.addEventListener("click", () => this.see(this.full));
    this.under.className = "under";
    place(`key-${chart.id}`)?.replaceChildren(this.all, this.under);
    for (const panel of this.panels) {
      this.follow(panel);
    }
  }

  private follow(panel: Panel): void {
    const { canvas } = panel;
    let from: [number, number] | null = null;
    const at = (event: PointerEvent): [number, number] => [event.clientX, event.clientY];
    canvas.addEventListener("pointerdown", (event) => {
      from = at(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      this.under.textContent = panel.read(event, this.shown, this.isLog);
      if (from) {
        panel.draw(this.shown, this.isLog, shades());
        panel.outline(from, at(event));
      }
    });
    canvas.addEventListener("pointerup", (event) => {
      const part = from && panel.between(from, at(event), this.shown, this.isLog);
      from = null;
      this.see(part ?? this.view);
    });
    canvas.addEventListener("pointercancel", () => {
      from = null;
      this.draw();
    });
    canvas.addEventListener("pointerleave", () => {
      this.under.textContent = "";
    });
    canvas.addEventListener("dblclick", () => this.see(this.full));
  }

  private see(view: View): void {
    this.view = view;
    this.draw();
  }

  draw(): void {
    this.width = this.element.clientWidth;
    this.all.disabled = this.view === this.full;
    // A linear axis begins at zero, unless it is zoomed.
    const fromZero = { ...this.full, y: [0, this.full.y[1]] as Range };
    this.shown = !this.isLog && this.view === this.full ? fromZero : this.view;
    const colors = shades();
    for (const panel of this.panels) {
      panel.draw(this.shown, this.isLog, colors);
    }
  }
}

/** All scatters of the page. */
export function scatterCharts(charts: ScatterData[]): Scatter[] {
  return charts.flatMap((chart) => {
    const element = place(chart.id);
    return element ? [new Scatter(chart, element)] : [];
  });
}
