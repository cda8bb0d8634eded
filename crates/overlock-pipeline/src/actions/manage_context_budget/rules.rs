//! The rules for compacting texts before they enter the context.

use overlock_code::{CompactOptions, Language, Level};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::actions::KeyPath;
use crate::file::Findings;

/// The rules for compacting texts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct CompactCode {
    /// The rules, of which the first match applies.
    pub rules: Vec<Rule>,
    /// What makes a rule match.
    #[serde(default, rename = "match")]
    pub matching: Matching,
}

/// What makes a rule match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Matching {
    /// Its language.
    #[default]
    First,
    /// Its language, and its policy.
    Triggered,
}

/// When to compact texts of a language.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct Rule {
    /// The language.
    pub language: RuleLanguage,
    /// When the rule applies.
    pub policy: Policy,
    /// For `threshold`: the share of `max_context_tokens` above which it applies.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 1.0))]
    pub threshold: Option<f64>,
    /// For `demand`: the topic of the mail that requests it.
    #[schemars(length(min = 1))]
    pub inbox_key: Option<String>,
    /// How much to remove.
    #[serde(default)]
    pub level: CompactLevel,
}

/// A language that can be compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleLanguage {
    /// SQL of any dialect.
    Sql,
    /// .NET, including .NET with embedded SQL.
    Dotnet,
}

impl RuleLanguage {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sql => "sql",
            Self::Dotnet => "dotnet",
        }
    }
}

/// When a rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Always.
    Always,
    /// When the context would exceed a share of its budget.
    Threshold,
    /// When a step has requested it by mail.
    Demand,
}

impl Policy {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Threshold => "threshold",
            Self::Demand => "demand",
        }
    }

    /// Why a rule does not apply, for the trace.
    pub(super) fn not_yet(self) -> &'static str {
        match self {
            Self::Always => "",
            Self::Threshold => "below_threshold",
            Self::Demand => "no_demand",
        }
    }
}

/// How much to remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactLevel {
    /// Comments and layout.
    #[default]
    Lossless,
    /// Method bodies too.
    Outline,
}

impl From<CompactLevel> for Level {
    fn from(level: CompactLevel) -> Self {
        match level {
            CompactLevel::Lossless => Self::Lossless,
            CompactLevel::Outline => Self::Outline,
        }
    }
}

/// The circumstances that rules depend on.
pub(super) struct Occasion<'a> {
    /// The tokens of the context with the uncompacted text. A function, because counting all of the
    /// context for every text is slow and only thresholds need it.
    pub(super) raw_tokens: &'a dyn Fn() -> u64,
    pub(super) max: u64,
    /// The topics of requests by mail.
    pub(super) demanded: &'a [&'a str],
}

impl CompactCode {
    /// The rule for a text, and whether its condition holds.
    pub(super) fn rule_for(
        &self,
        language: Language,
        occasion: &Occasion<'_>,
    ) -> Option<(&Rule, bool)> {
        let mut rules = self
            .rules
            .iter()
            .filter(|rule| rule.language.name() == language.rule_name());
        match self.matching {
            Matching::First => rules.next().map(|rule| (rule, rule.holds(occasion))),
            Matching::Triggered => rules
                .find(|rule| rule.holds(occasion))
                .map(|rule| (rule, true)),
        }
    }

    pub(super) fn check(&self, findings: &mut Findings<'_>) {
        for (index, rule) in self.rules.iter().enumerate() {
            let path = |key: &str| {
                let mut path = KeyPath::item("rules", index, key);
                path.0.insert(0, "compact_code".to_owned());
                path
            };
            let is_threshold = rule.policy == Policy::Threshold;
            let is_demand = rule.policy == Policy::Demand;
            if is_threshold && rule.threshold.is_none() {
                findings.error(
                    &path("policy"),
                    "`policy: threshold` needs a `threshold`",
                    "set it to a share of the budget, such as `threshold: 0.4`",
                );
            }
            if is_demand && rule.inbox_key.is_none() {
                findings.error(
                    &path("policy"),
                    "`policy: demand` needs an `inbox_key`",
                    "set it to the topic of the mail that requests it, such as `inbox_key: compact_sql`",
                );
            }
            if !is_threshold && rule.threshold.is_some() {
                findings.error(
                    &path("threshold"),
                    "`threshold` is for `policy: threshold` only",
                    "remove it, or write `policy: threshold`",
                );
            }
            if !is_demand && rule.inbox_key.is_some() {
                findings.error(
                    &path("inbox_key"),
                    "`inbox_key` is for `policy: demand` only",
                    "remove it, or write `policy: demand`",
                );
            }
            let mut before = self.rules[..index].iter();
            let shadows = |other: &Rule| {
                let is_shadow = match self.matching {
                    Matching::First => true,
                    Matching::Triggered => other.policy == Policy::Always,
                };
                is_shadow && other.language == rule.language
            };
            if before.any(shadows) {
                let name = rule.language.name();
                let help = match self.matching {
                    Matching::First => "remove one of them, or add `match: triggered`",
                    Matching::Triggered => {
                        "remove it, or move it before the rule that always applies"
                    }
                };
                findings.warning(
                    &path("language"),
                    &format!("this rule is never reached: an earlier one for `{name}` wins"),
                    help,
                );
            }
        }
    }
}

impl Rule {
    pub(super) fn options(&self) -> CompactOptions {
        CompactOptions {
            level: self.level.into(),
            ..CompactOptions::default()
        }
    }

    /// Whether its condition holds.
    fn holds(&self, occasion: &Occasion<'_>) -> bool {
        match self.policy {
            Policy::Always => true,
            Policy::Threshold => self
                .threshold
                .is_some_and(|share| (occasion.raw_tokens)() > share_of(share, occasion.max)),
            Policy::Demand => self
                .inbox_key
                .as_deref()
                .is_some_and(|key| occasion.demanded.contains(&key)),
        }
    }
}

/// The integer part of `share * max` in decimal arithmetic: 0.29 of 100 is 29, but less in binary
/// floating point.
pub(super) fn share_of(share: f64, max: u64) -> u64 {
    let written = share.to_string();
    let (whole, fraction) = written.split_once('.').unwrap_or((&written, ""));
    let digits = format!("{whole}{fraction}").parse::<u128>();
    let scale = u32::try_from(fraction.len())
        .ok()
        .and_then(|places| 10_u128.checked_pow(places));
    let exact = digits.ok().zip(scale).and_then(|(digits, scale)| {
        let share = u128::from(max).checked_mul(digits)? / scale;
        u64::try_from(share).ok()
    });
    // Reached only for shares with too many digits for exact arithmetic.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "the share is between 0 and 1"
    )]
    exact.unwrap_or((share * max as f64) as u64)
}
