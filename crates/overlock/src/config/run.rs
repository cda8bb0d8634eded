//! How a model is reached, how a run goes on, and where it is kept.

use std::time::Duration;

use overlock_model::{
    ContinuationOptions, Discovery, Kpi, PrefillStyle, RetryPolicy, Timeouts, Way, ways_for,
};

/// A time in whole seconds, up to a year: whoever waits longer has mistyped it, and beyond some
/// thousand million years it cannot be added to the time of day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seconds(pub(super) u64);

impl Seconds {
    pub(super) const MOST: u64 = 365 * 24 * 60 * 60;

    pub(super) fn duration(self) -> Duration {
        Duration::from_secs(self.0)
    }
}

/// The model that is asked.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    pub(crate) url: Option<String>,
    pub(crate) speech: Speech,
    pub(crate) key_variable: Option<String>,
    pub(crate) prefill: Prefill,
    pub(crate) discovery: Discovery,
    pub(super) connect_seconds: Seconds,
    pub(super) first_byte_seconds: Seconds,
    pub(super) silence_seconds: Seconds,
    pub(super) retries: u32,
}

impl Default for Upstream {
    fn default() -> Self {
        let timeouts = Timeouts::default();
        Self {
            url: None,
            speech: Speech::OpenAi,
            key_variable: None,
            prefill: Prefill::Auto,
            discovery: Discovery::Probe,
            connect_seconds: Seconds(timeouts.connect.as_secs()),
            first_byte_seconds: Seconds(timeouts.first_byte.as_secs()),
            silence_seconds: Seconds(timeouts.silence.as_secs()),
            retries: RetryPolicy::default().retries,
        }
    }
}

impl Upstream {
    pub(crate) fn timeouts(&self) -> Timeouts {
        Timeouts {
            connect: self.connect_seconds.duration(),
            first_byte: self.first_byte_seconds.duration(),
            silence: self.silence_seconds.duration(),
        }
    }

    pub(crate) fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy {
            retries: self.retries,
            ..RetryPolicy::default()
        }
    }
}

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speech {
    OpenAi,
    Anthropic,
}

impl Speech {
    pub(super) const ALL: [Self; 2] = [Self::OpenAi, Self::Anthropic];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
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
    pub(crate) asking: Asking,
    pub(super) max_iterations: u32,
    pub(super) max_failures: u32,
    pub(crate) max_output_tokens: Option<u64>,
    pub(super) deadline_seconds: Option<Seconds>,
    pub(crate) progress: Progress,
    pub(super) patience: u32,
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
            asking: Asking::Auto,
            max_iterations,
            max_failures,
            max_output_tokens,
            deadline_seconds: None,
            progress: Progress::Ask,
            patience: kpi_patience,
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
        self.deadline_seconds.map(Seconds::duration)
    }

    /// What a run with a model may do, given whether its answer can be begun for it.
    pub(crate) fn options(&self, can_prefill: bool) -> ContinuationOptions {
        let mut options = self.options_for_any();
        if options.ways.is_empty() {
            options.ways = ways_for(can_prefill);
        }
        options
    }

    /// What a run may do, whatever the model: without any way if that follows from the model.
    pub(crate) fn options_for_any(&self) -> ContinuationOptions {
        ContinuationOptions {
            ways: match self.asking {
                Asking::Auto => Vec::new(),
                Asking::Prefill => vec![Way::Prefill],
                Asking::Overlap => vec![Way::Overlap],
                Asking::Remainder => vec![Way::Remainder],
            },
            max_failures: self.max_failures,
            max_iterations: self.max_iterations,
            max_output_tokens: self.max_output_tokens,
            kpi: self.progress.kpi(),
            kpi_patience: self.patience,
            ..ContinuationOptions::default()
        }
    }
}

/// How a model is asked for the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    Auto,
    Prefill,
    Overlap,
    Remainder,
}

impl Asking {
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
