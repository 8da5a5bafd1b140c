//! Run directories of made-up runs: their figures are known, whatever the speed of the machine.

use dyno_record::accumulate::PhaseAccumulator;
use dyno_record::interval::{IntervalRecord, OperationInterval, WindowCounts, latency_histogram};
use dyno_record::model::{
    Arrivals, CpuSettings, Effect, Environment, Operation, PhaseKind, RunDocument, RunStatus,
    SCHEMA_VERSION, ServerRecord,
};
use dyno_record::writer::RunWriter;
use serde_json::{Value, json};
use std::path::Path;

/// Recording windows of a run by default.
const WINDOWS: u64 = 12;

/// Figures and settings that a run directory contains.
#[derive(Clone, Debug)]
pub(crate) struct MadeUp {
    pub(crate) name: &'static str,
    /// Operations per second, with a noise of 1 %.
    pub(crate) rate_per_s: u64,
    /// Typical response time; single response times lie between it and twice its value.
    pub(crate) response_us: u64,
    pub(crate) started_at: String,
    pub(crate) records: u64,
    pub(crate) status: RunStatus,
    /// `closed`, or a constant rate.
    pub(crate) offered_per_s: Option<u64>,
    /// Seed of the noise.
    pub(crate) seed: u64,
    pub(crate) windows: u64,
    /// Whether writes wait for the disk.
    pub(crate) durable_writes: Option<bool>,
    /// Product that the server reports.
    pub(crate) product: Option<&'static str>,
    pub(crate) cpu_settings: CpuSettings,
    pub(crate) tags: &'static [&'static str],
}

impl MadeUp {
    pub(crate) fn new(rate_per_s: u64) -> Self {
        MadeUp {
            name: "a",
            rate_per_s,
            response_us: 4_000_000 / rate_per_s,
            started_at: "2026-08-22T10:15:00Z".into(),
            records: 1000,
            status: RunStatus::Complete,
            offered_per_s: None,
            seed: 1,
            windows: WINDOWS,
            durable_writes: None,
            product: None,
            cpu_settings: CpuSettings::default(),
            tags: &[],
        }
    }

    /// A run of a series: at noon of a day of 2026, with its own noise.
    pub(crate) fn of_day(self, day: u64) -> Self {
        let (month, day_of_month) = (day / 28 + 1, day % 28 + 1);
        MadeUp {
            started_at: format!("2026-{month:02}-{day_of_month:02}T12:00:00Z"),
            seed: day + 1,
            ..self
        }
    }

    pub(crate) fn write(&self, directory: &Path) {
        let mut document = self.document();
        let mut writer = RunWriter::create(directory, "name = \"a\"\n", &document).unwrap();
        let offered = self.offered_per_s.map(|rate| rate as f64);
        let mut phase = PhaseAccumulator::new(PhaseKind::Measure, offered);
        let mut noise = Noise(self.seed);
        for index in 0..self.windows {
            let window = self.window(index, &mut noise);
            writer.record(&window).unwrap();
            phase.add(&window).unwrap();
        }
        document.phases = vec![phase.to_record()];
        document.status = self.status;
        writer.finish(&document).unwrap();
    }

    fn plan(&self) -> Value {
        let schedule = match self.offered_per_s {
            None => json!({ "kind": "closed" }),
            Some(rate) => json!({ "kind": "constant", "rate_per_s": rate }),
        };
        json!({
            "name": self.name,
            "tags": self.tags,
            "data": { "records": self.records },
            "operations": { "read": 1.0 },
            "schedule": schedule,
            "client": { "clients": 4 },
            "server": { "kind": "embedded", "durable_writes": self.durable_writes },
        })
    }

    fn document(&self) -> RunDocument {
        RunDocument {
            schema_version: SCHEMA_VERSION,
            dyno_version: "0.1.0".into(),
            name: self.name.into(),
            started_at: self.started_at.clone(),
            status: RunStatus::Running,
            status_reason: None,
            plan: self.plan(),
            operations: vec![Operation::new("read", Effect::Read)].into(),
            environment: Environment {
                cpu_settings: self.cpu_settings.clone(),
                ..Environment::default()
            },
            server: ServerRecord {
                kind: "embedded".into(),
                address: "127.0.0.1:27017".into(),
                local: true,
                write_concern: "w: 1".into(),
                read_concern: "server default".into(),
                product: self.product.map(str::to_owned),
                ..ServerRecord::default()
            },
            phases: Vec::new(),
            instances: Vec::new(),
            fleet: None,
            placement: None,
            host_settings: Vec::new(),
            traces: Vec::new(),
            consumption: Vec::new(),
            resources: Vec::new(),
            sources: Vec::new(),
            collections: Vec::new(),
            secondary_indexes: None,
            checks: Vec::new(),
            dropped: Vec::new(),
            events: Vec::new(),
            caveats: Vec::new(),
            selfcheck: None,
        }
    }

    fn window(&self, index: u64, noise: &mut Noise) -> IntervalRecord {
        let count = noise.around(self.rate_per_s);
        let response_ns = noise.around(self.response_us) * 1000;
        let mut operation = OperationInterval {
            name: "read".into(),
            response: latency_histogram(),
            service: latency_histogram(),
            start_delay: latency_histogram(),
            response_sum_ns: 0,
            service_sum_ns: 0,
            start_delay_sum_ns: 0,
            documents: count,
            errors: 0,
            clamped: 0,
        };
        for place in 0..count {
            let value = response_ns + response_ns * place / count;
            operation.response.record(value).unwrap();
            operation.service.record(value).unwrap();
            operation.start_delay.record(0).unwrap();
            operation.response_sum_ns += u128::from(value);
            operation.service_sum_ns += u128::from(value);
        }
        let arrivals = self.offered_per_s.unwrap_or(0);
        IntervalRecord {
            duration_ns: 1_000_000_000,
            counts: WindowCounts {
                succeeded: count,
                busy_ns: operation.service_sum_ns,
                in_flight_ns: operation.service_sum_ns,
                cpu_user_ns: 1_000_000,
                cpu_system_ns: 1_000_000,
                max_rss_bytes: 10_000_000,
                arrivals: Arrivals { due: arrivals, started: arrivals, ..Arrivals::default() },
                ..WindowCounts::default()
            },
            operations: vec![operation],
            ..IntervalRecord::empty(PhaseKind::Measure, index, index * 1_000_000_000)
        }
    }
}

/// Small pseudorandom numbers, the same in every test run.
struct Noise(u64);

impl Noise {
    /// A value up to 1 % above or below.
    fn around(&mut self, value: u64) -> u64 {
        // Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let width = value / 50 + 1;
        value - width / 2 + mixed % width
    }
}
