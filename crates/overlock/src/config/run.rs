//! How a model is reached, how a run goes on, and where it is kept.

use std::time::Duration;

use overlock_llm::{
    ContinuationOptions, Discovery, Kpi, PrefillStyle, RetryPolicy, Strategy, Timeouts,
    strategies_for_prefill,
};

/// A duration of whole seconds, from `LEAST` to a year.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span<const LEAST: u64>(Duration);

/// A time limit, which cannot be 0.
pub(super) type TimeLimit = Span<1>;

/// A time to wait, which may be 0.
pub(super) type Wait = Span<0>;

impl<const LEAST: u64> Span<LEAST> {
    const MOST: u64 = 365 * 24 * 60 * 60;

    pub(super) fn of(duration: Duration) -> Self {
        Self(duration)
    }

    pub(super) fn duration(self) -> Duration {
        self.0
    }

    /// Reads a number with its unit, such as `30s`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let unit = text.find(|character: char| !character.is_ascii_digit())?;
        let (number, unit) = text.split_at(unit);
        let factor = match unit.trim_start() {
            "s" => 1,
            "m" => 60,
            "h" => 60 * 60,
            "d" => 24 * 60 * 60,
            _ => return None,
        };
        let seconds = number.parse::<u64>().ok()?.checked_mul(factor)?;
        let is_allowed = (LEAST..=Self::MOST).contains(&seconds);
        is_allowed.then(|| Self(Duration::from_secs(seconds)))
    }
}

/// The model that is asked.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    pub(crate) url: Option<String>,
    pub(crate) api: Api,
    pub(crate) key_variable: Option<String>,
    pub(crate) prefill: Prefill,
    pub(crate) discovery: Discovery,
    pub(super) connect_timeout: TimeLimit,
    pub(super) response_timeout: TimeLimit,
    pub(super) idle_timeout: TimeLimit,
    pub(super) retries: u32,
}

impl Default for Upstream {
    fn default() -> Self {
        let timeouts = Timeouts::default();
        Self {
            url: None,
            api: Api::ChatCompletions,
            key_variable: None,
            prefill: Prefill::Auto,
            discovery: Discovery::Probe,
            connect_timeout: Span::of(timeouts.connect),
            response_timeout: Span::of(timeouts.first_byte),
            idle_timeout: Span::of(timeouts.silence),
            retries: RetryPolicy::default().retries,
        }
    }
}

impl Upstream {
    pub(crate) fn timeouts(&self) -> Timeouts {
        Timeouts {
            connect: self.connect_timeout.duration(),
            first_byte: self.response_timeout.duration(),
            silence: self.idle_timeout.duration(),
        }
    }

    pub(crate) fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy {
            retries: self.retries,
            ..RetryPolicy::default()
        }
    }
}

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    ChatCompletions,
    Messages,
}

impl Api {
    pub(super) const ALL: [Self; 2] = [Self::ChatCompletions, Self::Messages];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat-completions",
            Self::Messages => "messages",
        }
    }
}

/// How a server is told what the model has said already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefill {
    /// As it is found out.
    Auto,
    Style(PrefillStyle),
}

impl Prefill {
    pub(super) const ALL: [Self; 6] = [
        Self::Auto,
        Self::Style(PrefillStyle::None),
        Self::Style(PrefillStyle::PrefixMessage),
        Self::Style(PrefillStyle::ContinueFinalMessage),
        Self::Style(PrefillStyle::LastMessage),
        Self::Style(PrefillStyle::RawCompletion),
    ];

    pub(super) fn name(self) -> &'static str {
        self.style().map_or("auto", PrefillStyle::name)
    }

    /// The style that is set; nothing if it is to be found out.
    pub(crate) fn style(self) -> Option<PrefillStyle> {
        match self {
            Self::Auto => None,
            Self::Style(style) => Some(style),
        }
    }
}

/// How a run goes on after a cut.
#[derive(Clone, Debug)]
pub(crate) struct Complete {
    pub(crate) strategy: StrategySetting,
    pub(super) max_iterations: u32,
    pub(super) max_failures: u32,
    pub(crate) max_output_tokens: Option<u64>,
    pub(super) deadline: Option<TimeLimit>,
    pub(crate) progress: Progress,
    pub(super) kpi_patience: u32,
}

impl Default for Complete {
    fn default() -> Self {
        let ContinuationOptions {
            max_failures,
            max_iterations,
            max_output_tokens,
            kpi_patience,
            ..
        } = ContinuationOptions::default();
        Self {
            strategy: StrategySetting::Auto,
            max_iterations,
            max_failures,
            max_output_tokens,
            deadline: None,
            progress: Progress::Ask,
            kpi_patience,
        }
    }
}

impl Complete {
    /// What a run may do that is taken up again: what was raised since holds, and so does a limit
    /// on tokens that is given now.
    pub(crate) fn raised(
        &self,
        recorded: ContinuationOptions,
        max_output: Option<u64>,
    ) -> ContinuationOptions {
        ContinuationOptions {
            max_iterations: recorded.max_iterations.max(self.max_iterations),
            max_output_tokens: max_output
                .or(self.max_output_tokens)
                .or(recorded.max_output_tokens),
            ..recorded
        }
    }

    /// How long a run may take.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.deadline.map(Span::duration)
    }

    /// What a run with a model may do, given whether its answer can be begun for it.
    pub(crate) fn options(&self, can_prefill: bool) -> ContinuationOptions {
        let mut options = self.options_for_any();
        if options.ways.is_empty() {
            options.ways = strategies_for_prefill(can_prefill);
        }
        options
    }

    /// What a run may do, whatever the model: without any way if that follows from the model.
    pub(crate) fn options_for_any(&self) -> ContinuationOptions {
        ContinuationOptions {
            ways: match self.strategy {
                StrategySetting::Auto => Vec::new(),
                StrategySetting::Prefill => vec![Strategy::Prefill],
                StrategySetting::Overlap => vec![Strategy::Overlap],
                StrategySetting::Remainder => vec![Strategy::Remainder],
            },
            max_failures: self.max_failures,
            max_iterations: self.max_iterations,
            max_output_tokens: self.max_output_tokens,
            kpi: self.progress.kpi(),
            kpi_patience: self.kpi_patience,
            ..ContinuationOptions::default()
        }
    }
}

/// The continuation strategy that is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StrategySetting {
    Auto,
    Prefill,
    Overlap,
    Remainder,
}

impl StrategySetting {
    pub(crate) const ALL: [Self; 4] = [Self::Auto, Self::Prefill, Self::Overlap, Self::Remainder];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Prefill => "prefill",
            Self::Overlap => "overlap",
            Self::Remainder => "remainder",
        }
    }
}

/// Who tells how far a document has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The model, with every answer.
    Ask,
    /// The document: what is counted in it, the model is asked once.
    Measured,
    Off,
}

impl Progress {
    pub(crate) const ALL: [Self; 3] = [Self::Ask, Self::Measured, Self::Off];

    pub(crate) fn kpi(self) -> Kpi {
        match self {
            Self::Ask => Kpi::Ask,
            Self::Measured => Kpi::Measured(Vec::new()),
            Self::Off => Kpi::Off,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Measured => "measured",
            Self::Off => "off",
        }
    }
}

/// Where runs are recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreSettings {
    pub(crate) url: Option<String>,
}
