//! Every key there is, and what may be set to it.
//!
//! A new setting is a field of [`Config`] and a line here.

use std::path::{Path, PathBuf};

use overlock_budget::{Price, Trim};
use overlock_gateway::Record;
use overlock_model::Discovery;

use super::run::{Asking, Prefill, Progress, Seconds, Speech};
use super::serve::Log;
use super::{Config, OwnModel, TRIMS};

/// One key: its name below that of its table, with dots, and the field it sets.
pub(super) struct Key<T> {
    pub(super) name: &'static str,
    pub(super) field: fn(&mut T) -> &mut dyn Setting,
}

/// The keys that stand alone, each of which has a variable in the environment as well.
pub(super) const KEYS: &[Key<Config>] = &[
    Key {
        name: "budget.model",
        field: |config| &mut config.budget.model,
    },
    Key {
        name: "budget.max_tokens",
        field: |config| &mut config.budget.plan.requested,
    },
    Key {
        name: "budget.answer_floor",
        field: |config| &mut config.budget.plan.answer_floor,
    },
    Key {
        name: "budget.grow",
        field: |config| &mut config.budget.plan.grow,
    },
    Key {
        name: "budget.margin",
        field: |config| &mut config.budget.plan.margin,
    },
    Key {
        name: "budget.trim",
        field: |config| &mut config.budget.plan.trim,
    },
    Key {
        name: "budget.summary_tokens",
        field: |config| &mut config.budget.plan.summary_tokens,
    },
    Key {
        name: "budget.drop_step",
        field: |config| &mut config.budget.plan.drop_step,
    },
    Key {
        name: "budget.truncate_context",
        field: |config| &mut config.budget.plan.truncate_context,
    },
    Key {
        name: "budget.fill_gaps",
        field: |config| &mut config.budget.plan.fill_gaps,
    },
    Key {
        name: "budget.tools.priority",
        field: |config| &mut config.budget.plan.tools.priority,
    },
    Key {
        name: "budget.tools.shrink",
        field: |config| &mut config.budget.plan.tools.shrink,
    },
    Key {
        name: "budget.tools.min",
        field: |config| &mut config.budget.plan.tools.min,
    },
    Key {
        name: "budget.tools.max",
        field: |config| &mut config.budget.plan.tools.max,
    },
    Key {
        name: "budget.history.priority",
        field: |config| &mut config.budget.plan.history.priority,
    },
    Key {
        name: "budget.history.shrink",
        field: |config| &mut config.budget.plan.history.shrink,
    },
    Key {
        name: "budget.history.min",
        field: |config| &mut config.budget.plan.history.min,
    },
    Key {
        name: "budget.history.max",
        field: |config| &mut config.budget.plan.history.max,
    },
    Key {
        name: "budget.context.priority",
        field: |config| &mut config.budget.plan.context.priority,
    },
    Key {
        name: "budget.context.shrink",
        field: |config| &mut config.budget.plan.context.shrink,
    },
    Key {
        name: "budget.context.min",
        field: |config| &mut config.budget.plan.context.min,
    },
    Key {
        name: "budget.context.max",
        field: |config| &mut config.budget.plan.context.max,
    },
    Key {
        name: "budget.memories.priority",
        field: |config| &mut config.budget.plan.memories.priority,
    },
    Key {
        name: "budget.memories.shrink",
        field: |config| &mut config.budget.plan.memories.shrink,
    },
    Key {
        name: "budget.memories.min",
        field: |config| &mut config.budget.plan.memories.min,
    },
    Key {
        name: "budget.memories.max",
        field: |config| &mut config.budget.plan.memories.max,
    },
    Key {
        name: "budget.completion.priority",
        field: |config| &mut config.budget.plan.completion.priority,
    },
    Key {
        name: "budget.memory.importance",
        field: |config| &mut config.budget.plan.memory.importance,
    },
    Key {
        name: "budget.memory.days",
        field: |config| &mut config.budget.plan.memory.days,
    },
    Key {
        name: "budget.memory.count",
        field: |config| &mut config.budget.plan.memory.count,
    },
    Key {
        name: "upstream.url",
        field: |config| &mut config.upstream.url,
    },
    Key {
        name: "upstream.speech",
        field: |config| &mut config.upstream.speech,
    },
    Key {
        name: "upstream.key_variable",
        field: |config| &mut config.upstream.key_variable,
    },
    Key {
        name: "upstream.prefill",
        field: |config| &mut config.upstream.prefill,
    },
    Key {
        name: "upstream.discovery",
        field: |config| &mut config.upstream.discovery,
    },
    Key {
        name: "upstream.connect_seconds",
        field: |config| &mut config.upstream.connect_seconds,
    },
    Key {
        name: "upstream.first_byte_seconds",
        field: |config| &mut config.upstream.first_byte_seconds,
    },
    Key {
        name: "upstream.silence_seconds",
        field: |config| &mut config.upstream.silence_seconds,
    },
    Key {
        name: "upstream.retries",
        field: |config| &mut config.upstream.retries,
    },
    Key {
        name: "complete.asking",
        field: |config| &mut config.complete.asking,
    },
    Key {
        name: "complete.max_iterations",
        field: |config| &mut config.complete.max_iterations,
    },
    Key {
        name: "complete.max_failures",
        field: |config| &mut config.complete.max_failures,
    },
    Key {
        name: "complete.max_output_tokens",
        field: |config| &mut config.complete.max_output_tokens,
    },
    Key {
        name: "complete.deadline_seconds",
        field: |config| &mut config.complete.deadline_seconds,
    },
    Key {
        name: "complete.progress",
        field: |config| &mut config.complete.progress,
    },
    Key {
        name: "complete.patience",
        field: |config| &mut config.complete.patience,
    },
    Key {
        name: "store.url",
        field: |config| &mut config.store.url,
    },
    Key {
        name: "serve.listen",
        field: |config| &mut config.serve.listen,
    },
    Key {
        name: "serve.keys_variable",
        field: |config| &mut config.serve.keys_variable,
    },
    Key {
        name: "serve.keys_file",
        field: |config| &mut config.serve.keys_file,
    },
    Key {
        name: "serve.log",
        field: |config| &mut config.serve.log,
    },
    Key {
        name: "serve.record",
        field: |config| &mut config.serve.record,
    },
    Key {
        name: "serve.currency",
        field: |config| &mut config.serve.currency,
    },
    Key {
        name: "serve.traces_url",
        field: |config| &mut config.serve.traces_url,
    },
    Key {
        name: "serve.max_total_tokens",
        field: |config| &mut config.serve.max_total_tokens,
    },
    Key {
        name: "serve.close_partial",
        field: |config| &mut config.serve.close_partial,
    },
    Key {
        name: "serve.strict_schema",
        field: |config| &mut config.serve.strict_schema,
    },
    Key {
        name: "serve.body_bytes",
        field: |config| &mut config.serve.body_bytes,
    },
    Key {
        name: "serve.head_seconds",
        field: |config| &mut config.serve.head_seconds,
    },
    Key {
        name: "serve.body_seconds",
        field: |config| &mut config.serve.body_seconds,
    },
    Key {
        name: "serve.write_seconds",
        field: |config| &mut config.serve.write_seconds,
    },
    Key {
        name: "serve.concurrent",
        field: |config| &mut config.serve.concurrent,
    },
    Key {
        name: "serve.queue",
        field: |config| &mut config.serve.queue,
    },
    Key {
        name: "serve.queue_seconds",
        field: |config| &mut config.serve.queue_seconds,
    },
    Key {
        name: "serve.connections",
        field: |config| &mut config.serve.connections,
    },
    Key {
        name: "serve.readers",
        field: |config| &mut config.serve.readers,
    },
    Key {
        name: "serve.shutdown_seconds",
        field: |config| &mut config.serve.shutdown_seconds,
    },
    Key {
        name: "serve.keep_alive_seconds",
        field: |config| &mut config.serve.keep_alive_seconds,
    },
    Key {
        name: "serve.run_seconds",
        field: |config| &mut config.serve.run_seconds,
    },
    Key {
        name: "serve.answer_bytes",
        field: |config| &mut config.serve.answer_bytes,
    },
];

