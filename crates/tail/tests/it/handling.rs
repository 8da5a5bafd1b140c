//! Difficult conditions for consumers and producers: a wrapped collection, an empty one, a server restart, and an interruption.
//! Against the embedded server, with the driver on the project's own wire code.
use dyno_engine::Cancel;
use dyno_record::tail::{InFlight, Measured, Schedule, Settings, TailArrivals, TailMode};
use dyno_tail::driver::{Found, find};
use dyno_tail::run::{Bench, run};
use dyno_tail::sums::what_is_wrong;
use dyno_testkit::{Skip, embedded, embedded_program, free_port, or_skip, project_dir};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MESSAGES: u64 = 400;

fn settings() -> Settings {
    Settings {
        database: "tail_test".to_owned(),
        collection: "messages".to_owned(),
        producers: vec!["wire".to_owned()],
        consumers: vec!["wire".to_owned()],
        messages: MESSAGES,
        in_flight: InFlight::Bounded(1),
        pool: 10,
        size_bytes: 16,
        capped_bytes: 16 << 20,
        write_concern: "1".to_owned(),
        journal: false,
        mode: TailMode::Tailable,
        schedule: None,
        idle_s: 5,
        delay_us: 0,
        limit_s: 60,
        points: 100,
        producer_host: None,
        consumer_host: None,
    }
}

fn every(rate_per_s: f64) -> Option<Schedule> {
    Some(Schedule { rate_per_s, arrive: TailArrivals::Constant, seed: 1 })
}

fn drivers() -> Option<Found> {
    let found =
        find(Some(&project_dir().join("drivers")), None, |name| name == "wire", &Cancel::new())
            .unwrap();
    or_skip(match found.named("wire", "produce") {
        Ok(_) => Ok(found),
        Err(error) => Err(Skip::new(error.to_string(), "run `make drivers`")),
    })
}

fn experiment(uri: &str, settings: &Settings) -> Option<Measured> {
    let folder = tempfile::tempdir().unwrap();
    experiment_in(folder.path(), uri, settings, &|| false)
}

fn experiment_in(
    folder: &Path,
    uri: &str,
    settings: &Settings,
    interrupted: &dyn Fn() -> bool,
) -> Option<Measured> {
    let found = drivers()?;
    let bench = Bench {
        uri,
        found: &found,
        server: &[],
        meter: None,
        machines: None,
        interrupted,
        host_drivers: Path::new("."),
        polls_heartbeats: true,
    };
    Some(run(&bench, settings, folder).unwrap())
}

/// Whether the producer has written this many stamps.
fn has_stamped(folder: &Path, messages: u64) -> bool {
    let stamps = std::fs::metadata(folder.join("produce-0.stamps"));
    stamps.is_ok_and(|stamps| stamps.len() >= 32 * messages)
}

#[test]
fn slow_consumer_loses_overwritten_messages_and_reports_it() {
    let Some(server) = or_skip(embedded()) else {
        return;
    };
    let settings =
        Settings { capped_bytes: 4096, size_bytes: 200, delay_us: 10_000, idle_s: 2, ..settings() };
    let Some(measured) = experiment(&server.uri(), &settings) else {
        return;
    };
    let consumer = &measured.consumers[0];
    assert!(consumer.position_lost.unwrap() >= 1, "{consumer:?}");
    assert!(consumer.sum.lost > 0 && consumer.idle);
    assert_eq!(consumer.sum.received + consumer.sum.lost, MESSAGES);
    let wrong = what_is_wrong(&measured, &settings).unwrap();
    assert!(wrong.contains("wrapped"), "{wrong}");
}

#[test]
fn slow_consumer_with_enough_room_loses_nothing() {
    let Some(server) = or_skip(embedded()) else {
        return;
    };
    let settings = Settings {
        // Slower than any producer on any machine.
        delay_us: 20_000,
        ..settings()
    };
    let Some(measured) = experiment(&server.uri(), &settings) else {
        return;
    };
    assert_eq!(what_is_wrong(&measured, &settings), None);
    let verdict = &measured.producers[0].verdict;
    let cause = dyno_record::tail::Cause::Delivery;
    assert_eq!(verdict.cause, cause, "{}", verdict.statement);
}

