// Charts of watched resources of the machine and the server, below the load charts and on the same axis.

import uPlot from "uplot";
import type { Charts, PanelData, PanelUnit, Values } from "./data";
import { bytes, bytesRate, count, latency, latencyTick, rate, rateTick, share } from "./format";
import type { Curve } from "./plot";
import { axisStyle, byteSplits, curveSeries, zeroScale } from "./plot";
import { placeDash } from "./shapes";
import { operationColor } from "./theme";
import { made, type Made } from "./time";

interface Unit {
  /** Writes a value in the legend. */
  write: (value: number) => string;
  /** Writes a value on the axis. */
  tick: (value: number) => string;
  isBytes: boolean;
}

const UNITS: Record<PanelUnit, Unit> = {
  ratio: { write: share, tick: share, isBytes: false },
  count: { write: count, tick: count, isBytes: false },
  per_second: { write: rate, tick: rateTick, isBytes: false },
  bytes: { write: bytes, tick: bytes, isBytes: true },
  bytes_per_second: { write: bytesRate, tick: bytes, isBytes: true },
  milliseconds: {
    write: (ms) => latency(ms * 1_000),
    tick: (ms) => latencyTick(ms * 1_000),
    isBytes: false,
  },
};

function axis({ tick, isBytes }: Unit): uPlot.Axis {
  const splits = isBytes ? { splits: (_chart: uPlot, _axis: number, _min: number, max: number) => byteSplits(max) } : {};
  return { ...axisStyle(), ...splits, space: 26, values: (_chart, values) => values.map(tick) };
}

/** How much of what is behind a filled area shows through. */
const AREA_OPACITY = 0.45;

function soft(hue: string): string {
  return hue.replace(/^rgb\((.*)\)$/, `rgba($1, ${AREA_OPACITY})`);
}

export function panelChart(charts: Charts, panel: PanelData): Made {
  const unit = UNITS[panel.unit];
  // Dashes distinguish either the curves of one instance, or the instances.
  const isPaired = panel.curves.some((one) => one.is_dashed);
  const curves = panel.curves.map((one, index): [uPlot.Series, Values] => {
    const hue = operationColor(one.colour);
    const curve: Curve = {
      label: one.label,
      color: hue,
      width: 1.5,
      dash: one.is_dashed ? [5, 4] : isPaired || panel.is_stacked ? [] : placeDash(one.colour),
      ...(one.is_area || panel.is_stacked ? { fill: soft(hue) } : {}),
    };
    const series = curveSeries(curve, one.values.length, unit.write);
    if (!panel.is_stacked) {
      return [series, one.values];
    }
    // The legend shows the height of the layer, not its upper edge.
    const own = one.values;
    const value = (_chart: uPlot, _value: number, _index: number, place: number | null) =>
      place === null ? "" : written(own[place], unit);
    return [{ ...series, value, points: { show: false } }, upperEdge(panel, index)];
  });
  const chart = made(charts, curves, zeroScale(), axis(unit));
  if (panel.is_stacked) {
    // Each layer is filled down to the one below it.
    chart.options.bands = panel.curves.slice(1).map((_, index) => ({ series: [index + 2, index + 1] }));
    chart.options.scales = { ...chart.options.scales, y: { range: [0, 1] } };
  }
  return chart;
}

function written(value: number | null | undefined, unit: Unit): string {
  return value === null || value === undefined ? "–" : unit.write(value);
}

/** The sum of a curve and all before it. */
function upperEdge(panel: PanelData, index: number): Values {
  const below = panel.curves.slice(0, index + 1);
  const own = panel.curves[index]?.values ?? [];
  return own.map((value, point) =>
    value === null ? null : below.reduce((sum, curve) => sum + (curve.values[point] ?? 0), 0),
  );
}
