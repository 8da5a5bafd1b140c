// The chart data as described in crates/report/src/page/. All times are seconds from the start of the run, all latencies
// microseconds; null is a missing value.

import type { DensityData } from "./density";
import type { PlotData } from "./experiment";
import type { ScatterData } from "./scatter";

export type Values = (number | null)[];

export interface PhaseSpan {
  name: "load" | "warmup" | "measure";
  start_s: number;
  end_s: number;
}

export interface LatencySeries {
  p50: Values;
  p99: Values;
  p99_9: Values;
  max: Values;
}

export interface OperationSeries {
  rate_per_s: Values;
  errors_per_s: Values | null;
  response_us: LatencySeries;
  service_us: LatencySeries;
}

export interface TimeSeries {
  start_s: number[];
  end_s: number[];
  offered_per_s: Values | null;
  achieved_per_s: Values;
  failed_per_s: Values | null;
  operations: OperationSeries[];
}

export interface PercentileCurve {
  inverse: number[];
  value_us: number[];
}

export interface DistributionCurves {
  operation: string;
  count: number;
  response: PercentileCurve;
  service: PercentileCurve;
}

export type PanelUnit = "ratio" | "count" | "per_second" | "bytes" | "bytes_per_second" | "milliseconds";

export interface PanelCurve {
  label: string;
  colour: number;
  is_dashed: boolean;
  is_area: boolean;
  values: Values;
}

/** A chart of what was watched, on the points of the other charts over time. */
export interface PanelData {
  id: string;
  unit: PanelUnit;
  is_stacked: boolean;
  curves: PanelCurve[];
}

/** A change of level, which all charts over time mark. */
export interface ChangeMark {
  at_s: number;
  label: string;
}

/** Of a run: what its charts over time and its curves of percentiles show. */
export interface Charts {
  phases: PhaseSpan[];
  operations: string[];
  time: TimeSeries;
  distributions: DistributionCurves[];
  windows_per_point: number;
  thinning: string | null;
  panels?: PanelData[];
  changes?: ChangeMark[];
}

/** All that a page draws. */
export interface PageData {
  plots: PlotData[];
  densities?: DensityData[];
  scatters?: ScatterData[];
  time?: Charts;
}

/** The data of the page. */
export function readData(): PageData {
  const element = document.getElementById("data");
  if (!element?.textContent) {
    throw new Error("the page holds no chart data");
  }
  return JSON.parse(element.textContent) as PageData;
}

/** `read_modify_write` is shown as `read-modify-write`, as in the tables. */
export function operationLabel(name: string): string {
  return name.replaceAll("_", "-");
}