/// The keys of one model.
pub(super) const MODEL_KEYS: &[Key<OwnModel>] = &[
    Key {
        name: "window",
        field: |model| &mut model.window,
    },
    Key {
        name: "shared",
        field: |model| &mut model.shared,
    },
    Key {
        name: "answer_cap",
        field: |model| &mut model.answer_cap,
    },
    Key {
        name: "tokenizer",
        field: |model| &mut model.tokenizer,
    },
    Key {
        name: "tokenizer_config",
        field: |model| &mut model.tokenizer_config,
    },
    Key {
        name: "chat_template",
        field: |model| &mut model.chat_template,
    },
    Key {
        name: "prefill",
        field: |model| &mut model.prefill,
    },
    Key {
        name: "json",
        field: |model| &mut model.json,
    },
    Key {
        name: "tools",
        field: |model| &mut model.tools,
    },
    Key {
        name: "input_price",
        field: |model| &mut model.input_price,
    },
    Key {
        name: "output_price",
        field: |model| &mut model.output_price,
    },
    Key {
        name: "cached_input_price",
        field: |model| &mut model.cached_input_price,
    },
];

impl<T> Key<T> {
    /// The variable that sets it.
    pub(super) fn variable(&self) -> String {
        format!(
            "OVERLOCK_{}",
            self.name.replace('.', "_").to_ascii_uppercase()
        )
    }
}

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

/// A number of something of which none at all would answer nobody.
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

impl Setting for Seconds {
    fn expected(&self) -> String {
        format!("a whole number of seconds from 0 to {}", Self::MOST)
    }

    fn take(&mut self, value: &Value, folder: &Path) -> bool {
        let mut seconds = self.0;
        let taken = seconds.take(value, folder) && seconds <= Self::MOST;
        if taken {
            self.0 = seconds;
        }
        taken
    }

    fn written(&self) -> Option<String> {
        self.0.written()
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
    Speech: Speech::ALL,
    Prefill: Prefill::ALL,
    Discovery: Discovery::ALL,
    Asking: Asking::ALL,
    Progress: Progress::ALL,
    Record: Record::ALL,
    Log: Log::ALL
}
