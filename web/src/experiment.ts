// Charts of an experiment: curves, points with intervals, and marker lines, as described in crates/report/src/page/plot.rs.

import uPlot from "uplot";
import { chooser } from "./controls";
import { bytes, count, latency, latencyTick, rate, rateTick } from "./format";
import { axisStyle, logSplits, place, Plot, valueBefore } from "./plot";
import { outline, type Shape } from "./shapes";
import { color } from "./theme";

type Measure = "count" | "rate" | "time" | "seconds" | "bytes";
type Role = "measured" | "p50" | "p99" | "bound" | "network" | "model";
type Stroke = "line" | "dashed" | "dotted" | "points" | "line_and_points" | "steps";

interface PlotAxis {
  label: string;
  measure: Measure;
  is_logarithmic: boolean;
}

interface PlotSeries {
  label: string;
  role: Role;
  stroke: Stroke;
  x: number[];
  y: number[];
  low: (number | null)[];
  high: (number | null)[];
}

interface PlotMark {
  label: string;
  is_vertical: boolean;
  at: number;
}

export interface PlotData {
  id: string;
  title: string;
  x: PlotAxis;
  y: PlotAxis;
  series: PlotSeries[];
  marks: PlotMark[];
}

type Made = { options: Omit<uPlot.Options, "width" | "height">; data: uPlot.AlignedData; shapes: (Shape | null)[] };
type Range = [number, number];

const COLORS: Record<Role, string> = {
  measured: "--operation-0",
  p50: "--operation-2",
  p99: "--operation-1",
  bound: "--text-soft",
  network: "--operation-1",
  model: "--operation-6",
};

const SHAPES: Record<Role, Shape> = {
  measured: "circle",
  p50: "square",
  p99: "triangle",
  bound: "circle",
  network: "circle",
  model: "diamond",
};

/** Diameter of a point in CSS pixels. */
const POINT = 8;

const seconds = (value: number) => `${count(value)} s`;
const WRITE: Record<Measure, (value: number) => string> = { count, rate, time: latency, seconds, bytes };
const WRITE_TICK: Record<Measure, (value: number) => string> = {
  count,
  rate: rateTick,
  time: latencyTick,
  seconds,
  bytes,
};

/** How far intervals and bounds may stretch a chart beyond the measured values. */
const STRETCH = 2;

/** Largest number of measured places with a label each. */
const MOST_PLACES = 12;

/** A mark farther out than this many times the last value is not shown. */
const MARK_REACH = 1.3;

function hasPoints(series: PlotSeries): boolean {
  return series.stroke === "points" || series.stroke === "line_and_points";
}

/** The range of an axis with some room at its ends. */
function padded([low, high]: Range, isLogarithmic: boolean): Range {
  return isLogarithmic ? [low / 1.25, high * 1.25] : [Math.min(0, low), high > 0 ? high * 1.06 : 1];
}

function positive(values: number[], isLogarithmic: boolean): number[] {
  return isLogarithmic ? values.filter((value) => value > 0) : values;
}

function horizontalRange(plot: PlotData, isLogarithmic: boolean): Range {
  const values = positive(plot.series.flatMap((series) => series.x), isLogarithmic);
  const last = Math.max(...values);
  const marks = plot.marks.filter((mark) => mark.is_vertical && mark.at <= last * MARK_REACH);
  const all = [...values, ...marks.map((mark) => mark.at)];
  return padded([Math.min(...all), Math.max(...all)], isLogarithmic);
}

/** Every measured value is inside; intervals, bounds and marks only as far as they leave room for it. */
function verticalRange(plot: PlotData, isLogarithmic: boolean): Range {
  const measured = plot.series.filter(hasPoints);
  const values = positive((measured.length > 0 ? measured : plot.series).flatMap((series) => series.y), isLogarithmic);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const others = [
    ...plot.series.flatMap((series) => [...series.y, ...series.low, ...series.high]),
    ...plot.marks.filter((mark) => !mark.is_vertical).map((mark) => mark.at),
  ].filter((value): value is number => value !== null);
  const inReach = positive(others, isLogarithmic).map((value) =>
    Math.min(Math.max(value, least / STRETCH), most * STRETCH),
  );
  return padded([Math.min(least, ...inReach), Math.max(most, ...inReach)], isLogarithmic);
}

