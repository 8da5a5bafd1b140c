//! Text reports of fixed experiments as snapshots, and their pages, which the browser test of `web/` opens.

use crate::samples::experiment as support;
use crate::samples::tune;
use dyno_record::experiment::{Answer, Basis, Experiment, TuneGoal, Verb};
use dyno_record::statement::Statement;
use dyno_report::PageFormat;
use dyno_report::RenderOptions;
use dyno_report::ReportError;
use dyno_report::experiment::{csv, render};
use dyno_report::page::{Figure, NO_ANSWER, sentence};
use insta::assert_snapshot;
use std::path::Path;

fn text(experiment: &Experiment, format: PageFormat, width: usize) -> String {
    let options = RenderOptions { width, ..RenderOptions::default() };
    render(experiment, format, &options).unwrap()
}

fn human(experiment: &Experiment) -> String {
    text(experiment, PageFormat::Human, 150)
}

pub(crate) fn markdown_and_json(experiment: &Experiment) -> [String; 2] {
    [PageFormat::Markdown, PageFormat::Json].map(|format| text(experiment, format, 120))
}

fn page(experiment: &Experiment) -> String {
    text(experiment, PageFormat::Html, 0)
}

#[test]
fn trust_in_a_comparison_needs_several_runs_of_each() {
    let trust = |experiment: &Experiment| {
        let json: serde_json::Value =
            serde_json::from_str(&text(experiment, PageFormat::Json, 0)).unwrap();
        (json["trust"]["level"].clone(), json["trust"]["runs"].clone())
    };
    let mut experiment = support::ab();
    assert_eq!(trust(&experiment), ("high".into(), 6.into()));
    if let Some(Answer::Ab(answer)) = &mut experiment.answer {
        answer.comparisons[0].basis = Basis::WithinRun;
    }
    assert_eq!(trust(&experiment), ("fair".into(), 6.into()));
    experiment.answer = None;
    experiment.findings.clear();
    experiment.verb = Verb::Sweep;
    assert_eq!(trust(&experiment), (serde_json::Value::Null, serde_json::Value::Null));
}

/// The statements of all findings and of their evidence.
fn statements(experiment: &Experiment) -> Vec<&Statement> {
    experiment
        .findings
        .iter()
        .flat_map(|finding| std::iter::once(&finding.statement).chain(&finding.evidence))
        .collect()
}

/// A statement as shown in reports.
fn shown(statement: &Statement) -> String {
    sentence(&dyno_report::texts::text(statement))
}

/// A text without line breaks and without the escapes of Markdown.
fn flat(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('\\', "")
}

