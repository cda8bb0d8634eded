//! The settings of the upstream, of continuations, and of the store.

use std::time::Duration;

use overlock_llm::{
    ContinuationOptions, Discovery, Kpi, PrefillStyle, RetryPolicy, Strategy, Timeouts,
    strategies_for_prefill,
};

/// A duration of whole seconds, from `LEAST` to a year.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DurationSetting<const LEAST: u64>(Duration);

/// A time limit, which must not be 0.
pub(super) type TimeLimit = DurationSetting<1>;

/// A time to wait, which may be 0.
pub(super) type Wait = DurationSetting<0>;

impl<const LEAST: u64> DurationSetting<LEAST> {
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

#[derive(Clone, Debug)]
pub(crate) struct UpstreamSettings {
    pub(crate) url: Option<String>,
    pub(crate) api: Api,
    pub(crate) key_variable: Option<String>,
    pub(crate) prefill: PrefillSetting,
    pub(crate) discovery: Discovery,
    pub(super) connect_timeout: TimeLimit,
    pub(super) response_timeout: TimeLimit,
    pub(super) idle_timeout: TimeLimit,
    pub(super) retries: u32,
}

impl Default for UpstreamSettings {
    fn default() -> Self {
        let timeouts = Timeouts::default();
        Self {
            url: None,
            api: Api::ChatCompletions,
            key_variable: None,
            prefill: PrefillSetting::Auto,
            discovery: Discovery::Probe,
            connect_timeout: DurationSetting::of(timeouts.connect),
            response_timeout: DurationSetting::of(timeouts.first_byte),
            idle_timeout: DurationSetting::of(timeouts.silence),
            retries: RetryPolicy::default().retries,
        }
    }
}

impl UpstreamSettings {
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
    Responses,
    Messages,
}

impl Api {
    pub(super) const ALL: [Self; 3] = [Self::ChatCompletions, Self::Responses, Self::Messages];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat-completions",
            Self::Responses => "responses",
            Self::Messages => "messages",
        }
    }
}

/// How a server accepts the beginning of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrefillSetting {
    /// Discovered.
    Auto,
    Style(PrefillStyle),
}

impl PrefillSetting {
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

    /// The configured style, `None` if it is discovered.
    pub(crate) fn style(self) -> Option<PrefillStyle> {
        match self {
            Self::Auto => None,
            Self::Style(style) => Some(style),
        }
    }
}

/// How cut answers are continued.
#[derive(Clone, Debug)]
pub(crate) struct CompleteSettings {
    pub(crate) strategy: StrategySetting,
    pub(super) max_iterations: u32,
    pub(super) max_failures: u32,
    pub(crate) max_output_tokens: Option<u64>,
    pub(super) deadline: Option<TimeLimit>,
    pub(crate) progress: ProgressSetting,
    pub(super) kpi_patience: u32,
}

impl Default for CompleteSettings {
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
            progress: ProgressSetting::Ask,
            kpi_patience,
        }
    }
}

impl CompleteSettings {
    /// The options of a resumed run: the recorded ones, with limits that were raised since and the
    /// limit on tokens that is given now.
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

    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.deadline.map(DurationSetting::duration)
    }

    /// The options of a run with a model, which may support prefill.
    pub(crate) fn options(&self, can_prefill: bool) -> ContinuationOptions {
        let mut options = self.options_for_any();
        if options.strategies.is_empty() {
            options.strategies = strategies_for_prefill(can_prefill);
        }
        options
    }

    /// The options of a run with any model. With the strategy `auto` they have no strategies, since
    /// these depend on the model.
    pub(crate) fn options_for_any(&self) -> ContinuationOptions {
        ContinuationOptions {
            strategies: match self.strategy {
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

/// The configured continuation strategy.
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

/// How the progress of a document is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressSetting {
    /// The model gives a percentage in every answer.
    Ask,
    /// The model names once what to count in the document.
    Measured,
    Off,
}

impl ProgressSetting {
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

#[derive(Clone, Debug, Default)]
pub(crate) struct StoreSettings {
    pub(crate) url: Option<String>,
}
