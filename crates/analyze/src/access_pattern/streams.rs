//! Finds interleaved sequential streams among the calls on a file, and gives each call its share of the score.
//!
//! A file keeps a bounded number of heads, the positions where recent calls ended. A call that begins at a
//! head, or at most a gap beyond it, continues the head's run. A run counts from its fourth call on, then from
//! its beginning: among random calls, some begin near a head by chance, and runs of four are very rare. The
//! number of heads is small in a small file for the same reason.

/// Fewest calls of a run that counts as more than chance.
const SHORTEST_RUN: u64 = 4;
/// Most heads of a file, and so of interleaved streams.
const MOST_HEADS: u64 = 32;
/// Fewest heads of a file of any size.
const FEWEST_HEADS: u64 = 2;
/// Start positions per head, so that a random call begins near any head with a probability of at most an
/// eighth.
const PLACES_PER_HEAD: u64 = 8;
/// Credit of a call that ends where the run began: its position is predictable and near, but neither the kernel
/// nor a disk reads ahead backwards.
pub const BACKWARD_CREDIT: f64 = 0.5;

/// Relation of a call to earlier calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The first call of the file.
    First,
    /// The call begins exactly at the end of a stream.
    Adjacent,
    /// The call continues a stream after a gap, or fills an earlier gap.
    Near,
    /// The call ends where a stream began.
    Backward,
    /// The call begins where a recent call began: the same position again.
    Repeat,
    /// No relation.
    Elsewhere,
}

/// Result for a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) relation: Relation,
    /// Distance to its start from the end of its stream, or else of the call before.
    pub(super) distance: i64,
}

/// Counts over the calls so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct StreamCounts {
    /// Calls with a position.
    pub(super) placed: u64,
    /// Calls at the same position again.
    pub(super) repeats: u64,
    pub(super) credit: f64,
    /// Calls that continue a counted run, forward or backward.
    pub(super) continued: u64,
    /// Continuing calls that begin exactly at the run's end.
    pub(super) adjacent: u64,
    /// Continuing calls that go backward.
    pub(super) backward: u64,
    /// Counted runs.
    pub(super) runs: u64,
    /// Calls that continue another stream than the previous call.
    pub(super) switches: u64,
}

/// A run in progress.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// Start and end of the last call.
    start: i64,
    end: i64,
    /// Whether the run goes backward, with its lowest position.
    is_backward: bool,
    calls: u64,
    /// Counts that apply as soon as the run counts.
    pending: StreamCounts,
    /// Skipped bytes that were not filled, and their cost.
    hole_bytes: u64,
    hole_cost: f64,
    /// Number of the last call that used it.
    used: u64,
}

/// The streams of one operation on one file.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    gap: i64,
    heads: Vec<Head>,
    last_head: Option<usize>,
    previous_end: Option<i64>,
    /// The highest seen end of the file.
    extent: u64,
    bytes: u64,
    pub(super) counts: StreamCounts,
}

impl Streams {
    pub(super) fn new(gap_bytes: u64) -> Streams {
        Streams {
            gap: i64::try_from(gap_bytes).unwrap_or(i64::MAX / 4).min(i64::MAX / 4),
            heads: Vec::new(),
            last_head: None,
            previous_end: None,
            extent: 0,
            bytes: 0,
            counts: StreamCounts::default(),
        }
    }

    /// Places a call that moved `bytes` from `offset` on, both not negative. `is_new` says whether none of
    /// these bytes was touched before.
    pub(super) fn place(&mut self, offset: i64, bytes: u64, is_new: bool) -> Placed {
        let size = i64::try_from(bytes).unwrap_or(i64::MAX / 4).max(1);
        let end = offset.saturating_add(size);
        self.extent = self.extent.max(end as u64);
        self.bytes += bytes;
        self.counts.placed += 1;
        let placed = match self.find(offset, end, is_new) {
            Some((head, step)) => self.go_on(head, step, offset, end),
            None => self.begin(offset, end),
        };
        self.previous_end = Some(end);
        placed
    }

    /// The nearest head that the call continues. At equal distance, continuing comes before repeating.
    fn find(&self, offset: i64, end: i64, is_new: bool) -> Option<(usize, Step)> {
        let mut best: Option<(usize, Step, (i64, bool))> = None;
        for (number, head) in self.heads.iter().enumerate() {
            let Some((step, distance)) = head.step(offset, end, self.gap, is_new) else {
                continue;
            };
            let rank = (distance, step == Step::Repeat);
            if best.as_ref().is_none_or(|(_, _, least)| rank < *least) {
                best = Some((number, step, rank));
                if rank == (0, false) {
                    break;
                }
            }
        }
        best.map(|(number, step, _)| (number, step))
    }

