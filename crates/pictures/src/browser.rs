//! Runs the script of the page, and returns the output of its canvases.

use crate::error::PictureError;
use crate::raster::png_of_pixels;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dyno_report::bundle::{HEADLESS, SCRIPT, STYLES, chart_data};
use dyno_report::page::{Chart, Page};
use rquickjs::{CatchResultExt, Context, Ctx, Function, Object, Runtime, TypedArray};
use serde::Serialize;

/// Memory limit of the script: a page has at most four million messages of eight bytes each.
const MOST_MEMORY: usize = 1 << 30;

/// An element of the page that a chart draws into; see `web/src/headless.ts`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Figure<'a> {
    id: String,
    subject: Option<String>,
    title: &'a str,
    is_low: bool,
    panels: Vec<&'a str>,
}

impl<'a> Figure<'a> {
    /// The element of a chart that the script draws, with the names of `templates/parts.html`.
    fn of(chart: &'a Chart) -> Option<Figure<'a>> {
        let plain = |id: &str, title: &'a str, panels: Vec<&'a str>| Figure {
            id: id.to_owned(),
            subject: None,
            title,
            is_low: false,
            panels,
        };
        match chart {
            Chart::Time(chart) => Some(Figure {
                subject: Some(format!("subject-{}", chart.id)),
                is_low: chart.is_low,
                ..plain(&format!("plot-{}", chart.id), &chart.title, Vec::new())
            }),
            Chart::Plot(chart) => Some(plain(&chart.id, &chart.title, Vec::new())),
            Chart::Density(chart) => {
                let panels = chart.panels.iter().map(|panel| panel.label.as_str());
                Some(plain(&chart.id, &chart.title, panels.collect()))
            }
            Chart::Scatter(chart) => {
                let panels = chart.panels.iter().map(|panel| panel.label.as_str());
                Some(plain(&chart.id, &chart.title, panels.collect()))
            }
            Chart::Rows(_) => None,
        }
    }
}

/// Input of the script.
#[derive(Serialize)]
struct Input<'a> {
    figures: Vec<Figure<'a>>,
    data: String,
    css: &'a str,
}

/// The charts that the script draws, as SVG documents in page order.
pub(crate) fn draw(page: &Page) -> Result<Vec<String>, PictureError> {
    let figures: Vec<Figure<'_>> = page.charts().filter_map(Figure::of).collect();
    if figures.is_empty() {
        return Ok(Vec::new());
    }
    let input = Input { figures, data: chart_data(page)?, css: STYLES };
    let input = serde_json::to_string(&input)?;
    let failed = |error: rquickjs::Error| PictureError::Script(error.to_string());
    let runtime = Runtime::new().map_err(failed)?;
    runtime.set_memory_limit(MOST_MEMORY);
    let context = Context::full(&runtime).map_err(failed)?;
    context.with(|ctx| {
        let drawn = drawn(&ctx, &input).catch(&ctx);
        drawn.map_err(|error| PictureError::Script(error.to_string()))
    })
}

fn drawn(ctx: &Ctx<'_>, input: &str) -> rquickjs::Result<Vec<String>> {
    ctx.globals().set("encodePng", Function::new(ctx.clone(), encode_png)?)?;
    ctx.eval::<(), _>(HEADLESS)?;
    let headless: Object<'_> = ctx.globals().get("headless")?;
    let prepare: Function<'_> = headless.get("prepare")?;
    prepare.call::<_, ()>((ctx.json_parse(input)?,))?;
    ctx.eval::<(), _>(SCRIPT)?;
    // uPlot draws in a separate job.
    while ctx.execute_pending_job() {}
    let pictures: Function<'_> = headless.get("pictures")?;
    pictures.call(())
}

/// An image file in base64; empty for an invalid image, which draws nothing.
#[allow(
    clippy::needless_pass_by_value,
    reason = "arguments of a function of the script are values"
)]
fn encode_png(pixels: TypedArray<'_, u8>, width: u32, height: u32) -> String {
    // SAFETY: the bytes are copied at once, and no script runs in between.
    let bytes = unsafe { pixels.as_bytes() }.map(<[u8]>::to_vec);
    let file = png_of_pixels(bytes.unwrap_or_default(), width, height);
    STANDARD.encode(file.unwrap_or_default())
}