#[test]
fn cursor_is_reopened_until_the_collection_has_messages() {
    let Some(server) = or_skip(embedded()) else {
        return;
    };
    let settings = settings();
    let Some(measured) = experiment(&server.uri(), &settings) else {
        return;
    };
    let consumer = &measured.consumers[0];
    assert!(consumer.reopened_empty.unwrap() >= 1, "{consumer:?}");
    assert_eq!(consumer.sum.received, MESSAGES);
    assert_eq!(what_is_wrong(&measured, &settings), None);
}

#[test]
fn interruption_keeps_results_and_reports_nothing_as_lost() {
    let Some(server) = or_skip(embedded()) else {
        return;
    };
    let settings = Settings { schedule: every(100.0), ..settings() };
    let folder = tempfile::tempdir().unwrap();
    let interrupted = || has_stamped(folder.path(), 20);
    let Some(measured) = experiment_in(folder.path(), &server.uri(), &settings, &interrupted)
    else {
        return;
    };
    assert!(measured.interrupted);
    let sum = measured.producers[0].sum;
    assert!(sum.acknowledged > 0 && sum.unanswered > 0, "{sum:?}");
    assert_eq!(sum.acknowledged + sum.failed + sum.unanswered, MESSAGES);
    assert_eq!(what_is_wrong(&measured, &settings), None);
}

/// A server that can be restarted at the same address with the same data.
struct Restarted {
    program: PathBuf,
    folder: tempfile::TempDir,
    port: u16,
    process: Option<Child>,
}

impl Restarted {
    fn start(program: PathBuf) -> Self {
        let mut server = Restarted {
            program,
            folder: tempfile::tempdir().unwrap(),
            port: free_port(),
            process: None,
        };
        std::fs::write(server.path("empty.toml"), "").unwrap();
        server.again();
        server
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(self.folder.path()).join(name)
    }

    fn again(&mut self) {
        let process = Command::new(&self.program)
            .arg("--config")
            .arg(self.path("empty.toml"))
            .args(["--host", "127.0.0.1", "--port", &self.port.to_string()])
            .args(["--cache-size", "64M", "--storage-path"])
            .arg(self.path("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.process = Some(process.unwrap());
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < deadline, "the server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn stop(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        let id = nix::unistd::Pid::from_raw(process.id() as i32);
        let _ = nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM);
        let _ = process.wait();
    }
}

impl Drop for Restarted {
    fn drop(&mut self) {
        self.stop();
    }
}

#[test]
fn server_restart_is_survived_and_all_messages_are_counted() {
    let Some(program) = or_skip(embedded_program()) else {
        return;
    };
    if drivers().is_none() {
        return;
    }
    let mut server = Restarted::start(program);
    let uri = format!("mongodb://127.0.0.1:{}/", server.port);
    let settings = Settings {
        // 20 s: even a busy machine restarts the server long before the end, and before the consumer gives up.
        schedule: every(20.0),
        idle_s: 15,
        ..settings()
    };
    let folder = tempfile::tempdir().unwrap();
    let measured = std::thread::scope(|scope| {
        let path = folder.path();
        let measuring = scope.spawn(|| experiment_in(path, &uri, &settings, &|| false).unwrap());
        let deadline = Instant::now() + Duration::from_secs(60);
        while !has_stamped(path, 50) {
            assert!(Instant::now() < deadline, "nothing is sent");
            std::thread::sleep(Duration::from_millis(20));
        }
        server.stop();
        server.again();
        measuring.join().unwrap()
    });
    let (producer, consumer) = (&measured.producers[0], &measured.consumers[0]);
    let sum = producer.sum;
    assert_eq!(sum.acknowledged + sum.failed + sum.unanswered, MESSAGES);
    assert_eq!(producer.failure.is_some(), sum.failed > 0, "{producer:?}");
    // More than were sent before the restart, which happens at most a second after the 50th.
    assert!(sum.acknowledged >= 100, "{sum:?}");
    let again = consumer.reopened.unwrap() - consumer.reopened_empty.unwrap();
    assert!(again >= 1, "{consumer:?}");
    assert_eq!((consumer.sum.lost, consumer.sum.duplicated), (0, 0));
}
