//! Errors of numbers, and how several make one.

/// Confidence of intervals where nothing else was asked for.
pub const DEFAULT_CONFIDENCE_RATIO: f64 = 0.95;

/// Uncertainties of independent errors taken together.
pub(crate) fn combined(uncertainties: &[f64]) -> f64 {
    uncertainties.iter().map(|u| u * u).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn independent_errors_add_up_by_their_squares() {
        assert_eq!(combined(&[3.0, 4.0]), 5.0);
    }
}
