//! Finds sequential streams among the calls on a file, however many of them are interleaved, and
//! gives each call its share of the score.
//!
//! A file keeps a bounded number of heads, the places where recent calls ended. A call that begins
//! at a head, or at most a gap beyond it, continues the head's run. A run counts from its fourth
//! call on, then from its beginning: among random calls, some begin near a head by chance, and
//! runs of four hardly ever do. The number of heads is small in a small file for the same reason.

/// Calls that make a run one that is more than chance.
const SHORTEST_RUN: u64 = 4;
/// Most heads of a file: as many interleaved streams are found.
const MOST_HEADS: u64 = 32;
/// Fewest heads of a file, however small it is.
const FEWEST_HEADS: u64 = 2;
/// There is one head for this many places that a call could begin at, so that a random call begins
/// near one of all heads with a chance of an eighth at most.
const PLACES_PER_HEAD: u64 = 8;
/// What a call is worth that ends where the run began: its place is foreseeable and near, but
/// neither the kernel nor a disk reads ahead backwards.
pub const BACKWARD_CREDIT: f64 = 0.5;

/// How a call stands to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The first one of the file.
    First,
    /// It begins exactly where a stream ended.
    Adjacent,
    /// It goes on with a stream after a gap, or fills one that was left.
    Near,
    /// It ends where a stream began.
    Backward,
    /// It begins where a recent call began: the same place again.
    Repeat,
    /// None of these.
    Elsewhere,
}

/// What is known of a call after looking at it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) relation: Relation,
    /// From the end of the stream that it continues, else of the call before it, to its start.
    pub(super) distance: i64,
    /// What it, and earlier calls of its run that count from now on, add to the score.
    pub(super) credit: f64,
}

/// Counts over the calls so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct StreamCounts {
    /// Calls with a place.
    pub(super) placed: u64,
    /// Calls at the same place again.
    pub(super) repeats: u64,
    /// Sum of the credits.
    pub(super) credit: f64,
    /// Calls that continue a run that counts, forward or backward.
    pub(super) continued: u64,
    /// Of these, the ones that begin exactly at its end.
    pub(super) adjacent: u64,
    /// Of these, the ones that go backward.
    pub(super) backward: u64,
    /// Runs that count.
    pub(super) runs: u64,
    /// Calls that continue another stream than the call before them.
    pub(super) switches: u64,
}

/// A run under way.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// Where the last call began and ended.
    start: i64,
    end: i64,
    /// Lowest place of a run that goes backward.
    is_backward: bool,
    calls: u64,
    /// What counts as soon as the run does.
    pending: StreamCounts,
    /// Bytes that were passed over and not filled, and what this cost.
    hole_bytes: u64,
    hole_cost: f64,
    /// Number of the call that used it last.
    used: u64,
}

/// The streams of one operation on one file.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    gap: i64,
    heads: Vec<Head>,
    last_head: Option<usize>,
    previous_end: Option<i64>,
    /// End of the file as far as it was seen.
    extent: u64,
    bytes: u64,
    pub(super) counts: StreamCounts,
}

impl Streams {
    pub(super) fn new(gap_bytes: u64) -> Streams {
        Streams {
            gap: i64::try_from(gap_bytes)
                .unwrap_or(i64::MAX / 4)
                .min(i64::MAX / 4),
            heads: Vec::new(),
            last_head: None,
            previous_end: None,
            extent: 0,
            bytes: 0,
            counts: StreamCounts::default(),
        }
    }

    /// Looks at a call that moved `bytes` from `offset` on, neither of them negative. `is_new` says
    /// whether none of it was touched before.
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

    /// The head that the call continues, the nearest one of several. Of two as near, one that goes on
    /// comes before one that is at the same place again.
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
            return Placed {
                relation: Relation::Repeat,
                distance,
                credit: 0.0,
            };
        }
        let relation = match step {
            Step::Forward if distance == 0 => Relation::Adjacent,
            Step::Backward => Relation::Backward,
            _ => Relation::Near,
        };
        let credit = head.advance(step, offset, end);
        head.calls += 1;
        head.pending.credit += credit;
        head.pending.continued += 1;
        head.pending.adjacent += u64::from(relation == Relation::Adjacent);
        head.pending.backward += u64::from(relation == Relation::Backward);
        head.pending.switches += u64::from(is_switch);
        let mut counted = 0.0;
        if head.calls >= SHORTEST_RUN {
            head.pending.runs = u64::from(head.calls == SHORTEST_RUN);
            counted = head.pending.credit;
            self.counts.add(&head.pending);
            head.pending = StreamCounts::default();
        }
        Placed {
            relation,
            distance,
            credit: counted,
        }
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
            credit: 0.0,
        }
    }

    fn oldest(&self) -> usize {
        let ages = self.heads.iter().enumerate();
        ages.min_by_key(|(_, head)| head.used)
            .map_or(0, |(number, _)| number)
    }

    /// How many heads the part of the file that was seen has room for.
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
    /// Whether and how the call from `offset` to `end` continues this run, and how far from it.
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

    /// Moves the run on and returns what the call is worth: the share of the bytes passed over that
    /// it asked for. Bytes that are fetched later are given back what passing over them cost.
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

    /// Calls that could have continued a stream: all but the first and those at the same place.
    pub(super) fn judged(&self) -> u64 {
        self.placed.saturating_sub(1 + self.repeats)
    }
}
