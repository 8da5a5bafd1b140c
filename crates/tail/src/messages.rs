//! All messages of an experiment in memory: stamps of the producers and receipts of each consumer. 24 bytes for a message plus 12
//! for each consumer.

use crate::stamps::{Received, Sent};

/// Largest number of workers of a consumer.
const MOST_WORKERS: u64 = 4096;

/// State of a message at its producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// No stamp: not sent, or not answered when the producer ended.
    Unanswered,
    /// The insert failed; the message may be stored all the same.
    Failed,
    /// Acknowledged, or returned by the driver with write concern 0.
    Acknowledged,
}

/// Stamps of one message; all 0 if it was not stamped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) intended_ns: i64,
    pub(crate) send_ns: i64,
    /// Negative if the insert failed, as in the file.
    end_ns: i64,
}

impl Entry {
    pub(crate) fn fate(&self) -> Fate {
        match self.end_ns {
            0 => Fate::Unanswered,
            end if end < 0 => Fate::Failed,
            _ => Fate::Acknowledged,
        }
    }

    /// End of the insert, successful or not.
    pub(crate) fn end_ns(&self) -> i64 {
        self.end_ns.saturating_abs()
    }
}

/// The messages of one producer, by number.
#[derive(Debug)]
pub struct Produced {
    pub(crate) entries: Vec<Entry>,
}

impl Produced {
    /// Allocates this many messages.
    pub fn new(messages: u64) -> Self {
        Produced { entries: vec![Entry::default(); messages as usize] }
    }

    /// Adds a stamp.
    ///
    /// # Errors
    /// The number is out of range, or was stamped before.
    pub fn add(&mut self, sent: Sent) -> Result<(), String> {
        let messages = self.entries.len();
        let entry = usize::try_from(sent.n).ok();
        let entry = entry.and_then(|place| self.entries.get_mut(place));
        let Some(entry) = entry else {
            return Err(format!("message {} is out of range: there are {messages}", sent.n));
        };
        if entry.fate() != Fate::Unanswered {
            return Err(format!("message {} is stamped twice", sent.n));
        }
        *entry = Entry {
            intended_ns: sent.intended_ns,
            send_ns: sent.send_ns,
            end_ns: if sent.failed { -sent.end_ns } else { sent.end_ns },
        };
        Ok(())
    }
}

/// The messages that one consumer received from all producers.
#[derive(Debug)]
pub struct Consumed {
    /// By producer and number.
    pub(crate) receipts: Vec<Receipts>,
    pub(crate) duplicated: u64,
    pub(crate) reordered: u64,
    /// Number of messages in each reply.
    batches: Vec<u32>,
}

/// Receipts of one producer's messages, in two vectors because a pair would be padded to 16 bytes.
#[derive(Debug)]
pub(crate) struct Receipts {
    received_ns: Vec<i64>,
    /// Number of the reply; `u32::MAX` if the driver does not report it.
    batch: Vec<u32>,
    /// The newest message of each worker.
    newest: Vec<Option<u64>>,
}

impl Consumed {
    /// Allocates the messages of these producers. A consumer may have several workers; worker `n % workers` gets message
    /// `n`; only the messages of one worker have an order.
    pub fn new(producers: &[Produced], workers: u64) -> Self {
        let workers = workers.clamp(1, MOST_WORKERS) as usize;
        let receipts = producers.iter().map(|producer| Receipts {
            received_ns: vec![0; producer.entries.len()],
            batch: vec![u32::MAX; producer.entries.len()],
            newest: vec![None; workers],
        });
        Consumed { receipts: receipts.collect(), duplicated: 0, reordered: 0, batches: Vec::new() }
    }

    /// Adds a stamp; call in file order.
    ///
    /// # Errors
    /// No producer sent the message, or its send time differs from the producer's stamp.
    pub fn add(&mut self, producers: &[Produced], received: Received) -> Result<(), String> {
        let n = received.n as usize;
        let producer = received.producer as usize;
        let entry = producers.get(producer).and_then(|sent| sent.entries.get(n));
        let Some(entry) = entry else {
            return Err(format!("message {n} of producer {producer} was not planned"));
        };
        if entry.fate() != Fate::Unanswered && entry.send_ns != received.send_ns {
            return Err(format!(
                "message {n} of producer {producer} contains the send time {}, but its producer stamped {}",
                received.send_ns, entry.send_ns
            ));
        }
        let receipts = &mut self.receipts[producer];
        if receipts.received_ns[n] != 0 {
            self.duplicated += 1;
            return Ok(());
        }
        let worker = n % receipts.newest.len();
        match receipts.newest[worker] {
            Some(newest) if received.n < newest => self.reordered += 1,
            _ => receipts.newest[worker] = Some(received.n),
        }
        receipts.received_ns[n] = received.received_ns;
        if let Some(batch) = received.batch {
            receipts.batch[n] = batch;
            let place = batch as usize;
            // Drivers count replies one by one, so a number far above the message count is not valid.
            if place <= self.batches.len() + (1 << 20) {
                self.batches.resize(self.batches.len().max(place + 1), 0);
                self.batches[place] += 1;
            }
        }
        Ok(())
    }

    /// Receive time of a message.
    pub(crate) fn received_ns(&self, producer: usize, n: usize) -> Option<i64> {
        let received = self.receipts[producer].received_ns[n];
        (received != 0).then_some(received)
    }

    /// Messages received per second, from the first send to the last receipt; `None` for fewer than two.
    pub(crate) fn received_per_s(&self, producers: &[Produced]) -> Option<f64> {
        let receipts = self.receipts.iter().flat_map(|part| &part.received_ns);
        let came = receipts.copied().filter(|received| *received != 0);
        let (count, last) = came.fold((0u64, 0), |(count, last), at| (count + 1, last.max(at)));
        let sent = producers.iter().flat_map(|producer| &producer.entries);
        let first = sent.map(|entry| entry.send_ns).filter(|send| *send != 0).min()?;
        (count > 1 && last > first).then(|| count as f64 / ((last - first) as f64 / 1e9))
    }

    /// Number of messages in the reply with this message.
    pub(crate) fn batch_messages(&self, producer: usize, n: usize) -> Option<u32> {
        let batch = self.receipts[producer].batch[n];
        self.batches.get(batch as usize).copied().filter(|count| *count > 0)
    }
}
