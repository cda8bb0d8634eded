//! The types of settings, and how they are read and written.

use std::path::{Path, PathBuf};

use overlock_budget::{Price, Trim};
use overlock_llm::Discovery;
use overlock_runs::Record;

use super::TRIMS;
use super::run::{Api, DurationSetting, PrefillSetting, ProgressSetting, StrategySetting};
use super::serve::Log;

/// A value as written by the user.
#[derive(Clone, Debug)]
pub(super) enum WrittenValue {
    Text(String),
    /// `None` if it is too large.
    Integer(Option<i128>),
    /// The number, and its digits, since not all of them fit into the number.
    Fraction(f64, String),
    Flag(bool),
    /// Without quotes or type, from an environment variable.
    Bare(String),
    /// The type of anything else.
    Other(&'static str),
}

impl WrittenValue {
    /// The value for error messages.
    fn shown(&self) -> String {
        match self {
            Self::Text(text) | Self::Bare(text) => format!("`{text}`"),
            Self::Integer(Some(number)) => format!("`{number}`"),
            Self::Integer(None) => "a number that is too large".into(),
            Self::Fraction(_, digits) => format!("`{digits}`"),
            Self::Flag(flag) => format!("`{flag}`"),
            Self::Other(name) => (*name).to_owned(),
        }
    }

    fn integer(&self) -> Option<i128> {
        match self {
            Self::Integer(number) => *number,
            Self::Bare(text) => text.trim().parse().ok(),
            _ => None,
        }
    }
}

/// A field that can be set by a key.
pub(super) trait Setting {
    /// The valid values.
    fn expected(&self) -> String;

    /// Sets a value and returns true if it is valid. A relative path starts from `folder`.
    fn take(&mut self, value: &WrittenValue, folder: &Path) -> bool;

    /// The value as written in a file, if there is one.
    fn written(&self) -> Option<String>;

    /// Sets a value, or returns the problem.
    fn set(&mut self, value: &WrittenValue, folder: &Path) -> Result<(), String> {
        if self.take(value, folder) {
            return Ok(());
        }
        Err(format!(
            "is {}, but must be {}",
            value.shown(),
            self.expected()
        ))
    }
}

impl<S: Setting + Default> Setting for Option<S> {
    fn expected(&self) -> String {
        S::default().expected()
    }

    fn take(&mut self, value: &WrittenValue, folder: &Path) -> bool {
        let mut setting = S::default();
        let taken = setting.take(value, folder);
        if taken {
            *self = Some(setting);
        }
        taken
    }

    fn written(&self) -> Option<String> {
        self.as_ref()?.written()
    }
}

impl Setting for String {
    fn expected(&self) -> String {
        "a non-empty string".into()
    }

    fn take(&mut self, value: &WrittenValue, _: &Path) -> bool {
        match value {
            WrittenValue::Text(text) | WrittenValue::Bare(text) if !text.is_empty() => {
                self.clone_from(text);
                true
            }
            _ => false,
        }
    }

    fn written(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }
}

impl Setting for PathBuf {
    fn expected(&self) -> String {
        "the path of a file".into()
    }

    fn take(&mut self, value: &WrittenValue, folder: &Path) -> bool {
        match value {
            WrittenValue::Text(text) | WrittenValue::Bare(text) if !text.is_empty() => {
                *self = folder.join(text);
                true
            }
            _ => false,
        }
    }

    fn written(&self) -> Option<String> {
        Some(format!("{:?}", self.display().to_string()))
    }
}

impl Setting for bool {
    fn expected(&self) -> String {
        "`true` or `false`".into()
    }

    fn take(&mut self, value: &WrittenValue, _: &Path) -> bool {
        let flag = match value {
            WrittenValue::Flag(flag) => Some(*flag),
            WrittenValue::Bare(text) => text.trim().parse().ok(),
            _ => None,
        };
        *self = flag.unwrap_or(*self);
        flag.is_some()
    }

