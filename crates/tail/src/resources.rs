//! Resource use of a process and its children, from `/proc`.

use dyno_record::tail::Sample;
use std::fs;
use std::path::Path;

/// Needed fields of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    cpu_ticks: u64,
    threads: u64,
    rss_pages: u64,
}

/// Parses a line of `stat`. The name in parentheses may contain parentheses and spaces.
fn parse(line: &str) -> Option<Stat> {
    let after_name = &line[line.rfind(')')? + 1..];
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    // The first field after the name is number 3 of proc(5).
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Stat {
        parent: u32::try_from(field(4)?).ok()?,
        // user, system, and both for reaped children
        cpu_ticks: field(14)? + field(15)? + field(16)? + field(17)?,
        threads: field(20)?,
        rss_pages: field(24)?,
    })
}

/// Units of `/proc`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units {
    pub(crate) ticks_per_s: f64,
    pub(crate) page_bytes: u64,
}

impl Units {
    pub(crate) fn read() -> Self {
        use nix::unistd::{SysconfVar, sysconf};
        let value = |variable| sysconf(variable).ok().flatten();
        Units {
            ticks_per_s: value(SysconfVar::CLK_TCK).map_or(100.0, |ticks| ticks as f64),
            page_bytes: value(SysconfVar::PAGE_SIZE).map_or(4096, |bytes| bytes as u64),
        }
    }
}

/// Snapshot of all processes of a host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stats(Vec<(u32, Stat)>);

impl Stats {
    /// Reads the processes of `proc` (`/proc`).
    fn read(proc: &Path) -> Stats {
        let mut stats = Stats::default();
        for entry in fs::read_dir(proc).into_iter().flatten().flatten() {
            let is_process = entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit);
            // A process may end between listing and reading.
            let line = is_process.then(|| fs::read_to_string(entry.path().join("stat")).ok());
            line.flatten().iter().for_each(|line| stats.add(line));
        }
        stats
    }

    /// Adds a line of `stat`; ignores one that is not valid.
    pub(crate) fn add(&mut self, line: &str) {
        let id = line.split(' ').next().and_then(|id| id.parse().ok());
        self.0.extend(id.zip(parse(line)));
    }
}

/// Samples each process with all its descendants, in one pass over `proc` (`/proc`). An ended process has 0 processes.
pub(crate) fn sample(proc: &Path, roots: &[u32], at_s: f64, units: Units) -> Vec<Sample> {
    families(&Stats::read(proc), roots, at_s, units)
}

/// Like [`sample`], for processes already read.
pub(crate) fn families(stats: &Stats, roots: &[u32], at_s: f64, units: Units) -> Vec<Sample> {
    let stats = &stats.0;
    let sample = |root: &u32| {
        let mut family = vec![*root];
        let mut place = 0;
        while place < family.len() {
            let parent = family[place];
            let children = stats.iter().filter(|(_, stat)| stat.parent == parent);
            let children: Vec<u32> = children.map(|(id, _)| *id).collect();
            family.extend(children.into_iter().filter(|id| *id != parent));
            place += 1;
        }
        let mut sum = Sample { at_s, ..Sample::default() };
        for (_, stat) in stats.iter().filter(|(id, _)| family.contains(id)) {
            sum.cpu_s += stat.cpu_ticks as f64 / units.ticks_per_s;
            sum.rss_bytes += stat.rss_pages * units.page_bytes;
            sum.threads += stat.threads;
            sum.processes += 1;
        }
        sum
    };
    roots.iter().map(sample).collect()
}

/// CPU time of a process and its reaped children, in seconds; available until the process itself is reaped.
pub(crate) fn cpu_s_of(id: u32) -> Option<f64> {
    let line = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    Some(parse(&line)?.cpu_ticks as f64 / Units::read().ticks_per_s)
}

/// CPU time in seconds from the first sample, just before the start, to the end of the process if known (`at_end_s`). Unreaped
/// children count only up to the last sample.
pub(crate) fn used_s(samples: &[Sample], at_end_s: Option<f64>) -> Option<f64> {
    let seen = samples.iter().map(|sample| sample.cpu_s).fold(0.0, f64::max);
    Some(at_end_s?.max(seen) - samples.first()?.cpu_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: u32, parent: u32, ticks: u64) -> String {
        format!(
            "{id} (a) b (c)) S {parent} 1 1 0 -1 4194304 100 0 0 0 {ticks} 5 2 1 20 0 3 0 12345 999999 50 \
             18446744073709551615 1 1\n"
        )
    }

    #[test]
    fn stat_line_is_parsed_with_any_process_name() {
        let stat = Stat { parent: 7, cpu_ticks: 108, threads: 3, rss_pages: 50 };
        assert_eq!(parse(&line(9, 7, 100)), Some(stat));
        assert_eq!(parse("9 (short) S 1"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn cpu_time_of_unreaped_children_counts() {
        let at = |cpu_s| Sample { cpu_s, ..Sample::default() };
        assert_eq!(used_s(&[at(1.0), at(3.0)], Some(3.5)), Some(2.5));
        assert_eq!(used_s(&[at(1.0), at(3.0)], Some(0.5)), Some(2.0));
        assert_eq!(used_s(&[], Some(1.0)), None);
        assert_eq!(used_s(&[at(1.0)], None), None);
    }

    #[test]
    fn only_descendants_are_counted_with_their_process() {
        let proc = tempfile::tempdir().unwrap();
        for (id, parent, ticks) in [(10, 1, 92), (11, 10, 192), (12, 11, 0), (20, 1, 9)] {
            let folder = proc.path().join(id.to_string());
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("stat"), line(id, parent, ticks)).unwrap();
        }
        let units = Units { ticks_per_s: 100.0, page_bytes: 4096 };
        let found = sample(proc.path(), &[10, 99], 1.5, units);
        let expected =
            Sample { at_s: 1.5, cpu_s: 3.08, rss_bytes: 3 * 50 * 4096, threads: 9, processes: 3 };
        assert_eq!(found[0], expected);
        assert_eq!(found[1].processes, 0);
    }
}
