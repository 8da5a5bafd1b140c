//! Text reports of two fixed runs as snapshots.

use dyno_plan::ycsb::{Exporter, MeasurementInterval, MeasurementType, YcsbClientOptions};
use dyno_record::model::{PhaseKind, RunStatus};
use dyno_record::reader::Run;
use dyno_report::ycsb::YcsbOptions;
use dyno_report::{Format, RenderOptions, ReportError, render};
use insta::assert_snapshot;

fn human(run: &Run, width: usize) -> String {
    let options = RenderOptions { width, ..RenderOptions::default() };
    render(run, None, Format::Human, &options).unwrap()
}

fn ycsb(run: &Run, options: YcsbOptions) -> Result<String, ReportError> {
    let options = RenderOptions { ycsb: options, ..RenderOptions::default() };
    render(run, None, Format::Ycsb, &options)
}

fn of_client(client: YcsbClientOptions) -> YcsbOptions {
    YcsbOptions { phase: None, client }
}

#[test]
fn terminal_report_of_a_closed_loop() {
    assert_snapshot!(human(&crate::support::closed_run(), 140));
}

#[test]
fn terminal_report_of_an_open_loop_with_caveats() {
    assert_snapshot!(human(&crate::support::open_run(), 80));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [60, 80, 100, 160] {
        for run in [crate::support::closed_run(), crate::support::open_run()] {
            for line in human(&run, width).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn colours_change_no_text() {
    let run = crate::support::open_run();
    let options = RenderOptions { colours: true, width: 80, ..RenderOptions::default() };
    let text = render(&run, None, Format::Human, &options).unwrap();
    let coloured = dyno_record::visible::coloured(&text);
    assert!(coloured.contains("\u{1b}[31m30\u{1b}[0m"), "errors are red");
    let mut plain = String::new();
    for (index, part) in coloured.split('\u{1b}').enumerate() {
        let text = if index == 0 { part } else { part.split_once('m').unwrap().1 };
        plain.push_str(text);
    }
    assert_eq!(plain, human(&run, 80));
}

#[test]
fn markdown_report_of_an_open_loop_with_caveats() {
    let text =
        render(&crate::support::open_run(), None, Format::Markdown, &RenderOptions::default());
    assert_snapshot!(text.unwrap());
}

#[test]
fn ycsb_output_of_a_closed_loop() {
    let text = ycsb(&crate::support::closed_run(), YcsbOptions::default());
    assert_snapshot!(text.unwrap(), @r#"
    [OVERALL], RunTime(ms), 12000
    [OVERALL], Throughput(ops/sec), 6200.0
    [TOTAL_GCs], Count, 0
    [TOTAL_GC_TIME], Time(ms), 0
    [TOTAL_GC_TIME_%], Time(%), 0.0
    [READ], Operations, 37248
    [READ], AverageLatency(us), 215.50834944158078
    [READ], MinLatency(us), 138
    [READ], MaxLatency(us), 9224
    [READ], 50thPercentileLatency(us), 193
    [READ], 95thPercentileLatency(us), 273
    [READ], 99thPercentileLatency(us), 631
    [READ], Return=OK, 37248
    [UPDATE], Operations, 37152
    [UPDATE], AverageLatency(us), 273.9847114556417
    [UPDATE], MinLatency(us), 176
    [UPDATE], MaxLatency(us), 11788
    [UPDATE], 50thPercentileLatency(us), 248
    [UPDATE], 95thPercentileLatency(us), 348
    [UPDATE], 99thPercentileLatency(us), 773
    [UPDATE], Return=OK, 37152
    "#);
}

#[test]
fn ycsb_output_of_a_run_that_failed_has_the_lines_of_ycsb_alone() {
    let mut run = crate::support::closed_run();
    let complete = ycsb(&run, YcsbOptions::default()).unwrap();
    run.document.status = RunStatus::Failed;
    run.document.status_reason = Some("server 1 ended".into());
    let failed = ycsb(&run, YcsbOptions::default()).unwrap();
    assert_eq!(failed, complete);
    let mark = dyno_report::incomplete(&run.document);
    assert_eq!(mark, "INCOMPLETE: server 1 ended\n");
}

#[test]
fn ycsb_output_with_both_intervals_and_failures() {
    let options = YcsbClientOptions {
        measurement_interval: MeasurementInterval::Both,
        percentiles: vec![50.0, 99.9],
        ..YcsbClientOptions::default()
    };
    let text = ycsb(&crate::support::open_run(), of_client(options));
    assert_snapshot!(text.unwrap(), @r#"
    [OVERALL], RunTime(ms), 30000
    [OVERALL], Throughput(ops/sec), 988.1
    [TOTAL_GCs], Count, 0
    [TOTAL_GC_TIME], Time(ms), 0
    [TOTAL_GC_TIME_%], Time(%), 0.0
    [READ], Operations, 14973
    [READ], AverageLatency(us), 498.47104788619515
    [READ], MinLatency(us), 161
    [READ], MaxLatency(us), 990380
    [READ], 50thPercentileLatency(us), 230
    [READ], 99.9PercentileLatency(us), 7811
    [READ], Return=OK, 14973
    [READ], Return=ERROR, 18
    [Intended-READ], Operations, 14973
    [Intended-READ], AverageLatency(us), 40175.25131904094
    [Intended-READ], MinLatency(us), 165
    [Intended-READ], MaxLatency(us), 990904
    [Intended-READ], 50thPercentileLatency(us), 235
    [Intended-READ], 99.9PercentileLatency(us), 990380
    [READ-FAILED], Operations, 18
    [UPDATE], Operations, 14670
    [UPDATE], AverageLatency(us), 308.9979550102249
    [UPDATE], MinLatency(us), 200
    [UPDATE], MaxLatency(us), 13320
    [UPDATE], 50thPercentileLatency(us), 279
    [UPDATE], 99.9PercentileLatency(us), 5906
    [UPDATE], Return=OK, 14670
    [UPDATE], Return=ERROR, 12
    [Intended-UPDATE], Operations, 14670
    [Intended-UPDATE], AverageLatency(us), 315.5355146557601
    [Intended-UPDATE], MinLatency(us), 200
    [Intended-UPDATE], MaxLatency(us), 13647
    [Intended-UPDATE], 50thPercentileLatency(us), 285
    [Intended-UPDATE], 99.9PercentileLatency(us), 6053
    [UPDATE-FAILED], Operations, 12
    "#);
}

/// Six reads with known latencies and two failures.
fn small_run() -> Run {
    let windows = [
        crate::support::window(PhaseKind::Measure, 0, 0)
            .operation("read", &[(500, 2), (1_500, 1)])
            .failures("read", "not_found", 2),
        crate::support::window(PhaseKind::Measure, 1, 1).operation("read", &[(2_500, 3)]),
        crate::support::window(PhaseKind::Measure, 2, 2)
            .operation("read_modify_write", &[(12_000_000, 1)]),
    ];
    crate::support::run(crate::support::closed_document(), &windows)
}

#[test]
fn ycsb_histogram_has_buckets_of_a_millisecond() {
    let options = YcsbClientOptions {
        measurement_type: MeasurementType::HdrHistogramAndHistogram,
        histogram_buckets: 3,
        histogram_verbose: true,
        ..YcsbClientOptions::default()
    };
    assert_snapshot!(ycsb(&small_run(), of_client(options)).unwrap(), @r#"
    [OVERALL], RunTime(ms), 3000
    [OVERALL], Throughput(ops/sec), 2.3333333333333335
    [TOTAL_GCs], Count, 0
    [TOTAL_GC_TIME], Time(ms), 0
    [TOTAL_GC_TIME_%], Time(%), 0.0
    [HdrREAD], Operations, 6
    [HdrREAD], AverageLatency(us), 1666.6666666666667
    [HdrREAD], MinLatency(us), 499
    [HdrREAD], MaxLatency(us), 2500
    [HdrREAD], 50thPercentileLatency(us), 1500
    [HdrREAD], 95thPercentileLatency(us), 2500
    [HdrREAD], 99thPercentileLatency(us), 2500
    [HdrREAD], Return=OK, 6
    [HdrREAD], Return=NOT_FOUND, 2
    [HdrREAD], 500, 2.0
    [HdrREAD], 1500, 1.0
    [HdrREAD], 2500, 3.0
    [BucketREAD], Operations, 6
    [BucketREAD], AverageLatency(us), 1666.6666666666667
    [BucketREAD], LatencyVariance(us), 807227.0939032217
    [BucketREAD], MinLatency(us), 499
    [BucketREAD], MaxLatency(us), 2500
    [BucketREAD], 95thPercentileLatency(us), 2000
    [BucketREAD], 99thPercentileLatency(us), 2000
    [BucketREAD], 0, 2
    [BucketREAD], 1, 1
    [BucketREAD], 2, 3
    [BucketREAD], >3, 0
    [READ-FAILED], Operations, 2
    [HdrREAD-MODIFY-WRITE], Operations, 1
    [HdrREAD-MODIFY-WRITE], AverageLatency(us), 1.2E7
    [HdrREAD-MODIFY-WRITE], MinLatency(us), 11995709
    [HdrREAD-MODIFY-WRITE], MaxLatency(us), 12004098
    [HdrREAD-MODIFY-WRITE], 50thPercentileLatency(us), 12004098
    [HdrREAD-MODIFY-WRITE], 95thPercentileLatency(us), 12004098
    [HdrREAD-MODIFY-WRITE], 99thPercentileLatency(us), 12004098
    [HdrREAD-MODIFY-WRITE], Return=OK, 1
    [HdrREAD-MODIFY-WRITE], 12004098, 1.0
    [BucketREAD-MODIFY-WRITE], Operations, 1
    [BucketREAD-MODIFY-WRITE], AverageLatency(us), 1.2E7
    [BucketREAD-MODIFY-WRITE], LatencyVariance(us), 9.836992198921875E10
    [BucketREAD-MODIFY-WRITE], MinLatency(us), 11995709
    [BucketREAD-MODIFY-WRITE], MaxLatency(us), 12004098
    [BucketREAD-MODIFY-WRITE], 0, 0
    [BucketREAD-MODIFY-WRITE], 1, 0
    [BucketREAD-MODIFY-WRITE], 2, 0
    [BucketREAD-MODIFY-WRITE], >3, 1
    "#);
}

#[test]
fn ycsb_time_series_has_the_mean_of_each_step() {
    let options = YcsbClientOptions {
        measurement_type: MeasurementType::TimeSeries,
        ..YcsbClientOptions::default()
    };
    assert_snapshot!(ycsb(&small_run(), of_client(options)).unwrap(), @r#"
    [OVERALL], RunTime(ms), 3000
    [OVERALL], Throughput(ops/sec), 2.3333333333333335
    [TOTAL_GCs], Count, 0
    [TOTAL_GC_TIME], Time(ms), 0
    [TOTAL_GC_TIME_%], Time(%), 0.0
    [READ], Operations, 6
    [READ], AverageLatency(us), 1666.6666666666667
    [READ], MinLatency(us), 499
    [READ], MaxLatency(us), 2500
    [READ], Return=OK, 6
    [READ], Return=NOT_FOUND, 2
    [READ], 0, 833.3333333333334
    [READ], 1000, 2500.0
    [READ-FAILED], Operations, 2
    [READ-MODIFY-WRITE], Operations, 1
    [READ-MODIFY-WRITE], AverageLatency(us), 1.2E7
    [READ-MODIFY-WRITE], MinLatency(us), 11995709
    [READ-MODIFY-WRITE], MaxLatency(us), 12004098
    [READ-MODIFY-WRITE], Return=OK, 1
    [READ-MODIFY-WRITE], 0, 1.2E7
    "#);
}

#[test]
fn ycsb_json_array_is_one_document_with_the_same_values() {
    let text = ycsb(&small_run(), YcsbOptions::default()).unwrap();
    let json = |exporter| {
        let options = YcsbClientOptions { exporter, ..YcsbClientOptions::default() };
        ycsb(&small_run(), of_client(options)).unwrap()
    };
    let array: Vec<serde_json::Value> = serde_json::from_str(&json(Exporter::JsonArray)).unwrap();
    let lines: Vec<serde_json::Value> =
        json(Exporter::Json).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(array, lines);
    assert_eq!(array.len(), text.lines().count());
    let first = &array[0];
    assert_eq!(first["metric"], "OVERALL");
    assert_eq!(first["measurement"], "RunTime(ms)");
    assert_eq!(first["value"], 3_000);
}

#[test]
fn a_load_phase_counts_documents() {
    let options = YcsbOptions { phase: Some(PhaseKind::Load), ..YcsbOptions::default() };
    let mut run = crate::support::closed_run();
    run.document.phases[0].operations.get_mut("insert").unwrap().documents = 99_000;
    let text = ycsb(&run, options).unwrap();
    assert!(text.contains("[OVERALL], Throughput(ops/sec), 33000.0\n"), "{text}");
    assert!(text.contains("[INSERT], Operations, 99000\n"), "{text}");
    assert!(text.contains("[INSERT], Return=OK, 99000\n"), "{text}");
}

#[test]
fn values_that_were_checked_have_a_block() {
    let mut document = crate::support::closed_document();
    document.plan["data"]["integrity"] = true.into();
    let window = crate::support::window(PhaseKind::Measure, 0, 0)
        .operation("read", &[(100, 20)])
        .failures("read", "integrity", 2);
    let text = ycsb(&crate::support::run(document, &[window]), YcsbOptions::default()).unwrap();
    assert!(text.contains("[VERIFY], Return=OK, 20\n[VERIFY], Return=UNEXPECTED_STATE, 2\n"));
}

#[test]
fn ycsb_output_is_refused_when_the_run_lacks_the_data() {
    let run = small_run();
    let with = |change: fn(&mut YcsbOptions)| {
        let mut options = YcsbOptions::default();
        change(&mut options);
        ycsb(&run, options).unwrap_err()
    };
    let sub_second = with(|options| {
        options.client.measurement_type = MeasurementType::TimeSeries;
        options.client.timeseries_granularity_ms = 100;
    });
    assert!(matches!(
        sub_second,
        ReportError::GranularityTooFine { granularity_ms: 100, window_ms: 1_000 }
    ));
    let load = with(|options| options.phase = Some(PhaseKind::Load));
    assert!(matches!(load, ReportError::NoSuchPhase { phase: PhaseKind::Load }));
    let percentile = with(|options| options.client.percentiles = vec![50.0, 101.0]);
    assert!(matches!(percentile, ReportError::Percentile { percentile: 101.0 }));
    let empty = crate::support::run(crate::support::closed_document(), &[]);
    let none = ycsb(&empty, YcsbOptions::default()).unwrap_err();
    assert!(matches!(none, ReportError::NoPhase));
}
