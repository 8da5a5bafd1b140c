//! Terms used on several kinds of pages.

use crate::page::Definition;

/// Meaning of a 95 % interval.
pub(crate) const INTERVAL: Definition = Definition {
    term: "95 % interval",
    meaning: "Of many such intervals, 95 in 100 hold the true value. Two values whose intervals overlap may be \
              the same.",
};

/// Meaning of a service demand.
pub(crate) const SERVICE_DEMAND: Definition = Definition {
    term: "service demand",
    meaning: "The time that one operation keeps one unit of a resource busy: busy time divided by operations \
              (D = U / X).",
};

/// Meaning of the check of a law.
pub(crate) const LAW_CHECK: Definition = Definition {
    term: "law check",
    meaning: "A measured value compared with the value that a law derives from other measurements. A difference beyond the \
              uncertainty of both is a measurement error, not a property of the server.",
};
