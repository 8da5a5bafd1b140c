// Charts over time: rate, latency and errors. They share cursor and zoom, and show the phases as shaded ranges behind the
// curves.

import uPlot from "uplot";
import type { Charts, LatencySeries, PhaseSpan, Values } from "./data";
import { operationLabel } from "./data";
import { clock, latency, latencyTick, rate, rateTick } from "./format";
import { changeMarks, evidenceBand, labelFont } from "./marks";
import type { Curve } from "./plot";
import { axisStyle, curveSeries, logAxis, logScale, TIME_STEPS, X_AXIS_HEIGHT, zeroScale } from "./plot";
import { placeDash } from "./shapes";
import { color, operationColor } from "./theme";

export type Made = { options: Omit<uPlot.Options, "width" | "height">; data: uPlot.AlignedData };

const PHASE_LABELS: Record<PhaseSpan["name"], string> = {
  load: "load",
  warmup: "warm-up",
  measure: "measure",
};

/** Room after the name of a phase in CSS pixels. */
const LABEL_GAP = 6;

/** Charts line up below each other because their vertical axes have one width. */
const AXIS_WIDTH = 58;

function middles(charts: Charts): number[] {
  const { start_s, end_s } = charts.time;
  return start_s.map((start, index) => (start + (end_s[index] ?? start)) / 2);
}

function lastEnd(charts: Charts): number {
  return charts.time.end_s.at(-1) ?? 0;
}

/** Where a phase begins and ends in the part that is shown, in pixels of the canvas. */
function phaseEdges(chart: uPlot, phase: PhaseSpan): [number, number] {
  const { left, width } = chart.bbox;
  const from = Math.max(left, chart.valToPos(phase.start_s, "x", true));
  return [from, Math.min(left + width, chart.valToPos(phase.end_s, "x", true))];
}

/** Up to where the name of the phase at `x` stands above the curves. */
function phaseLabelEnd(phases: PhaseSpan[]): (chart: uPlot, x: number) => number {
  return (chart, x) => {
    const ends = phases.map((phase) => {
      const [from, to] = phaseEdges(chart, phase);
      const width = chart.ctx.measureText(PHASE_LABELS[phase.name]).width;
      return x >= from && x <= from + width && width < to - from ? from + width : 0;
    });
    return Math.max(0, ...ends);
  };
}

/** Shades the phases that are not the result, and names all of them above the curves. */
function phaseShades(phases: PhaseSpan[]): uPlot.Plugin {
  const draw = (chart: uPlot) => {
    const { ctx, bbox } = chart;
    ctx.save();
    ctx.font = labelFont();
    ctx.textBaseline = "bottom";
    ctx.textAlign = "left";
    for (const phase of phases) {
      const [from, to] = phaseEdges(chart, phase);
      if (to <= from) {
        continue;
      }
      ctx.fillStyle = color(`--phase-${phase.name}`);
      ctx.fillRect(from, bbox.top, to - from, bbox.height);
      const label = PHASE_LABELS[phase.name];
      if (ctx.measureText(label).width + LABEL_GAP * devicePixelRatio < to - from) {
        ctx.fillStyle = color("--text-soft");
        ctx.fillText(label, from, bbox.top - 3 * devicePixelRatio);
      }
    }
    ctx.restore();
  };
  return { hooks: { drawClear: [draw] } };
}

/** A chart over the time of the run. */
export function made(charts: Charts, curves: [uPlot.Series, Values][], y: uPlot.Scale, axis: uPlot.Axis): Made {
  const { start_s, end_s } = charts.time;
  const longest = lastEnd(charts);
  const window = (_chart: uPlot, _value: number, _series: number, index: number | null) =>
    index === null ? "" : `${clock(start_s[index] ?? 0, longest)} – ${clock(end_s[index] ?? 0, longest)}`;
  return {
    options: {
      scales: { x: { time: false, range: (_chart, min, max) => timeRange(charts, min, max) }, y },
      series: [{ label: "time", value: window }, ...curves.map(([series]) => series)],
      axes: [
        { ...axisStyle(), size: X_AXIS_HEIGHT, space: 64, incrs: TIME_STEPS, values: (_chart, splits) => splits.map((s) => clock(s, longest)) },
        { ...axis, size: AXIS_WIDTH },
      ],
      cursor: { y: false, sync: { key: "time", scales: ["x", null] }, drag: { x: true, y: false } },
      legend: { live: true },
      padding: [20, 28, 0, 0],
      plugins: [phaseShades(charts.phases), evidenceBand(), changeMarks(charts.changes ?? [], phaseLabelEnd(charts.phases))],
    },
    data: [middles(charts), ...curves.map(([, values]) => values)],
  };
}

