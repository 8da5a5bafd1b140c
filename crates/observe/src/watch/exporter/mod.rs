//! Watches exporters with metrics in Prometheus format. Metrics of `node_exporter` and
//! `mongodb_exporter` get the names of the host and server sources, all others keep their names.

mod fetch;
mod mongodb;
mod node;
mod other;
mod several;
#[cfg(test)]
mod tests;
mod text;

use crate::health::{Health, Reading};
use crate::http::{self, AccessError, Address, Credentials};
use crate::watch::rates::Rates;
use crate::watch::server::status::Status;
use crate::watch::source::{Description, Reported, Source};
use dyno_record::model::SourceKind;
use mongodb::Wanted;
use other::Others;
use std::time::{SystemTime, UNIX_EPOCH};
use text::{Sample, Scrape};
use ureq::Agent;

/// Longest part shown of a line that cannot be read.
const SHOWN: usize = 60;

/// Older samples are treated as missing. Federations scrape at least once a minute, and an older
/// sample says nothing about the run; the clocks of the two machines may differ by some seconds.
const OLDEST_S: f64 = 60.0;

/// Where servers keep their data, as known without access to their machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataPlace {
    /// Names of the disks on that machine.
    pub disks: Vec<String>,
    /// Data folders, used to find the disk if none was named.
    pub folders: Vec<String>,
}

/// A source that reads the exporter at an address. `of_server` says whether the exporter reports a
/// machine of a server under test, or such a server; `place` says where that server keeps its data.
/// Metrics of a server carry `name`.
///
/// # Errors
/// Credentials or certificates cannot be read.
pub fn exporter(
    name: String,
    address: Address,
    of_server: bool,
    place: DataPlace,
) -> Result<impl Source, AccessError> {
    // They are read again for each request; reading them now reports errors early.
    address.credentials.as_ref().map(Credentials::header).transpose()?;
    Ok(Exporter {
        of_server,
        client: http::client(&address)?,
        reader: ExporterReader::new(name).with_data_in(place),
        address,
    })
}

struct Exporter {
    of_server: bool,
    client: Agent,
    reader: ExporterReader,
    address: Address,
}

impl Source for Exporter {
    fn description(&self) -> Description {
        Description {
            name: self.reader.name.clone(),
            kind: SourceKind::Exporter,
            subject: self.address.shown(),
            of_server: self.of_server,
        }
    }

    fn read(&mut self, at_s: f64) -> Reading<Reported> {
        let text = fetch::text(&self.client, &self.address)?;
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix_s = unix.map_or(0.0, |unix| unix.as_secs_f64());
        self.reader.read(at_s, unix_s, &text).map_err(|reason| {
            let reason = format!("`{}`: {reason}", self.address.shown());
            Health::Failed { reason }
        })
    }
}

/// Converts an exporter's text to measurements. Keeps the totals of one text to compute rates from
/// the next one.
pub struct ExporterReader {
    name: String,
    place: DataPlace,
    rates: Rates,
    /// Which of its metrics are about a server.
    wanted: Wanted,
    status: Status,
    others: Others,
    /// The newest time among the samples of the previous text.
    newest_s: Option<f64>,
}

impl ExporterReader {
    /// A reader before its first text. Metrics of a server carry `name`.
    pub fn new(name: String) -> ExporterReader {
        ExporterReader {
            rates: Rates::default(),
            wanted: Wanted::from_table(),
            status: Status::new(&name, "the exporter's metrics"),
            others: Others::default(),
            place: DataPlace::default(),
            newest_s: None,
            name,
        }
    }

    /// Marks the disks that hold data.
    #[must_use]
    pub fn with_data_in(self, place: DataPlace) -> ExporterReader {
        ExporterReader { place, ..self }
    }

    /// The measurements of a text that was served at `at_s`, in seconds from any origin, and at
    /// `unix_s` in seconds since 1970.
    ///
    /// # Errors
    /// Why the text is not a valid exporter text.
    pub fn read(&mut self, at_s: f64, unix_s: f64, text: &str) -> Result<Reported, String> {
        let scrape = Scrape::parse_since(text, unix_s - OLDEST_S);
        if scrape.samples.is_empty() {
            return Err(no_metrics(&scrape, unix_s));
        }
        let mut reported = Reported::default();
        let failed = |reason| Health::Failed { reason };
        if scrape.old.is_some() {
            reported.miss("time", failed(too_old(&scrape, unix_s)));
        }
        let newest_s = scrape.newest_s();
        if newest_s.is_some() && newest_s == self.newest_s {
            // Totals that were not renewed would look like idle time.
            let reason = "its values have not changed since the previous reading: set \
                `observe.interval` to the interval of their renewal, or read the exporter \
                itself"
                .to_owned();
            reported.miss("time", Health::Degraded { reason });
            return Ok(reported);
        }
        self.newest_s = newest_s;
        self.rates.begin(at_s);
        match several::machines(&scrape, node::is_known) {
            None => node::report(&scrape, &self.place, &mut self.rates, &mut reported),
            Some(reason) => reported.miss("machine", failed(reason)),
        }
        let of_server = self.wanted.among(&scrape);
        match several::servers(&scrape, &of_server) {
            Some(reason) => reported.miss("server", failed(reason)),
            None if of_server.is_empty() => {}
            None => {
                self.status.take(at_s, &of_server, &mut reported);
                mongodb::report_replication(&scrape, &mut reported);
            }
        }
        let is_other = |(place, sample): &(usize, &Sample<'_>)| {
            !of_server.places.contains(place) && !node::is_known(sample.name)
        };
        let samples = scrape.samples.iter().enumerate().filter(is_other);
        let samples = samples.map(|(_, sample)| sample);
        self.others.report(&scrape, samples, &mut self.rates, &mut reported);
        if let Some((line, count)) = scrape.bad {
            let reason = format!("{count} lines cannot be read, such as `{}`", shown(line));
            reported.miss("text", Health::Degraded { reason });
        }
        Ok(reported)
    }
}

fn no_metrics(scrape: &Scrape<'_>, unix_s: f64) -> String {
    match scrape.bad {
        _ if scrape.old.is_some() => too_old(scrape, unix_s),
        Some((line, _)) => format!("its answer is not metrics: `{}`", shown(line)),
        None => "its answer has no metrics".to_owned(),
    }
}

fn too_old(scrape: &Scrape<'_>, unix_s: f64) -> String {
    let (newest_s, count) = scrape.old.unwrap_or_default();
    format!(
        "{count} values are too old: the newest was taken {:.0} s ago by the clock of this machine, and {OLDEST_S} s are allowed",
        unix_s - newest_s
    )
}

/// The start of a line, without control characters.
fn shown(line: &str) -> String {
    let plain = |c: char| if c.is_control() { '?' } else { c };
    line.chars().take(SHOWN).map(plain).collect()
}