    fn go_on(&mut self, number: usize, step: Step, offset: i64, end: i64) -> Placed {
        let is_switch = self.last_head != Some(number);
        self.last_head = Some(number);
        let head = &mut self.heads[number];
        head.used = self.counts.placed;
        let distance = offset - head.end;
        if step == Step::Repeat {
            self.counts.repeats += 1;
            return Placed { relation: Relation::Repeat, distance };
        }
        let relation = match step {
            Step::Forward if distance == 0 => Relation::Adjacent,
            Step::Backward => Relation::Backward,
            _ => Relation::Near,
        };
        head.pending.credit += head.advance(step, offset, end);
        head.calls += 1;
        head.pending.continued += 1;
        head.pending.adjacent += u64::from(relation == Relation::Adjacent);
        head.pending.backward += u64::from(relation == Relation::Backward);
        head.pending.switches += u64::from(is_switch);
        if head.calls >= SHORTEST_RUN {
            head.pending.runs = u64::from(head.calls == SHORTEST_RUN);
            self.counts.add(&head.pending);
            head.pending = StreamCounts::default();
        }
        Placed { relation, distance }
    }

    fn begin(&mut self, offset: i64, end: i64) -> Placed {
        let head = Head {
            start: offset,
            end,
            is_backward: false,
            calls: 1,
            pending: StreamCounts::default(),
            hole_bytes: 0,
            hole_cost: 0.0,
            used: self.counts.placed,
        };
        let room = self.room() as usize;
        while self.heads.len() > room {
            let oldest = self.oldest();
            self.heads.swap_remove(oldest);
        }
        let number = if self.heads.len() < room {
            self.heads.push(head);
            self.heads.len() - 1
        } else {
            let oldest = self.oldest();
            self.heads[oldest] = head;
            oldest
        };
        self.last_head = Some(number);
        Placed {
            relation: match self.previous_end {
                None => Relation::First,
                Some(_) => Relation::Elsewhere,
            },
            distance: offset - self.previous_end.unwrap_or(offset),
        }
    }

    fn oldest(&self) -> usize {
        self.heads
            .iter()
            .enumerate()
            .min_by_key(|(_, head)| head.used)
            .map_or(0, |(number, _)| number)
    }

    /// Number of heads for the seen part of the file.
    fn room(&self) -> u64 {
        let place = self.bytes / self.counts.placed.max(1) + self.gap as u64;
        let places = self.extent / place.max(1);
        (places / PLACES_PER_HEAD).clamp(FEWEST_HEADS, MOST_HEADS)
    }
}

/// How a call continues a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Forward,
    Backward,
    Fill,
    Repeat,
}

impl Head {
    /// How the call from `offset` to `end` continues this run, if at all, and at which distance.
    fn step(&self, offset: i64, end: i64, gap: i64, is_new: bool) -> Option<(Step, i64)> {
        let ahead = offset - self.end;
        if (0..=gap).contains(&ahead) && !self.is_backward {
            return Some((Step::Forward, ahead));
        }
        if offset == self.start {
            return Some((Step::Repeat, 0));
        }
        if !self.is_backward && offset > self.start && offset < self.end && end > self.end {
            return Some((Step::Forward, -ahead));
        }
        let behind = self.start - end;
        let may_turn = self.is_backward || self.calls == 1;
        if (0..=gap).contains(&behind) && may_turn {
            return Some((Step::Backward, behind));
        }
        let size = (end - offset) as u64;
        if is_new && (0..=gap).contains(&behind) && self.hole_bytes >= size {
            return Some((Step::Fill, behind));
        }
        None
    }

    /// Advances the run and returns the call's credit: the requested share of the skipped bytes. Bytes that are
    /// fetched later return the cost of skipping them.
    fn advance(&mut self, step: Step, offset: i64, end: i64) -> f64 {
        let size = (end - offset) as f64;
        match step {
            Step::Forward => {
                let skipped = offset - self.end;
                let credit = if skipped >= 0 {
                    size / (size + skipped as f64)
                } else {
                    (end - self.end) as f64 / size
                };
                if skipped > 0 {
                    self.hole_bytes += skipped as u64;
                    self.hole_cost += 1.0 - credit;
                }
                (self.start, self.end) = (offset, end);
                credit
            }
            Step::Backward => {
                let skipped = (self.start - end) as f64;
                self.is_backward = true;
                (self.start, self.end) = (offset, end);
                BACKWARD_CREDIT * size / (size + skipped)
            }
            Step::Fill => {
                let refund = self.hole_cost * size / self.hole_bytes as f64;
                self.hole_cost -= refund;
                self.hole_bytes -= size as u64;
                1.0 + refund
            }
            Step::Repeat => 0.0,
        }
    }
}

impl StreamCounts {
    fn add(&mut self, other: &StreamCounts) {
        self.credit += other.credit;
        self.continued += other.continued;
        self.adjacent += other.adjacent;
        self.backward += other.backward;
        self.runs += other.runs;
        self.switches += other.switches;
    }

    /// Calls that could have continued a stream: all except the first and repeated ones.
    pub(super) fn judged(&self) -> u64 {
        self.placed.saturating_sub(1 + self.repeats)
    }
}
