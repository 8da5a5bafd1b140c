//! Terms that several kinds of pages use.

use crate::page::Definition;

/// What one of many intervals means.
pub(crate) const INTERVAL: Definition = Definition {
    term: "95 % interval",
    meaning: "Of many such intervals, 95 in 100 hold the true value. Two values whose intervals overlap may be \
              the same.",
};

/// What an operation needs of a resource.
pub(crate) const SERVICE_DEMAND: Definition = Definition {
    term: "service demand",
    meaning: "The time that one operation keeps one unit of a resource busy: busy time divided by operations \
              (D = U / X).",
};

/// What the check of a law is.
pub(crate) const LAW_CHECK: Definition = Definition {
    term: "law check",
    meaning: "A measured value against the one that a law makes of other measurements. A difference beyond the \
              uncertainty of both is an error of measurement, not a property of the server.",
};