    fn written(&self) -> Option<String> {
        Some(self.to_string())
    }
}

macro_rules! whole_numbers {
    ($($number:ty: $expected:literal),*) => {$(
        impl Setting for $number {
            fn expected(&self) -> String {
                $expected.into()
            }

            fn take(&mut self, value: &WrittenValue, _: &Path) -> bool {
                let number = value.integer().and_then(|number| number.try_into().ok());
                *self = number.unwrap_or(*self);
                number.is_some()
            }

            fn written(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )*};
}

whole_numbers! {
    u64: "a non-negative integer",
    usize: "a non-negative integer",
    u32: "an integer from 0 to 4294967295",
    i32: "an integer from -2147483648 to 2147483647"
}

/// A number that must not be 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AtLeastOne<N>(pub(super) N);

impl<N: Setting + Default + PartialEq> Setting for AtLeastOne<N> {
    fn expected(&self) -> String {
        "a positive integer".into()
    }

    fn take(&mut self, value: &WrittenValue, folder: &Path) -> bool {
        let mut number = N::default();
        let taken = number.take(value, folder) && number != N::default();
        if taken {
            self.0 = number;
        }
        taken
    }

    fn written(&self) -> Option<String> {
        self.0.written()
    }
}

impl<const LEAST: u64> Setting for DurationSetting<LEAST> {
    fn expected(&self) -> String {
        format!("a duration from {LEAST}s to 365d, such as \"30s\", \"5m\" or \"2h\"")
    }

    fn take(&mut self, value: &WrittenValue, _: &Path) -> bool {
        let span = match value {
            WrittenValue::Text(text) | WrittenValue::Bare(text) => Self::parse(text.trim()),
            _ => None,
        };
        *self = span.unwrap_or(*self);
        span.is_some()
    }

    fn written(&self) -> Option<String> {
        Some(format!("\"{}s\"", self.duration().as_secs()))
    }
}

impl Setting for Price {
    fn expected(&self) -> String {
        "the price of a million tokens, such as `0.15`, with at most nine digits after the point"
            .into()
    }

    fn take(&mut self, value: &WrittenValue, _: &Path) -> bool {
        let price = match value {
            WrittenValue::Fraction(_, digits) => digits.parse().ok(),
            WrittenValue::Integer(Some(number)) => number.to_string().parse().ok(),
            WrittenValue::Text(text) | WrittenValue::Bare(text) => text.trim().parse().ok(),
            _ => None,
        };
        *self = price.unwrap_or(*self);
        price.is_some()
    }

    fn written(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Setting for f64 {
    fn expected(&self) -> String {
        "a non-negative number".into()
    }

    fn take(&mut self, value: &WrittenValue, _: &Path) -> bool {
        let number = match value {
            WrittenValue::Fraction(number, _) => Some(*number),
            WrittenValue::Bare(text) => text.trim().parse().ok(),
            #[expect(
                clippy::cast_precision_loss,
                reason = "a number that large needs no exact value"
            )]
            WrittenValue::Integer(number) => number.map(|number| number as f64),
            _ => None,
        };
        let number = number.filter(|number| number.is_finite() && *number >= 0.0);
        *self = number.unwrap_or(*self);
        number.is_some()
    }

    fn written(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }
}

/// A setting that is one of a few names.
macro_rules! choices {
    ($($choice:ty: $all:expr),*) => {$(
        impl Setting for $choice {
            fn expected(&self) -> String {
                let names = $all.map(|choice| format!("`{}`", choice.name()));
                names.join(" or ")
            }

            fn take(&mut self, value: &WrittenValue, _: &Path) -> bool {
                let choice = match value {
                    WrittenValue::Text(name) | WrittenValue::Bare(name) => {
                        $all.into_iter().find(|choice| choice.name() == name)
                    }
                    _ => None,
                };
                *self = choice.unwrap_or(*self);
                choice.is_some()
            }

            fn written(&self) -> Option<String> {
                Some(format!("{:?}", self.name()))
            }
        }
    )*};
}

choices! {
    Trim: TRIMS,
    Api: Api::ALL,
    PrefillSetting: PrefillSetting::ALL,
    Discovery: Discovery::ALL,
    StrategySetting: StrategySetting::ALL,
    ProgressSetting: ProgressSetting::ALL,
    Record: Record::ALL,
    Log: Log::ALL
}
