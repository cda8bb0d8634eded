//! The types that settings have, and how they are read and written.

use std::path::{Path, PathBuf};

use overlock_budget::{Price, Trim};
use overlock_llm::Discovery;
use overlock_runs::Record;

use super::TRIMS;
use super::run::{Api, Prefill, Progress, Span, StrategySetting};
use super::serve::Log;

/// A value as it was written.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    /// A whole number, if it is one that can be held.
    Integer(Option<i128>),
    /// A number with a point, and its digits: not every one of them is one that a machine holds.
    Fraction(f64, String),
    Flag(bool),
    /// Without quotes or type, as the environment has it.
    Bare(String),
    /// Anything else, by what it is called.
    Other(&'static str),
}

impl Value {
    /// What it is, for whoever expected something else.
    fn told(&self) -> String {
        match self {
            Self::Text(text) | Self::Bare(text) => format!("`{text}`"),
            Self::Integer(Some(number)) => format!("`{number}`"),
            Self::Integer(None) => "a number beyond all bounds".into(),
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
    /// What may be set to it.
    fn expected(&self) -> String;

    /// Takes a value, and says whether it could. A relative path is one in `folder`.
    fn take(&mut self, value: &Value, folder: &Path) -> bool;

    /// The value as it stands in a file, if there is one.
    fn written(&self) -> Option<String>;

    /// Takes a value, or says what is wrong with it.
    fn set(&mut self, value: &Value, folder: &Path) -> Result<(), String> {
        if self.take(value, folder) {
            return Ok(());
        }
        Err(format!(
            "is {}, and must be {}",
            value.told(),
            self.expected()
        ))
    }
}

impl<S: Setting + Default> Setting for Option<S> {
    fn expected(&self) -> String {
        S::default().expected()
    }

    fn take(&mut self, value: &Value, folder: &Path) -> bool {
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
        "a text that is not empty".into()
    }

    fn take(&mut self, value: &Value, _: &Path) -> bool {
        match value {
            Value::Text(text) | Value::Bare(text) if !text.is_empty() => {
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

    fn take(&mut self, value: &Value, folder: &Path) -> bool {
        match value {
            Value::Text(text) | Value::Bare(text) if !text.is_empty() => {
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

    fn take(&mut self, value: &Value, _: &Path) -> bool {
        let flag = match value {
            Value::Flag(flag) => Some(*flag),
            Value::Bare(text) => text.trim().parse().ok(),
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

            fn take(&mut self, value: &Value, _: &Path) -> bool {
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
    u64: "a whole number from 0 on",
    usize: "a whole number from 0 on",
    u32: "a whole number from 0 to 4294967295",
    i32: "a whole number from -2147483648 to 2147483647"
}

/// A number that must not be 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AtLeastOne<N>(pub(super) N);

impl<N: Setting + Default + PartialEq> Setting for AtLeastOne<N> {
    fn expected(&self) -> String {
        "a whole number from 1 on".into()
    }

    fn take(&mut self, value: &Value, folder: &Path) -> bool {
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

impl<const LEAST: u64> Setting for Span<LEAST> {
    fn expected(&self) -> String {
        format!("a duration from {LEAST}s to 365d, such as \"30s\", \"5m\" or \"2h\"")
    }

    fn take(&mut self, value: &Value, _: &Path) -> bool {
        let span = match value {
            Value::Text(text) | Value::Bare(text) => Self::parse(text.trim()),
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
        "what a million tokens cost, such as `0.15`, with at most nine digits after the point"
            .into()
    }

    fn take(&mut self, value: &Value, _: &Path) -> bool {
        let price = match value {
            Value::Fraction(_, digits) => digits.parse().ok(),
            Value::Integer(Some(number)) => number.to_string().parse().ok(),
            Value::Text(text) | Value::Bare(text) => text.trim().parse().ok(),
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
        "a number from 0 on".into()
    }

    fn take(&mut self, value: &Value, _: &Path) -> bool {
        let number = match value {
            Value::Fraction(number, _) => Some(*number),
            Value::Bare(text) => text.trim().parse().ok(),
            #[expect(
                clippy::cast_precision_loss,
                reason = "so large a number has no fraction"
            )]
            Value::Integer(number) => number.map(|number| number as f64),
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

            fn take(&mut self, value: &Value, _: &Path) -> bool {
                let choice = match value {
                    Value::Text(name) | Value::Bare(name) => {
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
    Prefill: Prefill::ALL,
    Discovery: Discovery::ALL,
    StrategySetting: StrategySetting::ALL,
    Progress: Progress::ALL,
    Record: Record::ALL,
    Log: Log::ALL
}
