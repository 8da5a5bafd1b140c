//! What the text renderers say about fixed experiments, word for word, and their pages, which the browser test
//! of `web/` opens.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that cannot do its work has to fail the test"
)]

#[path = "support/experiment.rs"]
mod support;

use dyno_analyze::experiment::{Answer, Experiment};
use dyno_report::RenderOptions;
use dyno_report::experiment::{ExperimentFormat, render};
use std::path::Path;

fn text(experiment: &Experiment, format: ExperimentFormat, width: usize) -> String {
    let options = RenderOptions {
        width,
        ..RenderOptions::default()
    };
    render(experiment, format, &options).unwrap()
}

fn human(experiment: &Experiment) -> String {
    text(experiment, ExperimentFormat::Human, 150)
}

fn page(experiment: &Experiment) -> String {
    text(experiment, ExperimentFormat::Html, 0)
}

fn all() -> [(&'static str, Experiment); 5] {
    [
        ("clients", support::clients_sweep()),
        ("doubtful", support::doubtful_sweep()),
        ("rates", support::rates_sweep()),
        ("setting", support::setting_sweep()),
        ("nothing", support::empty_sweep()),
    ]
}

#[test]
fn pages_are_written_for_the_browser_test() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, experiment) in all() {
        let html = page(&experiment);
        assert!(html.ends_with("</html>\n"), "{name}");
        assert!(html.len() < 300_000, "{name}: {} bytes", html.len());
        std::fs::write(folder.join(format!("experiment-{name}.html")), html).unwrap();
    }
}
