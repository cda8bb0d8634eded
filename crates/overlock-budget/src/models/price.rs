//! The prices and costs of tokens.
//!
//! Amounts are decimal numbers, computed as integers of their smallest unit, so all sums are exact.
//! The currency is that of the prices that the user sets.

use std::fmt::{self, Display, Formatter};
use std::iter::Sum;
use std::str::FromStr;

/// The maximum number of decimal places of a price.
const PRICE_PLACES: usize = 9;

/// The number of decimal places of a cost, for prices per million tokens.
const COST_PLACES: usize = PRICE_PLACES + 6;

/// The price of a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Price {
    /// In billionths of the currency unit.
    billionths: u64,
}

/// A text is not a price.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a price, such as `0.15`: digits with at most nine after a point")]
pub struct PriceError(pub String);

/// The prices of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// For a million input tokens.
    pub input: Price,
    /// For a million output tokens.
    pub output: Price,
    /// For a million cached input tokens; without it, they cost as much as other input tokens.
    pub cached_input: Option<Price>,
}

/// The cost of calls.
///
/// ```
/// use overlock_budget::{Cost, Prices};
///
/// let prices = Prices {
///     input: "0.15".parse()?,
///     output: "0.6".parse()?,
///     cached_input: None,
/// };
/// let costs = [prices.cost(1316, 0, 20), prices.cost(1, 0, 0)];
/// assert_eq!(costs[0].to_string(), "0.0002094");
/// assert_eq!(costs.into_iter().sum::<Cost>().to_string(), "0.00020955");
/// # Ok::<(), overlock_budget::PriceError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// In units of 10⁻¹⁵.
    parts: u128,
}

impl Prices {
    /// The cost of a call with this many input, cached input and output tokens.
    pub fn cost(&self, input: u64, cached: u64, output: u64) -> Cost {
        let cached = cached.min(input);
        let of = |price: Price, tokens: u64| u128::from(price.billionths) * u128::from(tokens);
        // The sum of three products of 64-bit numbers may exceed 128 bits.
        let parts = of(self.input, input - cached)
            .saturating_add(of(self.cached_input.unwrap_or(self.input), cached))
            .saturating_add(of(self.output, output));
        Cost { parts }
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        Self {
            parts: costs.fold(0, |sum, cost| sum.saturating_add(cost.parts)),
        }
    }
}

impl FromStr for Price {
    type Err = PriceError;

    fn from_str(text: &str) -> Result<Self, PriceError> {
        let wrong = || PriceError(text.to_owned());
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        if !is_digits(whole) || !is_digits(part) || part.len() > PRICE_PLACES {
            return Err(wrong());
        }
        let digits = format!("{whole}{part:0<PRICE_PLACES$}");
        let billionths = digits.parse().map_err(|_| wrong())?;
        Ok(Self { billionths })
    }
}

impl Display for Price {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        decimal(formatter, self.billionths.into(), PRICE_PLACES)
    }
}

impl Display for Cost {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        decimal(formatter, self.parts, COST_PLACES)
    }
}

/// Writes a number with this many decimal places, without trailing zeros.
fn decimal(formatter: &mut Formatter<'_>, parts: u128, places: usize) -> fmt::Result {
    let digits = format!("{parts:0>width$}", width = places + 1);
    let (whole, part) = digits.split_at(digits.len() - places);
    let part = part.trim_end_matches('0');
    let point = if part.is_empty() { "" } else { "." };
    formatter.pad(&format!("{whole}{point}{part}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn price(text: &str) -> Price {
        text.parse().expect("a price")
    }

    proptest! {
        #[test]
        fn a_price_is_told_as_it_was_set(billionths: u64) {
            let price = Price { billionths };
            prop_assert_eq!(price.to_string().parse(), Ok(price));
        }

        #[test]
        fn many_calls_cost_what_they_cost_together(
            calls in prop::collection::vec((0..1_u64 << 40, 0..1_u64 << 40), 0..20),
            input in 0..1_u64 << 40,
            output in 0..1_u64 << 40,
        ) {
            let prices = Prices {
                input: Price { billionths: input },
                output: Price { billionths: output },
                cached_input: None,
            };
            let each: Cost = calls.iter().map(|(read, wrote)| prices.cost(*read, 0, *wrote)).sum();
            let read = calls.iter().map(|(read, _)| read).sum();
            let wrote = calls.iter().map(|(_, wrote)| wrote).sum();
            prop_assert_eq!(each, prices.cost(read, 0, wrote));
        }

        #[test]
        fn no_text_is_taken_for_a_price_by_chance(text: String) {
            if let Ok(price) = text.parse::<Price>() {
                let told = price.to_string();
                let written = match text.split_once('.') {
                    Some((whole, part)) => format!("{whole}.{}", part.trim_end_matches('0')),
                    None => text.clone(),
                };
                let written = written.trim_start_matches('0').trim_end_matches('.');
                let told = told.trim_start_matches('0');
                prop_assert_eq!(told, written);
            }
        }
    }

    #[test]
    fn decimal_sums_are_exact() {
        let prices = Prices {
            input: price("0.1"),
            output: price("0.2"),
            cached_input: Some(price("0.000000001")),
        };
        assert_eq!(prices.cost(1_000_000, 0, 1_000_000).to_string(), "0.3");
        assert_eq!(prices.cost(3, 0, 0).to_string(), "0.0000003");
        assert_eq!(prices.cost(1, 1, 0).to_string(), "0.000000000000001");
        assert_eq!(prices.cost(0, 0, 0).to_string(), "0");
        // More cached than input tokens are impossible.
        assert_eq!(prices.cost(1, 9, 0), prices.cost(1, 1, 0));
    }

    #[test]
    fn rejects_other_text() {
        let wrong = [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e3",
            "0,5",
            " 1",
            "1 ",
            "٣",
            "0.1234567891",
            "NaN",
            "99999999999999999999",
            "18446744073.709551616",
        ];
        for text in wrong {
            assert_eq!(text.parse::<Price>(), Err(PriceError(text.to_owned())));
        }
        assert_eq!(
            price("18446744073.709551615").to_string(),
            "18446744073.709551615"
        );
        assert_eq!(price("007.50").to_string(), "7.5");
    }
}
