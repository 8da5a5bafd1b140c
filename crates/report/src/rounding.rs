//! Rounds chart data: more digits than a chart can show only make a page larger.

/// Rounds to significant digits; 0 for non-finite values.
pub(crate) fn rounded(value: f64, significant_digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let leading = value.abs().log10().floor() as i32;
    digits(value, significant_digits - 1 - leading)
}

/// Rounds to decimals; negative numbers round before the point.
pub(crate) fn digits(value: f64, decimals: i32) -> f64 {
    if decimals >= 0 {
        let power = 10f64.powi(decimals);
        (value * power).round() / power
    } else {
        let power = 10f64.powi(-decimals);
        (value / power).round() * power
    }
}
