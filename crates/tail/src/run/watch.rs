//! Samples the processes of an experiment until they have ended.

use super::bench::Bench;
use super::member::{Hosts, Member, Role, STOP_LIMIT};
use crate::error::TailError;
use crate::resources::{Units, sample};
use dyno_record::tail::{Resources, Sample};
use std::path::Path;
use std::time::{Duration, Instant};

/// Interval of resource samples.
const SAMPLE_EVERY: Duration = Duration::from_millis(200);

/// Time limit of processes.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    /// Limit after the common start.
    pub(super) at: Duration,
    /// Limit without a new stamp of any process.
    pub(super) quiet: Duration,
}

/// Samples all processes until they have ended.
pub(super) struct Watch<'a> {
    pub(super) bench: &'a Bench<'a>,
    pub(super) hosts: &'a mut Hosts,
    pub(super) began: Instant,
    pub(super) units: Units,
    /// Samples of all server processes together.
    pub(super) server: Vec<Sample>,
    pub(super) interrupted: bool,
}

impl Watch<'_> {
    /// Samples all until the members of `until` have ended. At the limit, after a failure of another member, or after an
    /// interruption, asks them to end and waits for a while. Returns whether it asked them.
    pub(super) fn until(
        &mut self,
        limit: Limit,
        until: &mut [Member],
        others: &mut [Member],
    ) -> Result<bool, TailError> {
        let mut next = self.began.elapsed();
        let (mut stamped, mut stamped_at) = (0, next);
        let mut stopped = None;
        loop {
            let now = self.began.elapsed();
            let mut running = false;
            for member in until.iter_mut() {
                running |= !member.process.has_ended()?;
            }
            if now >= next || !running {
                next = now + SAMPLE_EVERY;
                self.sample(now, until, others)?;
                let bytes = self.stamped_bytes(until);
                if bytes > stamped {
                    (stamped, stamped_at) = (bytes, now);
                }
            }
            if !running {
                return Ok(stopped.is_some());
            }
            // From here on, samples are dropped.
            let mut failed = false;
            for member in others.iter_mut() {
                failed |= member.process.has_failed()?;
            }
            let is_over =
                failed || now >= limit.at || now >= stamped_at.saturating_add(limit.quiet);
            self.interrupted |= (self.bench.interrupted)();
            match stopped {
                None if is_over || self.interrupted => {
                    stopped = Some(now);
                    for member in until.iter_mut() {
                        // A process that has just ended does not read its input.
                        let _ = member.process.say_stop();
                    }
                }
                Some(since) if now >= since + STOP_LIMIT => {
                    until
                        .iter_mut()
                        .try_for_each(|member| member.process.wait(Duration::ZERO).map(|_| ()))?;
                    return Ok(true);
                }
                _ => {}
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn sample(
        &mut self,
        now: Duration,
        until: &mut [Member],
        others: &mut [Member],
    ) -> Result<(), TailError> {
        let at_s = now.as_secs_f64();
        let mut members: Vec<&mut Member> = until.iter_mut().chain(others).collect();
        let ids = |members: &[&mut Member], of: &dyn Fn(&Member) -> bool| -> Vec<u32> {
            let chosen = members.iter().filter(|member| of(member));
            chosen.map(|member| member.id).collect()
        };
        for role in [Role::Produce, Role::Consume] {
            let Some(host) = self.hosts.of(role) else {
                continue;
            };
            let there = |member: &Member| member.is_there && member.role == role;
            let found = host.sample(&ids(&members, &there), at_s)?;
            keep(members.iter_mut().filter(|member| there(member)), found);
        }
        let here = |member: &Member| !member.is_there;
        let own = ids(&members, &here);
        let all: Vec<u32> = own.iter().chain(self.bench.server).copied().collect();
        let mut found = sample(Path::new("/proc"), &all, at_s, self.units);
        let server = found.split_off(own.len());
        keep(members.iter_mut().filter(|member| here(member)), found);
        let server = server.into_iter().reduce(|sum, sample| Sample {
            at_s: sum.at_s,
            cpu_s: sum.cpu_s + sample.cpu_s,
            rss_bytes: sum.rss_bytes + sample.rss_bytes,
            threads: sum.threads + sample.threads,
            processes: sum.processes + sample.processes,
        });
        self.server.extend(server.filter(|sum| sum.processes > 0));
        Ok(())
    }

    /// Bytes of all stamps so far.
    fn stamped_bytes(&mut self, members: &[Member]) -> u64 {
        let here = members.iter().filter(|member| !member.is_there);
        let here = here.flat_map(|member| std::fs::metadata(&member.output));
        let here: u64 = here.map(|file| file.len()).sum();
        let role = members.first().map(|member| member.role);
        let there = role.and_then(|role| self.hosts.of(role).map(|host| host.stamped()));
        here + there.unwrap_or(0)
    }

    pub(super) fn server(&self) -> Option<Resources> {
        let (first, last) = (self.server.first()?, self.server.last()?);
        Some(Resources {
            cpu_s: Some((last.cpu_s - first.cpu_s).max(0.0)),
            samples: self.server.clone(),
        })
    }
}

/// Stores each member's sample, if it exists.
fn keep<'a, 'b: 'a>(members: impl Iterator<Item = &'a mut &'b mut Member>, found: Vec<Sample>) {
    for (member, sample) in members.zip(found) {
        if sample.processes > 0 {
            member.samples.push(sample);
        }
    }
}