/// The document of a suite that ran on a `mongod`.
fn suite() -> Experiment {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/golden/experiments");
    let text = std::fs::read_to_string(folder.join("suite.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn recorded_suite_has_the_findings_of_its_answer() {
    let recorded = suite();
    let today = dyno_analyze::experiment::findings::findings(&recorded);
    assert_eq!(today, recorded.findings);
}

pub(crate) fn all() -> [(&'static str, Experiment); 14] {
    [
        ("clients", support::clients_sweep()),
        ("doubtful", support::doubtful_sweep()),
        ("rates", support::rates_sweep()),
        ("throttled", support::throttled_sweep()),
        ("blocks", support::blocks_sweep()),
        ("setting", support::setting_sweep()),
        ("versions", support::versions_sweep()),
        ("nothing", support::empty_sweep()),
        ("ab", support::ab()),
        ("xmax", support::highest_rate(false)),
        ("client", support::highest_rate(true)),
        ("slo", support::objective()),
        ("suite", suite()),
        ("tune-across", tune::good_for_all()),
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

#[test]
fn terminal_report_of_a_sweep_over_clients() {
    assert_snapshot!(human(&support::clients_sweep()));
}

#[test]
fn terminal_report_of_a_sweep_with_many_faults() {
    assert_snapshot!(human(&support::doubtful_sweep()));
}

#[test]
fn terminal_report_of_a_sweep_over_rates() {
    assert_snapshot!(human(&support::rates_sweep()));
}

#[test]
fn rate_sweep_shows_both_sides_of_the_response_time_law() {
    let experiment = support::throttled_sweep();
    let shown = human(&experiment);
    assert!(shown.contains("R = N/X − Z"), "{shown}");
    assert!(shown.contains("think time"), "{shown}");
    let html = page(&experiment);
    let plot = html.split("id=\"plot-response-time-law\"").nth(1).unwrap();
    for series in ["N / X − Z", "measured"] {
        assert!(plot.contains(series), "{series}");
    }
    // An open loop has no clients that wait.
    assert!(!page(&support::rates_sweep()).contains("plot-response-time-law"));
}

#[test]
fn terminal_report_of_a_sweep_over_clients_and_rates() {
    assert_snapshot!(human(&support::blocks_sweep()));
}

#[test]
fn a_sweep_over_clients_and_rates_has_the_charts_of_both() {
    let html = page(&support::blocks_sweep());
    for plot in [
        "plot-rate-over-clients",
        "plot-response-over-clients",
        "plot-response-over-rate",
        "plot-achieved-over-rate",
    ] {
        assert_eq!(html.matches(&format!("id=\"{plot}\"")).count(), 1, "{plot}");
    }
    // The highest rate of the closed loop on the axis of offered rates.
    assert!(html.contains("X_max 18,900/s"));
}

#[test]
fn terminal_report_of_a_sweep_relative_to_a_base() {
    assert_snapshot!(human(&support::versions_sweep()));
}

#[test]
fn a_sweep_relative_to_a_base_has_it_in_every_form() {
    let experiment = support::versions_sweep();
    let text = text(&experiment, PageFormat::Markdown, 0);
    assert!(text.contains("| mongod 6.0.27 |"), "{text}");
    let html = page(&experiment).replace("&#x2f;", "/");
    for part in ["rate / base", "server CPU / base", "explained by"] {
        assert!(text.contains(part) && html.contains(part), "{part}");
    }
    assert!(html.contains("base: rate"));
    let json = self::text(&experiment, PageFormat::Json, 0);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rows = json["answer"]["relative"]["levels"].as_array().unwrap();
    let names: Vec<&str> =
        rows.iter().filter_map(|row| row["explanation"]["demand"]["name"].as_str()).collect();
    assert_eq!((rows.len(), names), (2, vec!["server CPU"]));
}

#[test]
fn terminal_report_of_a_comparison() {
    assert_snapshot!(human(&support::ab()));
}

#[test]
fn terminal_report_of_a_search_for_the_highest_rate() {
    assert_snapshot!(human(&support::highest_rate(false)));
}

#[test]
fn a_maximum_of_the_client_is_never_called_x_max() {
    let experiment = support::highest_rate(true);
    let mut said = statements(&experiment);
    assert!(said.iter().all(|one| one.code != "x-max"), "{said:?}");
    said.retain(|one| one.code == "client-maximum");
    let said = shown(said[0]);
    for format in [PageFormat::Human, PageFormat::Markdown] {
        let text = flat(&text(&experiment, format, 120));
        assert!(text.contains(&flat(&said)), "{said}: {text}");
        assert!(!text.contains("X_max is 18"), "{text}");
    }
}

#[test]
fn terminal_report_of_a_search_for_an_objective() {
    assert_snapshot!(human(&support::objective()));
}

#[test]
fn terminal_report_of_a_search_for_two_workloads() {
    assert_snapshot!(human(&tune::good_for_all()));
}

#[test]
fn settings_good_for_one_workload_are_marked_in_every_form() {
    let experiment = tune::good_for_none();
    // Settings that are good for all have a command for both workloads.
    let for_both = "dyno run a c ";
    assert!(text(&tune::good_for_all(), PageFormat::Human, 150).contains(for_both));
    for format in [PageFormat::Human, PageFormat::Markdown, PageFormat::Html] {
        let text = text(&experiment, format, 150);
        for part in ["worse", "better", "harm", "it hangs"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains(for_both), "{text}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&text(&experiment, PageFormat::Json, 0)).unwrap();
    assert_eq!(json["answer"]["dependence"], "depends");
    assert_eq!(json["answer"]["winners"][0]["on"][1]["problem"], "it hangs");
}

#[test]
fn goal_that_should_fall_is_named_and_marked_as_such() {
    let goals = [(TuneGoal::P99, "p99 response"), (TuneGoal::Cpu, "server CPU per operation")];
    for (goal, name) in goals {
        let experiment = tune::good_for_all_by(goal);
        let text = text(&experiment, PageFormat::Markdown, 0);
        for part in [name, "Less is", ", better", ", worse"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let mut said = statements(&experiment);
        said.retain(|one| one.values.contains_key("goal"));
        assert!(said.iter().all(|one| one.text("goal") == Some(goal.as_str())));
        for (code, workload, ratio) in
            [("tune-good-for-all", None, 0.80), ("tune-on-workload", Some("c"), 0.77)]
        {
            let is_it = |one: &&&Statement| one.code == code && one.text("workload") == workload;
            let one = said.iter().find(is_it).unwrap();
            assert!((one.number("ratio").unwrap() - ratio).abs() < 0.02, "{one}");
            assert!(text.contains(&shown(one)), "{one}: {text}");
        }
    }
    let rate = text(&tune::good_for_all(), PageFormat::Html, 0);
    assert!(!rate.contains("Less is"));
    let cpu = text(&tune::confirmed(TuneGoal::Cpu), PageFormat::Html, 0);
    assert!(cpu.contains("proven only"), "{cpu}");
}

#[test]
fn settings_that_a_workload_already_has_need_no_pairs() {
    let experiment = tune::as_before();
    let mut said = statements(&experiment);
    said.retain(|one| one.code == "tune-on-workload" && !one.values.contains_key("pairs"));
    let text = text(&experiment, PageFormat::Markdown, 0);
    assert_eq!(said[0].text("workload"), Some("a"));
    assert!(text.contains(&shown(said[0])), "{text}");
    assert!(!text.contains("0 pairs"), "{text}");
}

#[test]
fn search_runs_that_were_set_aside_are_reported_and_marked() {
    let experiment = tune::disturbed();
    let text = text(&experiment, PageFormat::Markdown, 0);
    let expected =
        "tune-of-workload (said: tune-set-aside (all: 2, first: 1, pairs: 1), workload: a)";
    let found = experiment.findings.iter().find(|one| one.statement.to_string() == expected);
    let found = found.unwrap();
    assert_eq!(found.evidence[0].code, "stolen-in-a-run");
    assert!(text.contains(&shown(&found.statement)), "{text}");
    assert!(text.contains(&shown(&found.evidence[0])), "{text}");
    assert!(text.contains("1 pair set"), "{text}");
    let mut runs = text.lines().filter(|line| line.contains("-run"));
    let second = runs.find(|line| line.contains("002-run")).unwrap();
    assert!(second.contains("set aside"), "{second}");
    assert!(!runs.any(|line| line.contains("set aside")), "{text}");
}

#[test]
fn search_runs_that_ended_early_are_marked_in_every_form() {
    let experiment = tune::ended_early();
    for format in [PageFormat::Human, PageFormat::Markdown, PageFormat::Html] {
        let text = text(&experiment, format, 200);
        for part in [
            "ended after 3.0 s as certainly",
            "ended after 1.0 s",
            "ended before",
            // Its pair was repeated.
            "ended after 2.0 s",
        ] {
            assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
        }
        for harm in ["1.0 s as certainly", "2.0 s as certainly"] {
            assert!(!text.contains(harm), "{text}");
        }
    }
}

#[test]
fn search_charts_show_trials_and_confirmations() {
    let html = page(&tune::good_for_all());
    for workload in ["a", "c"] {
        let id = format!("id=\"plot-tune-search-{workload}\"");
        assert_eq!(html.matches(&id).count(), 1, "{id}");
    }
    assert!(html.contains("confirmed, divided"));
}

#[test]
fn terminal_report_of_a_suite() {
    assert_snapshot!(human(&suite()));
}

#[test]
fn markdown_report_of_a_suite() {
    assert_snapshot!(text(&suite(), PageFormat::Markdown, 0));
}

#[test]
fn table_of_a_suite_for_a_spreadsheet() {
    assert_snapshot!(csv(&suite()).unwrap());
    let none = csv(&support::clients_sweep()).unwrap_err();
    assert!(matches!(none, ReportError::NoTable), "{none}");
}

#[test]
fn markdown_report_of_a_sweep_over_clients() {
    let text = text(&support::clients_sweep(), PageFormat::Markdown, 0);
    assert_snapshot!(text);
}

#[test]
fn an_experiment_without_an_answer_says_so_in_every_form() {
    let experiment = support::empty_sweep();
    for format in [PageFormat::Human, PageFormat::Markdown, PageFormat::Html] {
        let text = text(&experiment, format, 100);
        assert!(text.contains(NO_ANSWER), "{format:?}");
        assert!(text.contains("the server did not start"), "{format:?}");
        assert!(text.contains("not run"), "{format:?}");
    }
}

#[test]
fn a_narrow_terminal_gets_no_line_that_is_too_long() {
    for (name, experiment) in all() {
        for width in [80, 120] {
            let text = text(&experiment, PageFormat::Human, width);
            let long = text.lines().find(|line| line.chars().count() > width);
            assert_eq!(long, None, "{name} at {width}");
        }
    }
}

/// Headline numbers with neither an interval nor a reason why there is none, and the number of all values.
fn without_a_word(experiment: &Experiment) -> (usize, Vec<String>) {
    let page = dyno_report::experiment::page(experiment);
    let is_number = |figure: &&Figure| {
        figure.value.to_string().contains(|letter: char| letter.is_ascii_digit())
    };
    let numbers: Vec<&Figure> = page.headline.iter().filter(is_number).collect();
    let lines = numbers.iter().map(|figure| {
        let note = figure.note.as_deref().unwrap_or_default();
        format!("{} {note}", figure.label)
    });
    let is_silent = |line: &String| !line.contains("95 %") && !line.contains("no interval");
    (numbers.len(), lines.filter(is_silent).collect())
}

/// Removes the interval of every figure, and the boundary of a search.
fn strip(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Array(all) => all.iter_mut().for_each(strip),
        serde_json::Value::Object(fields) => {
            if fields.contains_key("value") && !fields.contains_key("confidence_ratio") {
                fields.remove("low");
                fields.remove("high");
            }
            fields.remove("boundary");
            // A fit without intervals is omitted.
            let others = fields.iter_mut().filter(|(name, _)| *name != "usl");
            others.for_each(|(_, field)| strip(field));
        }
        _ => {}
    }
}

#[test]
fn headline_numbers_have_an_interval_or_a_reason() {
    for (name, experiment) in all() {
        let (count, silent) = without_a_word(&experiment);
        assert!(silent.is_empty(), "{name}: {silent:?}");
        assert!(count >= 3 || name == "nothing", "{name}: {count}");
        let mut bare = serde_json::to_value(&experiment).unwrap();
        strip(&mut bare);
        let bare: Experiment = serde_json::from_value(bare).unwrap();
        let (of_bare, silent) = without_a_word(&bare);
        assert!(silent.is_empty(), "{name} without intervals: {silent:?}");
        assert_eq!(of_bare > 0, count > 0, "{name}");
    }
}

#[test]
fn the_json_is_the_document() {
    let experiment = support::clients_sweep();
    let text = text(&experiment, PageFormat::Json, 0);
    let back: Experiment = serde_json::from_str(&text).unwrap();
    assert_eq!(back.findings, experiment.findings);
    assert!(matches!(back.answer, Some(Answer::Sweep(_))));
    assert!(text.ends_with("}\n"));
}

#[test]
fn a_page_refers_to_nothing_but_itself_and_the_runs_beside_it() {
    let html = page(&support::clients_sweep());
    let markup = html[..html.find("<script").unwrap()].replace("&#x2f;", "/");
    let references: Vec<&str> =
        markup.split("href=\"").skip(1).map(|rest| &rest[..rest.find('"').unwrap()]).collect();
    assert!(references.contains(&"runs/004-8/report.html"), "{references:?}");
    for reference in references {
        let is_own = reference.starts_with('#') || reference.starts_with("runs/");
        assert!(is_own, "{reference}");
    }
    for forbidden in ["<link", "<img", "<iframe", "src=", "@import"] {
        assert!(!markup.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn no_text_of_an_experiment_can_break_out_of_the_page() {
    const HOSTILE: &str = "</script><script>alert(1)</script><!--<b>\"'&amp;{{ 7 * 7 }}";
    let spoil = |text: &str| {
        let mut experiment = support::setting_sweep();
        experiment.name = text.into();
        experiment.question = text.into();
        experiment.started_at = text.into();
        experiment.status_reason = Some(text.into());
        experiment.axes[0].key = text.into();
        experiment.findings[0].statement = Statement::recorded(text);
        experiment.findings[0].evidence = vec![Statement::recorded(text)];
        experiment.caveats = vec![dyno_record::model::Caveat {
            kind: dyno_record::model::CaveatKind::Errors,
            statement: Statement::recorded(text).with("hint", text),
            phase: None,
        }];
        for point in &mut experiment.points {
            point.directory = format!("runs/{text}");
            point.settings = [(text.to_owned(), text.to_owned())].into();
        }
        if let Some(Answer::Sweep(answer)) = &mut experiment.answer {
            for level in &mut answer.levels {
                level.settings = [(text.to_owned(), text.to_owned())].into();
            }
        }
        page(&experiment)
    };
    let (harmless, hostile) = (spoil("plain"), spoil(HOSTILE));
    for tag in ["<script", "</script", "<!--", "<b>", "<title", "<td", "alert(1)</s"] {
        let count = |html: &str| html.matches(tag).count();
        assert_eq!(count(&hostile), count(&harmless), "{tag}");
    }
    assert!(!hostile.contains("href=\"runs/<"));
}
