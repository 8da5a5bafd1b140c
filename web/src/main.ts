// Fills the charts of a report. The page is readable without this: all tables are in the HTML.

import "uplot/dist/uPlot.min.css";
import "./report.css";
import { chooser } from "./controls";
import type { Charts } from "./data";
import { operationLabel, readData } from "./data";
import type { Density } from "./density";
import { densityCharts } from "./density";
import { experimentPlots } from "./experiment";
import { followEvidence } from "./marks";
import { panelChart } from "./panels";
import { comparisonChart, distributionChart } from "./percentiles";
import { place, Plot } from "./plot";
import type { Scatter } from "./scatter";
import { scatterCharts } from "./scatter";
import { setUpTheme } from "./theme";
import type { Clock, ScaleKind } from "./time";
import { errorChart, latencyChart, rateChart } from "./time";

function timeCharts(charts: Charts): Plot[] {
  const plots: Plot[] = [];
  const rate = place("plot-rate");
  if (rate) {
    plots.push(new Plot(rate, () => rateChart(charts)));
  }
  const latency = place("plot-latency");
  if (latency) {
    plots.push(latencyPlot(charts, latency));
  }
  const errors = place("plot-errors");
  if (errors) {
    plots.push(new Plot(errors, () => errorChart(charts)));
  }
  for (const panel of charts.panels ?? []) {
    const element = place(`plot-${panel.id}`);
    if (element) {
      plots.push(new Plot(element, () => panelChart(charts, panel)));
    }
  }
  followEvidence(() => plots.forEach((plot) => plot.refresh()));
  return plots;
}

function latencyPlot(charts: Charts, element: HTMLElement): Plot {
  let operation = charts.operations[0] ?? "";
  let clock: Clock = "response";
  let scale: ScaleKind = "log";
  const subject = place("subject-latency");
  const plot = new Plot(element, () => {
    if (subject) {
      const time = clock === "response" ? "Response time" : "Service time";
      subject.textContent = `${time} of ${operationLabel(operation)}`;
    }
    return latencyChart(charts, operation, clock, scale);
  });
  const controls = place("controls-latency");
  if (controls) {
    const operations = charts.operations.map((name) => ({ value: name, label: operationLabel(name) }));
    chooser(controls, "Operation", operations, operation, (value) => {
      operation = value;
      plot.draw();
    });
    const clocks: { value: Clock; label: string }[] = [
      { value: "response", label: "response time" },
      { value: "service", label: "service time" },
    ];
    chooser(controls, "Time", clocks, clock, (value) => {
      clock = value;
      plot.draw();
    });
    const scales: { value: ScaleKind; label: string }[] = [
      { value: "log", label: "logarithmic" },
      { value: "linear", label: "linear" },
    ];
    chooser(controls, "Scale", scales, scale, (value) => {
      scale = value;
      plot.draw();
    });
  }
  return plot;
}

function percentileCharts(charts: Charts): Plot[] {
  const plots: Plot[] = [];
  const distribution = place("plot-distribution");
  if (distribution) {
    plots.push(new Plot(distribution, () => distributionChart(charts)));
  }
  const comparison = place("plot-comparison");
  if (comparison) {
    let operation = charts.distributions[0]?.operation ?? "";
    const plot = new Plot(comparison, () => comparisonChart(charts, operation));
    plots.push(plot);
    const controls = place("controls-comparison");
    const operations = charts.distributions.map((entry) => ({
      value: entry.operation,
      label: operationLabel(entry.operation),
    }));
    if (controls) {
      chooser(controls, "Operation", operations, operation, (value) => {
        operation = value;
        plot.draw();
      });
    }
  }
  return plots;
}

/** On paper nothing can be opened, so everything is. */
function openDetailsForPrinting(): void {
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) {
      details.open = true;
    }
  });
}

const plots: Plot[] = [];
const densities: Density[] = [];
const scatters: Scatter[] = [];
setUpTheme(() => [...plots, ...densities, ...scatters].forEach((chart) => chart.draw()));
openDetailsForPrinting();
const data = readData();
if (data.time) {
  plots.push(...timeCharts(data.time), ...percentileCharts(data.time));
}
plots.push(...experimentPlots(data.plots));
scatters.push(...scatterCharts(data.scatters ?? []));
densities.push(...densityCharts(data.densities ?? []));
document.documentElement.dataset["charts"] = String(plots.length);
