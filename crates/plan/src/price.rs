//! Price of a bench.

use crate::units::UnitError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

const EXPECTED: &str = "a price of an hour, such as `0.504/h` or `0.504 USD/h`";

/// Largest number of characters of a currency.
const MOST_CHARACTERS: usize = 8;

/// Price of all machines of a bench together.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PricePlan {
    /// Price per hour, above 0.
    pub per_h: f64,
    /// Currency of the price, such as `USD`; one to eight characters without blanks, digits and
    /// `/`.
    pub currency: Option<String>,
}

impl PricePlan {
    /// Whether the price is valid.
    pub(crate) fn has_value(&self) -> bool {
        self.per_h.is_finite() && self.per_h > 0.0
    }

    /// Whether a text can be a currency.
    pub(crate) fn has_currency(&self) -> bool {
        let is_odd =
            |c: char| c.is_whitespace() || c.is_control() || c.is_numeric() || "/-+.,".contains(c);
        self.currency.as_ref().is_none_or(|currency| {
            let length = currency.chars().count();
            (1..=MOST_CHARACTERS).contains(&length) && !currency.contains(is_odd)
        })
    }
}

/// Parses a number and `/h`, with the currency before or after the number.
impl FromStr for PricePlan {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let malformed = || UnitError::Malformed { text: text.into(), expected: EXPECTED };
        let amount = text.trim().strip_suffix("/h").ok_or_else(malformed)?.trim();
        let is_digit = |c: char| c.is_ascii_digit() || c == '.';
        let start = amount.find(is_digit).ok_or_else(malformed)?;
        let (before, rest) = amount.split_at(start);
        let end = rest.find(|c| !is_digit(c)).unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let currency = match (before.trim(), after.trim()) {
            ("", "") => None,
            (currency, "") | ("", currency) => Some(currency.to_owned()),
            _ => return Err(malformed()),
        };
        let per_h = number.parse().map_err(|_| malformed())?;
        let price = PricePlan { per_h, currency };
        if !price.has_currency() {
            return Err(malformed());
        }
        match price.has_value() {
            true => Ok(price),
            false => Err(UnitError::Range { text: text.into(), range: "a price must be above 0" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn price_has_a_number_an_hour_and_perhaps_a_currency() {
        let price =
            |text: &str| text.parse::<PricePlan>().map(|price| (price.per_h, price.currency));
        let usd = Some("USD".to_owned());
        assert_eq!(price("0.504/h").unwrap(), (0.504, None));
        assert_eq!(price(" 0.504 USD/h ").unwrap(), (0.504, usd.clone()));
        assert_eq!(price("USD 12/h").unwrap(), (12.0, usd));
        assert_eq!(price("€3.5/h").unwrap(), (3.5, Some("€".to_owned())));
        for bad in [
            "0.504",
            "/h",
            "x/h",
            "-1/h",
            "0/h",
            "1 USD EUR/h",
            "USD 1 EUR/h",
            "1.2.3/h",
            "1/min",
            "1e3/h",
            "1 toolongname/h",
        ] {
            assert!(price(bad).is_err(), "{bad}");
        }
    }
}
