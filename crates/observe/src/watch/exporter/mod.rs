//! Watches anything that serves metrics in the format of Prometheus: what `node_exporter` and `mongodb_exporter` report
//! gets the names that the host and server sources use, all else is kept as it is.

mod fetch;
mod mongodb;
mod node;
mod other;
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
use text::{Sample, Scrape};
use ureq::Agent;

/// Longest line that is shown of a text that cannot be read.
const SHOWN: usize = 60;

/// Where servers keep their data, as far as that is known without a look at their machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataPlace {
    /// The disks, by their names there.
    pub disks: Vec<String>,
    /// Data folders, by which the disk is found where none was named.
    pub folders: Vec<String>,
}

/// A source that reads the exporter at an address. `of_server` says whether it is about a machine that a server under
/// test runs on, or such a server, and `place` where that keeps its data. Metrics of a server carry `name`.
///
/// # Errors
/// Credentials or certificates that cannot be read.
pub fn exporter(
    name: String,
    address: Address,
    of_server: bool,
    place: DataPlace,
) -> Result<impl Source, AccessError> {
    // Read anew at each question; what is wrong with them now is reported now.
    address
        .credentials
        .as_ref()
        .map(Credentials::header)
        .transpose()?;
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
        self.reader.read(at_s, &text).map_err(|reason| {
            let reason = format!("`{}`: {reason}", self.address.shown());
            Health::Failed { reason }
        })
    }
}

/// Makes measurements of what an exporter serves. It keeps the totals of one text, so that the next one gives rates.
pub struct ExporterReader {
    name: String,
    place: DataPlace,
    rates: Rates,
    /// Which of its metrics are about a server.
    wanted: Wanted,
    status: Status,
    others: Others,
}

impl ExporterReader {
    /// One that has read nothing. Metrics of a server carry `name`.
    pub fn new(name: String) -> ExporterReader {
        ExporterReader {
            rates: Rates::default(),
            wanted: Wanted::from_table(),
            status: Status::new(&name, "what the exporter reports"),
            others: Others::default(),
            place: DataPlace::default(),
            name,
        }
    }

    /// Marks the disks that hold data.
    #[must_use]
    pub fn with_data_in(self, place: DataPlace) -> ExporterReader {
        ExporterReader { place, ..self }
    }

    /// The measurements of a text that was served at `at_s`, in seconds from any start.
    ///
    /// # Errors
    /// Why the text is none of an exporter, in words.
    pub fn read(&mut self, at_s: f64, text: &str) -> Result<Reported, String> {
        let scrape = Scrape::parse(text);
        if scrape.samples.is_empty() {
            return Err(no_metrics(&scrape));
        }
        let mut reported = Reported::default();
        self.rates.begin(at_s);
        node::report(&scrape, &self.place, &mut self.rates, &mut reported);
        let of_server = self.wanted.among(&scrape);
        if !of_server.is_empty() {
            self.status.take(at_s, &of_server, &mut reported);
            mongodb::report_replication(&scrape, &mut reported);
        }
        let is_other = |(place, sample): &(usize, &Sample<'_>)| {
            !of_server.places.contains(place) && !node::is_known(sample.name)
        };
        let samples = scrape.samples.iter().enumerate().filter(is_other);
        let samples = samples.map(|(_, sample)| sample);
        self.others
            .report(&scrape, samples, &mut self.rates, &mut reported);
        if let Some((line, count)) = scrape.bad {
            let reason = format!("{count} lines cannot be read, such as `{}`", shown(line));
            reported.miss("text", Health::Degraded { reason });
        }
        Ok(reported)
    }
}

fn no_metrics(scrape: &Scrape<'_>) -> String {
    match scrape.bad {
        Some((line, _)) => format!("its answer is not metrics: `{}`", shown(line)),
        None => "its answer has no metrics".to_owned(),
    }
}

/// The start of a line, without control characters.
fn shown(line: &str) -> String {
    let plain = |c: char| if c.is_control() { '?' } else { c };
    line.chars().take(SHOWN).map(plain).collect()
}