function scale(full: Range, isLogarithmic: boolean, data: Range): uPlot.Scale {
  return {
    time: false,
    ...(isLogarithmic ? { distr: 3 as const, log: 10 as const } : {}),
    // uPlot passes the ends of the data, or of the zoomed range.
    range: (_chart, min, max) => (min === data[0] && max === data[1] ? full : [min, max]),
  };
}

/** Labels without those that would touch the one before. */
function uncrowded(chart: uPlot, splits: number[], texts: string[], room: number): string[] {
  let last = Number.NEGATIVE_INFINITY;
  return splits.map((split, index) => {
    const at = chart.valToPos(split, "x");
    if (at - last < room) {
      return "";
    }
    last = at;
    return texts[index] ?? "";
  });
}

function horizontalAxis(plot: PlotData, isLogarithmic: boolean): uPlot.Axis {
  const write = WRITE_TICK[plot.x.measure];
  const places = [...new Set(plot.series.filter(hasPoints).flatMap((series) => series.x))].sort((a, b) => a - b);
  const named = { ...axisStyle(), size: 30, label: plot.x.label, labelSize: 20, labelGap: 0, space: 56 };
  if (!isLogarithmic) {
    const whole = plot.x.measure === "count" ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000] } : {};
    return { ...named, ...whole, values: (_chart, splits) => splits.map(write) };
  }
  return {
    ...named,
    // A few measured places are more useful than round numbers.
    splits: (_chart, _axis, min, max) => {
      const shown = places.filter((value) => value >= min && value <= max);
      return shown.length > 1 && shown.length <= MOST_PLACES ? shown : logSplits(min, max);
    },
    filter: (_chart, splits) => splits,
    values: (chart, splits) => uncrowded(chart, splits, splits.map(write), plot.x.measure === "count" ? 26 : 42),
  };
}

function verticalAxis(plot: PlotData, isLogarithmic: boolean): uPlot.Axis {
  const write = WRITE_TICK[plot.y.measure];
  const named = { ...axisStyle(), size: 58, label: plot.y.label, labelSize: 20, labelGap: 0 };
  return isLogarithmic
    ? {
        ...named,
        splits: (_chart, _axis, min, max) => logSplits(min, max),
        filter: (_chart, splits) => splits,
        values: (_chart, splits) => splits.map(write),
      }
    : { ...named, values: (_chart, splits) => splits.map(write) };
}

function dash({ role, stroke }: PlotSeries): number[] {
  const others = role === "network" ? [10, 3, 2, 3] : [];
  return stroke === "dashed" ? [7, 5] : stroke === "dotted" ? [2, 4] : others;
}

/** The value under the cursor: a point's own with its interval, or that of the curve. */
function legendValue(plot: PlotData, series: PlotSeries, chart: uPlot, index: number, at: number | null): string {
  const write = WRITE[plot.y.measure];
  if (at === null) {
    return "";
  }
  if (!hasPoints(series)) {
    return valueBefore(chart, index, at, write);
  }
  const point = series.x.indexOf(chart.data[0]?.[at] ?? Number.NaN);
  const value = series.y[point];
  if (value === undefined) {
    return "";
  }
  const [low, high] = [series.low[point], series.high[point]];
  const interval = typeof low === "number" && typeof high === "number" ? ` (${write(low)} – ${write(high)})` : "";
  return write(value) + interval;
}

