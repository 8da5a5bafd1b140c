//! What the text renderers say about two fixed runs, word for word.

use dyno_record::model::{PhaseKind, RunStatus};
use dyno_record::reader::Run;
use dyno_report::ycsb::{Exporter, MeasurementInterval, MeasurementType, YcsbOptions};
use dyno_report::{Format, RenderOptions, ReportError, render};
use insta::assert_snapshot;

fn human(run: &Run, width: usize) -> String {
    let options = RenderOptions {
        width,
        ..RenderOptions::default()
    };
    render(run, None, Format::Human, &options).unwrap()
}

fn ycsb(run: &Run, options: YcsbOptions) -> Result<String, ReportError> {
    let options = RenderOptions {
        ycsb: options,
        ..RenderOptions::default()
    };
    render(run, None, Format::Ycsb, &options)
}

#[test]
fn terminal_report_of_a_closed_loop() {
    assert_snapshot!(human(&crate::support::closed_run(), 140), @r#"
    Workload a
    Session store: half reads, half updates of recent actions.
    complete; secantusd-rs 0.5.3 (embedded), started 2026-08-22T10:15:00Z, measured by dyno 0.1.0

    Workload
      Mix               50 % read, 50 % update
      Data              100,000 documents of 10 fields, 100 bytes each, keys hashed
      Key distribution  scrambled zipfian
      Load              closed loop, 32 connections on 1 thread, backend wire
      Seed              42

    Server
      Server                        secantusd-rs 0.5.3 (embedded)
      Address                       127.0.0.1:27018 (on the client's machine)
      Storage engine                wiredTiger
      Topology                      standalone
      Write concern                 w: 1
      Read concern                  server default
      Cache                         256 MiB
      Documents before measuring    100,000
      Data, uncompressed            105 MiB
      Data, on disk                 115 MiB
      Data as a share of the cache  41.0 %
      block_compressor              snappy

    Machine
      Host                    bench-1
      CPU                     2 × AMD EPYC 7763
      CPU governor            unknown
      NUMA nodes              1
      Memory                  8.00 GiB
      Swap                    0 B
      Transparent huge pages  madvise
      Clock                   tsc, 22.4 ns per reading
      Load average before     0.08
      Virtualization          kvm
      System                  Debian GNU/Linux 12 (bookworm)
      Kernel                  Linux 6.1.0-25-amd64
      Data folder             /srv/data
      File system             ext4 (rw,relatime)
      Device                  vda, not rotational
      Readahead               128 KiB
      I/O scheduler           none
      Free space before       40.0 GiB

    Phase load: inserts the data set
      3.0 s at 330.0/s

      operation  count     rate  errors  time            mean      min      p50      p90      p95      p99    p99.9   p99.99      max
      insert       990  330.0/s       0  response     4.84 ms  3.27 ms  4.57 ms  5.53 ms  6.05 ms  12.0 ms  66.8 ms  66.8 ms  66.8 ms
                                         service      4.84 ms  3.27 ms  4.57 ms  5.53 ms  6.05 ms  12.0 ms  66.8 ms  66.8 ms  66.8 ms
                                         start delay     0 µs     0 µs     0 µs     0 µs     0 µs     0 µs     0 µs     0 µs     0 µs

      Client CPU            1.30 ms per operation, 0.4 s user + 0.9 s system, 43.0 % of one core
      Client memory         18.0 MiB at most
      In flight             1.60 on average, Little ratio 1.000
      Connections replaced  0

    Phase warmup: same load before measuring, not part of the result
      2.0 s at 5,600/s

      operation  count     rate  errors  time           mean     min     p50     p90     p95     p99    p99.9   p99.99      max
      read       5,600  2,800/s       0  response     225 µs  146 µs  204 µs  248 µs  286 µs  619 µs  3.11 ms  9.71 ms  9.71 ms
                                         service      225 µs  146 µs  204 µs  248 µs  286 µs  619 µs  3.11 ms  9.71 ms  9.71 ms
                                         start delay    0 µs    0 µs    0 µs    0 µs    0 µs    0 µs     0 µs     0 µs     0 µs
      update     5,600  2,800/s       0  response     286 µs  186 µs  259 µs  316 µs  378 µs  972 µs  4.16 ms  12.3 ms  12.3 ms
                                         service      286 µs  186 µs  259 µs  316 µs  378 µs  972 µs  4.16 ms  12.3 ms  12.3 ms
                                         start delay    0 µs    0 µs    0 µs    0 µs    0 µs    0 µs     0 µs     0 µs     0 µs

      Client CPU            76.8 µs per operation, 0.2 s user + 0.6 s system, 43.0 % of one core
      Client memory         18.0 MiB at most
      In flight             1.43 on average, Little ratio 1.000
      Keys drawn            11,200; the hottest 1 % of the documents got 39.9 %, the hottest 10 % got 54.9 % (few draws per
                            document: chance makes these shares larger)
      Connections replaced  0

    Phase measure: the result
      12.0 s at 6,200/s

      operation   count     rate  errors  time           mean     min     p50     p90     p95     p99    p99.9   p99.99      max
      read       37,248  3,104/s       0  response     216 µs  139 µs  193 µs  236 µs  273 µs  631 µs  4.83 ms  9.22 ms  9.22 ms
                                          service      216 µs  139 µs  193 µs  236 µs  273 µs  631 µs  4.83 ms  9.22 ms  9.22 ms
                                          start delay    0 µs    0 µs    0 µs    0 µs    0 µs    0 µs     0 µs     0 µs     0 µs
      update     37,152  3,096/s       0  response     274 µs  177 µs  248 µs  302 µs  348 µs  773 µs  5.03 ms  11.8 ms  11.8 ms
                                          service      274 µs  177 µs  248 µs  302 µs  348 µs  773 µs  5.03 ms  11.8 ms  11.8 ms
                                          start delay    0 µs    0 µs    0 µs    0 µs    0 µs    0 µs     0 µs     0 µs     0 µs

      Client CPU            69.4 µs per operation, 1.4 s user + 3.7 s system, 43.0 % of one core
      Client memory         18.0 MiB at most
      In flight             1.52 on average, Little ratio 1.000
      Keys drawn            74,400; the hottest 1 % of the documents got 39.9 %, the hottest 10 % got 54.9 % (few draws per
                            document: chance makes these shares larger)
      Connections replaced  0

    Result of phase measure
      achieved rate        6,200/s  closed loop
      p50 response time     193 µs  read
      p99 response time     631 µs  read
      p99.9 response time  4.83 ms  read
      errors                     0  no operation failed
    "#);
}

#[test]
fn terminal_report_of_an_open_loop_with_caveats() {
    assert_snapshot!(human(&crate::support::open_run(), 80), @r#"
    Workload a
    Session store: half reads, half updates of recent actions.
    complete; secantusd-rs 0.5.3 (embedded), started 2026-08-22T10:15:00Z, measured
      by dyno 0.1.0

    Workload
      Mix               50 % read, 50 % update
      Data              100,000 documents of 10 fields, 100 bytes each, keys hashed
                        [6]
      Key distribution  scrambled zipfian
      Load              poisson 1,000/s, 32 connections on 1 thread, backend wire
      Seed              42

    Server
      Server                        secantusd-rs 0.5.3 (embedded)
      Address                       127.0.0.1:27018 (on the client's machine) [5]
      Storage engine                wiredTiger
      Topology                      standalone
      Write concern                 w: 1 [4]
      Read concern                  server default
      Cache                         256 MiB [6]
      Documents before measuring    100,000 [6]
      Data, uncompressed            105 MiB [6]
      Data, on disk                 115 MiB
      Data as a share of the cache  41.0 % [6]
      block_compressor              snappy

    Machine
      Host                    bench-1
      CPU                     2 × AMD EPYC 7763 [5]
      CPU governor            unknown
      NUMA nodes              1
      Memory                  8.00 GiB
      Swap                    0 B
      Transparent huge pages  madvise
      Clock                   tsc, 22.4 ns per reading
      Load average before     0.08
      Virtualization          kvm
      System                  Debian GNU/Linux 12 (bookworm)
      Kernel                  Linux 6.1.0-25-amd64
      Data folder             /srv/data
      File system             ext4 (rw,relatime)
      Device                  vda, not rotational
      Readahead               128 KiB
      I/O scheduler           none
      Free space before       40.0 GiB

    Phase load: inserts the data set
      1.0 s at 330.0/s

      operation     rate  errors  time             p50      p99    p99.9      max
      insert     330.0/s       0  response     4.70 ms  13.8 ms  24.1 ms  24.1 ms
                                  service      4.70 ms  13.8 ms  24.1 ms  24.1 ms
                                  start delay     0 µs     0 µs     0 µs     0 µs
      (too narrow for min, p90, p95, p99.99, mean, count)

      Client CPU            1.30 ms per operation, 0.1 s user + 0.3 s system, 43.0 %
                            of one core [5]
      Client memory         18.0 MiB at most
      In flight             1.61 on average, Little ratio 1.000
      Connections replaced  0

    Phase warmup: same load before measuring, not part of the result
      1.0 s at 990.0/s of 1,000/s offered

      operation     rate  errors  time            p50     p99    p99.9      max
      read       990.0/s       0  response     215 µs  623 µs  5.92 ms  5.92 ms
                                  service      215 µs  623 µs  5.92 ms  5.92 ms
                                  start delay    0 µs    0 µs     0 µs     0 µs
      (too narrow for min, p90, p95, p99.99, mean, count)

      Arrivals              990 due, 990 started, 0 (0 %) dropped, 0 (0 %) more than
                            1 ms late
      Client CPU            434 µs per operation, 0.1 s user + 0.3 s system, 43.0 %
                            of one core [5]
      Client memory         18.0 MiB at most
      In flight             0.23 on average, Little ratio 1.000
      Keys drawn            990; the hottest 1 % of the documents got 39.9 %, the
                            hottest 10 % got 54.9 % (few draws per document: chance
                            makes these shares larger)
      Connections replaced  0

    Phase measure: the result
      30.0 s at 988.1/s of 1,000/s offered [1]

      operation     rate  errors  time             p50      p99    p99.9      max
      read       499.1/s      18  response      235 µs   871 ms   990 ms   991 ms
                                  service       230 µs   895 µs  7.81 ms   990 ms
                                  start delay  5.12 µs   870 ms   980 ms   990 ms
      update     489.0/s      12  response      285 µs   897 µs  6.05 ms  13.6 ms
                                  service       279 µs   876 µs  5.91 ms  13.3 ms
                                  start delay  6.14 µs  19.5 µs   130 µs   332 µs
      (too narrow for min, p90, p95, p99.99, mean, count)
      caveats of latencies: [1]
      caveats of p99.9 and above: [1][3]

      Errors                not_found 18, timeout 9, server_11000 3 [2]
      Arrivals              30,000 due, 29,673 started, 327 (1.09 %) dropped, 1,254
                            (4.18 %) more than 1 ms late [1]
      Client CPU            435 µs per operation, 3.6 s user + 9.3 s system, 43.0 %
                            of one core [5]
      Client memory         18.0 MiB at most
      In flight             0.40 on average, Little ratio 1.000
      Keys drawn            29,643; the hottest 1 % of the documents got 39.9 %, the
                            hottest 10 % got 54.9 % (few draws per document: chance
                            makes these shares larger)
      Connections replaced  0

    Result of phase measure
      achieved rate        988.1/s  98.8 % of 1,000/s offered [1]
      p50 response time     235 µs  read [1]
      p99 response time     871 ms  read [1]
      p99.9 response time   990 ms  read [1][3]
      errors                    30  0.10 %, mostly not_found [2]

    Caveats
      [1] dropped arrivals (measure): 327 of 30,000 arrivals (1.09 %) were never
          sent, so response times are too good
          hint: offer a lower rate, or more connections with `--clients`
      [2] operations failed (measure): 30 operations failed, most of them with
          `not_found`
      [3] too few operations (measure): p99.99 rests on fewer than 10 values
          hint: measure longer
      [4] durability: writes are acknowledged before they are on disk (w: 1, journal
          not awaited)
      [5] shared machine: client and server share 2 CPUs of one machine
      [6] data fits in cache: the data (105 MiB) fits into the cache (256 MiB):
          reads never wait for the disk
          hint: load more documents with `--records`
    "#);
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
    let options = RenderOptions {
        colours: true,
        width: 80,
        ..RenderOptions::default()
    };
    let coloured = render(&run, None, Format::Human, &options).unwrap();
    assert!(coloured.contains("\u{1b}[31m30\u{1b}[0m"), "errors are red");
    let mut plain = String::new();
    for (index, part) in coloured.split('\u{1b}').enumerate() {
        let text = if index == 0 {
            part
        } else {
            part.split_once('m').unwrap().1
        };
        plain.push_str(text);
    }
    assert_eq!(plain, human(&run, 80));
}

#[test]
fn markdown_report_of_an_open_loop_with_caveats() {
    let text = render(
        &crate::support::open_run(),
        None,
        Format::Markdown,
        &RenderOptions::default(),
    );
    assert_snapshot!(text.unwrap(), @r#"
    # Workload a

    Session store: half reads, half updates of recent actions.

    **complete**; secantusd-rs 0.5.3 (embedded), started 2026-08-22T10:15:00Z, measured by dyno 0.1.0

    ## Result of phase measure

    |  | value |  | caveats |
    | --- | ---: | --- | --- |
    | achieved rate | **988.1/s** | 98.8 % of 1,000/s offered | ⚠1 |
    | p50 response time | **235 µs** | read | ⚠1 |
    | p99 response time | **871 ms** | read | ⚠1 |
    | p99.9 response time | **990 ms** | read | ⚠1 ⚠3 |
    | errors | **30** | 0.10 %, mostly not\_found | ⚠2 |

    ## Caveats

    - ⚠1 **dropped arrivals** (measure): 327 of 30,000 arrivals (1.09 %) were never sent, so response times are too good. Hint: offer a lower rate, or more connections with `--clients`.
    - ⚠2 **operations failed** (measure): 30 operations failed, most of them with `not_found`
    - ⚠3 **too few operations** (measure): p99.99 rests on fewer than 10 values. Hint: measure longer.
    - ⚠4 **durability**: writes are acknowledged before they are on disk (w: 1, journal not awaited)
    - ⚠5 **shared machine**: client and server share 2 CPUs of one machine
    - ⚠6 **data fits in cache**: the data (105 MiB) fits into the cache (256 MiB): reads never wait for the disk. Hint: load more documents with `--records`.

    ## Workload

    - Mix: 50 % read, 50 % update
    - Data: 100,000 documents of 10 fields, 100 bytes each, keys hashed ⚠6
    - Key distribution: scrambled zipfian
    - Load: poisson 1,000/s, 32 connections on 1 thread, backend wire
    - Seed: 42

    ## Phase load

    1.0 s at **330.0/s**: inserts the data set.

    | operation | time | count | rate | errors | mean | min | p50 | p90 | p95 | p99 | p99.9 | p99.99 | max |
    | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
    | **insert** | response | 330 | 330.0/s | 0 | 4.88 ms | 3.25 ms | 4.70 ms | 5.55 ms | 6.79 ms | 13.8 ms | 24.1 ms | 24.1 ms | 24.1 ms |
    |  | service |  |  |  | 4.88 ms | 3.25 ms | 4.70 ms | 5.55 ms | 6.79 ms | 13.8 ms | 24.1 ms | 24.1 ms | 24.1 ms |
    |  | start delay |  |  |  | 0 µs | 0 µs | 0 µs | 0 µs | 0 µs | 0 µs | 0 µs | 0 µs | 0 µs |

    - Client CPU: 1.30 ms per operation, 0.1 s user + 0.3 s system, 43.0 % of one core ⚠5
    - Client memory: 18.0 MiB at most
    - In flight: 1.61 on average, Little ratio 1.000
    - Connections replaced: 0

    ## Phase warmup

    1.0 s at **990.0/s** of 1,000/s offered: same load before measuring, not part of the result.

    | operation | time | count | rate | errors | mean | min | p50 | p90 | p95 | p99 | p99.9 | p99.99 | max |
    | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
    | **read** | response | 990 | 990.0/s | 0 | 237 µs | 155 µs | 215 µs | 259 µs | 295 µs | 623 µs | 5.92 ms | 5.92 ms | 5.92 ms |
    |  | service |  |  |  | 237 µs | 155 µs | 215 µs | 259 µs | 295 µs | 623 µs | 5.92 ms | 5.92 ms | 5.92 ms |
    |  | start delay |  |  |  | 0 µs | 0 µs | 0 µs | 0 µs | 0 µs | 0 µs | 0 µs | 0 µs | 0 µs |

    - Arrivals: 990 due, 990 started, 0 (0 %) dropped, 0 (0 %) more than 1 ms late
    - Client CPU: 434 µs per operation, 0.1 s user + 0.3 s system, 43.0 % of one core ⚠5
    - Client memory: 18.0 MiB at most
    - In flight: 0.23 on average, Little ratio 1.000
    - Keys drawn: 990; the hottest 1 % of the documents got 39.9 %, the hottest 10 % got 54.9 % (few draws per document: chance makes these shares larger)
    - Connections replaced: 0

    ## Phase measure

    30.0 s at **988.1/s** of 1,000/s offered ⚠1: the result.

    | operation | time | count | rate | errors ⚠2 | mean | min | p50 ⚠1 | p90 | p95 | p99 | p99.9 ⚠1 ⚠3 | p99.99 | max |
    | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
    | **read** | response | 14,973 | 499.1/s | 18 | 40.2 ms | 166 µs | 235 µs | 458 µs | 371 ms | 871 ms | 990 ms | 991 ms | 991 ms |
    |  | service |  |  |  | 498 µs | 162 µs | 230 µs | 447 µs | 846 µs | 895 µs | 7.81 ms | 990 ms | 990 ms |
    |  | start delay |  |  |  | 39.7 ms | 0 µs | 5.12 µs | 10.2 µs | 370 ms | 870 ms | 980 ms | 990 ms | 990 ms |
    | **update** | response | 14,670 | 489.0/s | 12 | 316 µs | 201 µs | 285 µs | 348 µs | 398 µs | 897 µs | 6.05 ms | 13.6 ms | 13.6 ms |
    |  | service |  |  |  | 309 µs | 201 µs | 279 µs | 342 µs | 390 µs | 876 µs | 5.91 ms | 13.3 ms | 13.3 ms |
    |  | start delay |  |  |  | 6.54 µs | 0 µs | 6.14 µs | 8.19 µs | 9.21 µs | 19.5 µs | 130 µs | 332 µs | 332 µs |

    - Errors: not\_found 18, timeout 9, server\_11000 3 ⚠2
    - Arrivals: 30,000 due, 29,673 started, 327 (1.09 %) dropped, 1,254 (4.18 %) more than 1 ms late ⚠1
    - Client CPU: 435 µs per operation, 3.6 s user + 9.3 s system, 43.0 % of one core ⚠5
    - Client memory: 18.0 MiB at most
    - In flight: 0.40 on average, Little ratio 1.000
    - Keys drawn: 29,643; the hottest 1 % of the documents got 39.9 %, the hottest 10 % got 54.9 % (few draws per document: chance makes these shares larger)
    - Connections replaced: 0

    ## Server

    - Server: secantusd-rs 0.5.3 (embedded)
    - Address: 127.0.0.1:27018 (on the client's machine) ⚠5
    - Storage engine: wiredTiger
    - Topology: standalone
    - Write concern: w: 1 ⚠4
    - Read concern: server default
    - Cache: 256 MiB ⚠6
    - Documents before measuring: 100,000 ⚠6
    - Data, uncompressed: 105 MiB ⚠6
    - Data, on disk: 115 MiB
    - Data as a share of the cache: 41.0 % ⚠6
    - block\_compressor: snappy

    ## Machine of the client

    - Host: bench-1
    - CPU: 2 × AMD EPYC 7763 ⚠5
    - CPU governor: unknown
    - NUMA nodes: 1
    - Memory: 8.00 GiB
    - Swap: 0 B
    - Transparent huge pages: madvise
    - Clock: tsc, 22.4 ns per reading
    - Load average before: 0.08
    - Virtualization: kvm
    - System: Debian GNU/Linux 12 (bookworm)
    - Kernel: Linux 6.1.0-25-amd64
    - Data folder: /srv/data
    - File system: ext4 (rw,relatime)
    - Device: vda, not rotational
    - Readahead: 128 KiB
    - I/O scheduler: none
    - Free space before: 40.0 GiB

    ## What the words mean

    - **response time**: From the moment an operation should have started, by the schedule, to its end. It includes waiting in the client and is what a user of the system would see.
    - **service time**: From handing the first byte to the network to the end of the answer: the server and the way to it, without the wait before.
    - **start delay**: Response time minus service time: how long an operation waited for a free connection or for the load generator.
    - **closed loop**: Each connection starts its next operation when the last one has ended. A slow server is asked less often, so waiting that users would see stays invisible.
    - **offered and achieved rate**: Operations per second that the schedule asked for, and those that succeeded. Failed operations are never part of a rate or of a latency.
    - **percentile**: p99 = 2 ms: 99 of 100 operations took at most 2 ms. Percentiles are read from histograms that are added up, never averaged; the histograms keep three digits.
    - **Little ratio**: Operations in flight divided by rate × service time, measured apart from each other. It is 1 when the measurement agrees with itself.
    "#);
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
    let options = YcsbOptions {
        interval: MeasurementInterval::Both,
        percentiles: vec![50.0, 99.9],
        ..YcsbOptions::default()
    };
    let text = ycsb(&crate::support::open_run(), options);
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

/// Six reads of known latency and two failures: all that the small outputs are about.
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
    let options = YcsbOptions {
        measurement: MeasurementType::HdrHistogramAndHistogram,
        buckets: 3,
        verbose: true,
        ..YcsbOptions::default()
    };
    assert_snapshot!(ycsb(&small_run(), options).unwrap(), @r#"
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
    let options = YcsbOptions {
        measurement: MeasurementType::TimeSeries,
        ..YcsbOptions::default()
    };
    assert_snapshot!(ycsb(&small_run(), options).unwrap(), @r#"
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
        let options = YcsbOptions {
            exporter,
            ..YcsbOptions::default()
        };
        ycsb(&small_run(), options).unwrap()
    };
    let array: Vec<serde_json::Value> = serde_json::from_str(&json(Exporter::JsonArray)).unwrap();
    let lines: Vec<serde_json::Value> = json(Exporter::Json)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(array, lines);
    assert_eq!(array.len(), text.lines().count());
    let first = &array[0];
    assert_eq!(first["metric"], "OVERALL");
    assert_eq!(first["measurement"], "RunTime(ms)");
    assert_eq!(first["value"], 3_000);
}

#[test]
fn a_load_phase_counts_documents() {
    let options = YcsbOptions {
        phase: Some(PhaseKind::Load),
        ..YcsbOptions::default()
    };
    let mut run = crate::support::closed_run();
    run.document.phases[0]
        .operations
        .get_mut("insert")
        .unwrap()
        .documents = 99_000;
    let text = ycsb(&run, options).unwrap();
    assert!(
        text.contains("[OVERALL], Throughput(ops/sec), 33000.0\n"),
        "{text}"
    );
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
    let text = ycsb(
        &crate::support::run(document, &[window]),
        YcsbOptions::default(),
    )
    .unwrap();
    assert!(text.contains("[VERIFY], Return=OK, 20\n[VERIFY], Return=UNEXPECTED_STATE, 2\n"));
}

#[test]
fn what_a_run_does_not_hold_is_refused() {
    let run = small_run();
    let with = |change: fn(&mut YcsbOptions)| {
        let mut options = YcsbOptions::default();
        change(&mut options);
        ycsb(&run, options).unwrap_err()
    };
    let raw = with(|options| options.measurement = MeasurementType::Raw);
    assert!(matches!(
        raw,
        ReportError::NotRecorded { measurement: "raw" }
    ));
    let both = with(|options| options.measurement = MeasurementType::HdrHistogramAndRaw);
    assert!(both.to_string().contains("`hdrhistogram+raw`"));
    let fine = with(|options| {
        options.measurement = MeasurementType::TimeSeries;
        options.granularity_ms = 100;
    });
    assert!(matches!(
        fine,
        ReportError::GranularityTooFine {
            granularity_ms: 100,
            window_ms: 1_000
        }
    ));
    let load = with(|options| options.phase = Some(PhaseKind::Load));
    assert_eq!(load.to_string(), "the run has no phase `load`");
    let percentile = with(|options| options.percentiles = vec![50.0, 101.0]);
    assert_eq!(
        percentile.to_string(),
        "`101` is no percentile between 0 and 100"
    );
    let empty = crate::support::run(crate::support::closed_document(), &[]);
    let none = ycsb(&empty, YcsbOptions::default()).unwrap_err();
    assert!(matches!(none, ReportError::NoPhase));
}