/** Whole windows, from the start of the first to the end of the last one shown. */
function timeRange(charts: Charts, min: number, max: number): [number, number] {
  const { start_s, end_s } = charts.time;
  const x = middles(charts);
  if (min === x[0] && max === x.at(-1)) {
    return [start_s[0] ?? 0, end_s.at(-1) ?? 1];
  }
  return [min, max];
}

function rateAxis(): uPlot.Axis {
  return { ...axisStyle(), values: (_chart, splits) => splits.map(rateTick) };
}

export function rateChart(charts: Charts): Made {
  const { time, operations } = charts;
  const curves: [uPlot.Series, Values][] = [];
  const add = (curve: Curve, values: Values) => curves.push([curveSeries(curve, values.length, rate), values]);
  if (time.offered_per_s) {
    add({ label: "offered", color: color("--offered"), dash: [5, 4], width: 2 }, time.offered_per_s);
  }
  add({ label: "achieved", color: color("--total"), width: 2.25 }, time.achieved_per_s);
  // With a single operation its curve is the total.
  const shown = operations.filter((_, index) => isAboveZero(time.operations[index]?.rate_per_s));
  operations.forEach((name, index) => {
    const values = time.operations[index]?.rate_per_s;
    if (values && shown.length > 1 && shown.includes(name)) {
      const curve = { label: operationLabel(name), color: operationColor(index), width: 1.5 };
      add({ ...curve, dash: placeDash(index) }, blankZeros(values));
    }
  });
  return made(charts, curves, zeroScale(), rateAxis());
}

function isAboveZero(values: Values | undefined): boolean {
  return values?.some((value) => value !== null && value > 0) ?? false;
}

/** An operation that a phase does not have is not an operation at 0/s. */
function blankZeros(values: Values): Values {
  return values.map((value) => (value === 0 ? null : value));
}

export type Clock = "response" | "service";
export type ScaleKind = "log" | "linear";

export function latencyChart(charts: Charts, operation: string, clockName: Clock, scale: ScaleKind): Made {
  const series = charts.time.operations[charts.operations.indexOf(operation)];
  const latencies: LatencySeries | undefined =
    clockName === "response" ? series?.response_us : series?.service_us;
  const levels: [keyof LatencySeries, Curve][] = [
    ["max", { label: "max", color: color("--level-max"), width: 1.25, dash: [2, 3] }],
    ["p99_9", { label: "p99.9", color: color("--level-p99_9"), dash: [4, 3] }],
    ["p99", { label: "p99", color: color("--level-p99"), dash: [10, 3] }],
    ["p50", { label: "p50", color: color("--level-p50"), width: 2.25 }],
  ];
  const curves = levels.map(([level, curve]): [uPlot.Series, Values] => {
    const values = latencies?.[level] ?? [];
    return [curveSeries(curve, values.length, latency), values];
  });
  const linearAxis = { ...axisStyle(), values: (_chart: uPlot, splits: number[]) => splits.map(latencyTick) };
  return scale === "log"
    ? made(charts, curves, logScale(), logAxis(latencyTick, AXIS_WIDTH))
    : made(charts, curves, zeroScale(), linearAxis);
}

export function errorChart(charts: Charts): Made {
  const { time, operations } = charts;
  const curves: [uPlot.Series, Values][] = [];
  if (time.failed_per_s) {
    const curve: Curve = { label: "all", color: color("--alarm"), width: 2, fill: color("--alarm-soft") };
    curves.push([curveSeries(curve, time.failed_per_s.length, rate), time.failed_per_s]);
  }
  const failing = time.operations.filter((series) => series.errors_per_s);
  operations.forEach((name, index) => {
    const values = time.operations[index]?.errors_per_s;
    if (values && failing.length > 1) {
      const curve: Curve = { label: operationLabel(name), color: operationColor(index), dash: placeDash(index) };
      curves.push([curveSeries(curve, values.length, rate), values]);
    }
  });
  return made(charts, curves, zeroScale(), rateAxis());
}