/** The points of a series as one path. */
function pointPaths(shape: Shape): uPlot.Series.Points.PathBuilder {
  return (chart, index, from, to) => {
    const path = new Path2D();
    const [across, up] = [chart.data[0], chart.data[index]];
    for (let place = from; place <= to; place++) {
      const [x, y] = [across?.[place], up?.[place]];
      if (typeof x === "number" && typeof y === "number") {
        const radius = (POINT / 2) * devicePixelRatio;
        outline(path, shape, chart.valToPos(x, "x", true), chart.valToPos(y, "y", true), radius);
      }
    }
    return { stroke: path, fill: path };
  };
}

/** A colour as it lies over another one. */
function translucent(opaque: string): string {
  return opaque.replace(/^rgb\((.*)\)$/, "rgba($1, 0.14)");
}

function seriesOptions(plot: PlotData, series: PlotSeries): uPlot.Series {
  const stroke = color(COLORS[series.role]);
  const dashes = dash(series);
  const isPoints = series.stroke === "points";
  const options: uPlot.Series = {
    label: series.label,
    stroke,
    width: series.role === "model" ? 2.25 : 1.75,
    dash: dashes,
    points: {
      show: hasPoints(series),
      size: POINT,
      fill: stroke,
      stroke: color("--background"),
      width: 1,
      paths: pointPaths(SHAPES[series.role]),
    },
    value: (chart, _value, index, at) => legendValue(plot, series, chart, index, at),
  };
  if (series.stroke === "steps") {
    const paths = uPlot.paths.stepped?.({ align: 1 });
    return { ...options, ...(paths ? { paths } : {}), fill: translucent(stroke) };
  }
  return isPoints ? { ...options, paths: () => null } : options;
}

/** The intervals as bars with caps; an arrow instead of a cap where one goes on beyond the chart. */
function intervalBars(plot: PlotData): (chart: uPlot) => void {
  return (chart) => {
    const { ctx, bbox } = chart;
    const [top, bottom] = [bbox.top, bbox.top + bbox.height];
    const cap = 4 * devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.lineWidth = 1.5 * devicePixelRatio;
    plot.series.forEach((series, index) => {
      if (!hasPoints(series) || chart.series[index + 1]?.show === false) {
        return;
      }
      ctx.strokeStyle = color(COLORS[series.role]);
      ctx.beginPath();
      series.x.forEach((x, i) => {
        const [low, high] = [series.low[i], series.high[i]];
        if (typeof low !== "number" || typeof high !== "number") {
          return;
        }
        const at = chart.valToPos(x, "x", true);
        // A logarithmic axis has no place for 0.
        const isBelow = chart.scales["y"]?.distr === 3 && low <= 0;
        const from = isBelow ? Number.POSITIVE_INFINITY : chart.valToPos(low, "y", true);
        const to = chart.valToPos(high, "y", true);
        ctx.moveTo(at, Math.min(from, bottom));
        ctx.lineTo(at, Math.max(to, top));
        for (const [end, edge, inward] of [[from, bottom, -cap], [to, top, cap]] as const) {
          const isInside = Math.min(Math.max(end, top), bottom) === end;
          ctx.moveTo(at - cap, isInside ? end : edge + 2 * inward);
          if (!isInside) {
            ctx.lineTo(at, edge);
          }
          ctx.lineTo(at + cap, isInside ? end : edge + 2 * inward);
        }
      });
      ctx.stroke();
    });
    ctx.restore();
  };
}

