// Percentile charts: latency over 1/(1-q) on a logarithmic axis, where each nine has the same width.

import uPlot from "uplot";
import type { Charts, PercentileCurve } from "./data";
import { operationLabel } from "./data";
import { latency, latencyTick, percentile } from "./format";
import type { Curve } from "./plot";
import { axisStyle, curveSeries, logAxis, logScale, X_AXIS_HEIGHT } from "./plot";
import { placeDash } from "./shapes";
import { color, operationColor } from "./theme";

type Made = { options: Omit<uPlot.Options, "width" | "height">; data: uPlot.AlignedData };

/** Levels on the axis: median, and one per nine. */
function levels(max: number): number[] {
  const list = [1, 2];
  for (let level = 10; level <= max; level *= 10) {
    list.push(level);
  }
  return list;
}

/** On a narrow chart the labels of 0 % and of every second nine are left out. */
function labels(chart: uPlot, splits: number[]): string[] {
  const perLabel = chart.bbox.width / devicePixelRatio / splits.length;
  return splits.map((level) => {
    const nines = Math.round(Math.log10(level));
    const crowded = perLabel < 52 && (level === 1 || (level > 10 && nines % 2 === 1));
    return crowded ? "" : percentile(level);
  });
}

function made(curves: [Curve, PercentileCurve][]): Made {
  const tables = curves.map(([, curve]): uPlot.AlignedData => [curve.inverse, curve.value_us]);
  // Joining leaves undefined for a curve without a point there, and lines are drawn across.
  const data = tables.length > 0 ? uPlot.join(tables) : ([[]] as uPlot.AlignedData);
  return {
    options: {
      scales: {
        x: { time: false, distr: 3, log: 10, range: (_chart, min, max) => [min, max > min ? max : min * 10] },
        y: logScale(),
      },
      series: [
        {
          label: "percentile",
          value: (_chart, value) => (value === null ? "" : percentile(value)),
        },
        ...curves.map(([curve, points]) => ({
          ...curveSeries(curve, points.inverse.length, latency),
          points: { show: false },
        })),
      ],
      axes: [
        {
          ...axisStyle(),
          size: X_AXIS_HEIGHT,
          splits: (_chart, _axis, _min, max) => levels(max),
          filter: (_chart, splits) => splits,
          values: labels,
        },
        logAxis(latencyTick, 58),
      ],
      cursor: { y: false, sync: { key: "percentile", scales: ["x", null] }, drag: { x: true, y: false } },
      legend: { live: true },
      padding: [8, 24, 0, 0],
    },
    data,
  };
}

/** Response time of every operation. */
export function distributionChart(charts: Charts): Made {
  return made(
    charts.distributions.map(({ operation, response }) => {
      const place = charts.operations.indexOf(operation);
      const look = { color: operationColor(place), dash: placeDash(place), width: 2 };
      return [{ label: operationLabel(operation), ...look }, response];
    }),
  );
}

/** Response and service time of one operation. */
export function comparisonChart(charts: Charts, operation: string): Made {
  const entry = charts.distributions.find((candidate) => candidate.operation === operation);
  if (!entry) {
    return made([]);
  }
  return made([
    [{ label: "response time", color: color("--response"), width: 2 }, entry.response],
    [{ label: "service time", color: color("--service"), width: 2, dash: [6, 4] }, entry.service],
  ]);
}