/** The lines that mark a place, with their names where these do not cover each other. */
function markLines(plot: PlotData): (chart: uPlot) => void {
  return (chart) => {
    const { ctx, bbox } = chart;
    const pixel = devicePixelRatio;
    const line = 15 * pixel;
    ctx.save();
    ctx.font = `${11 * pixel}px system-ui, sans-serif`;
    ctx.strokeStyle = color("--text-soft");
    ctx.fillStyle = color("--text-soft");
    ctx.lineWidth = pixel;
    ctx.setLineDash([3 * pixel, 3 * pixel]);
    // The end of the last name in each line above the chart.
    const ends: number[] = [];
    const marks = [...plot.marks].sort((a, b) => a.at - b.at);
    for (const mark of marks) {
      const at = chart.valToPos(mark.at, mark.is_vertical ? "x" : "y", true);
      const [from, to] = mark.is_vertical ? [bbox.left, bbox.left + bbox.width] : [bbox.top, bbox.top + bbox.height];
      if (!(at >= from && at <= to)) {
        continue;
      }
      ctx.beginPath();
      if (mark.is_vertical) {
        ctx.moveTo(at, bbox.top);
        ctx.lineTo(at, bbox.top + bbox.height);
      } else {
        ctx.moveTo(bbox.left, at);
        ctx.lineTo(bbox.left + bbox.width, at);
      }
      ctx.stroke();
      const width = ctx.measureText(mark.label).width;
      if (mark.is_vertical) {
        // Above the chart, in the first line with enough room.
        const left = Math.min(Math.max(at - width / 2, bbox.left), bbox.left + bbox.width - width);
        const free = ends.findIndex((end) => end + 8 * pixel < left);
        const row = free < 0 ? ends.length : free;
        ends[row] = left + width;
        ctx.textBaseline = "bottom";
        ctx.fillText(mark.label, left, bbox.top - 3 * pixel - row * line);
      } else {
        ctx.textBaseline = "bottom";
        ctx.fillText(mark.label, bbox.left + 6 * pixel, at - 3 * pixel);
      }
    }
    ctx.restore();
  };
}

function made(plot: PlotData, isLogX: boolean, isLogY: boolean): Made {
  const data = uPlot.join(plot.series.map((series): uPlot.AlignedData => [series.x, series.y]));
  const x = data[0] as number[];
  const write = WRITE[plot.x.measure];
  const vertical = verticalRange(plot, isLogY);
  const marks = plot.marks.filter((mark) => mark.is_vertical).length;
  return {
    options: {
      scales: {
        x: scale(horizontalRange(plot, isLogX), isLogX, [x[0] ?? 0, x.at(-1) ?? 0]),
        y: { ...(isLogY ? { distr: 3 as const, log: 10 as const } : {}), range: () => vertical },
      },
      series: [
        { label: plot.x.label, value: (_chart, value) => (value === null ? "" : write(value)) },
        ...plot.series.map((series) => seriesOptions(plot, series)),
      ],
      axes: [horizontalAxis(plot, isLogX), verticalAxis(plot, isLogY)],
      cursor: { y: false, sync: { key: plot.x.label, scales: ["x", null] }, drag: { x: true, y: false } },
      legend: { live: true },
      padding: [8 + 15 * marks, 20, 0, 0],
      hooks: { drawClear: [markLines(plot)], draw: [intervalBars(plot)] },
    },
    data,
    shapes: [null, ...plot.series.map((series) => (hasPoints(series) ? SHAPES[series.role] : null))],
  };
}

const KINDS = [
  { value: "linear" as const, label: "linear" },
  { value: "log" as const, label: "logarithmic" },
];

type Kind = (typeof KINDS)[number]["value"];

function kind(axis: PlotAxis): Kind {
  return axis.is_logarithmic ? "log" : "linear";
}

function drawn(data: PlotData, element: HTMLElement): Plot {
  let [horizontal, vertical] = [kind(data.x), kind(data.y)];
  const plot = new Plot(element, () => made(data, horizontal === "log", vertical === "log"));
  const controls = place(`controls-${data.id}`);
  if (controls) {
    chooser(controls, "Across", KINDS, horizontal, (value) => {
      horizontal = value;
      plot.draw();
    });
    chooser(controls, "Up", KINDS, vertical, (value) => {
      vertical = value;
      plot.draw();
    });
  }
  return plot;
}

/** All charts of the page. */
export function experimentPlots(plots: PlotData[]): Plot[] {
  return plots.flatMap((data) => {
    const element = place(data.id);
    return element ? [drawn(data, element)] : [];
  });
}
