//! How a scripted model behaves when it is asked to continue.

/// How a model sends the next piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Behaviour {
    /// Repeats the overlap, and continues.
    AsAsked,
    /// The same, in a code fence with a greeting.
    Fenced,
    /// The same, after reasoning.
    Thinking,
    /// The same, after a progress line, even if the prompt did not ask for one.
    TellsProgress,
    /// Repeats the cut item from its start.
    RestartsItem,
    /// Repeats the document from its start.
    RestartsDocument,
    /// Repeats the overlap with other white space.
    OtherSpaces,
    /// Repeats the overlap with other escapes.
    OtherEscapes,
    /// Repeats less than the overlap.
    RepeatsLess,
    /// Repeats more than the overlap.
    RepeatsMore,
    /// Apologises.
    Apologises,
    /// Repeats the overlap, and adds nothing.
    OnlyRepeats,
    /// Sends an empty answer.
    SaysNothing,
    /// Sends JSON unrelated to the document.
    SendsForeignJson,
    /// As the only behaviour of a script: continues a prefill exactly where the model had stopped,
    /// even if white space at its end was left out. Other calls are answered as with `AsAsked`.
    RemembersBlanks,
}

impl Behaviour {
    /// All behaviours.
    pub const ALL: [Self; 15] = [
        Self::AsAsked,
        Self::Fenced,
        Self::Thinking,
        Self::TellsProgress,
        Self::RestartsItem,
        Self::RestartsDocument,
        Self::OtherSpaces,
        Self::OtherEscapes,
        Self::RepeatsLess,
        Self::RepeatsMore,
        Self::Apologises,
        Self::OnlyRepeats,
        Self::SaysNothing,
        Self::SendsForeignJson,
        Self::RemembersBlanks,
    ];

    /// The behaviours that repeat the overlap exactly and then continue.
    pub const AS_ASKED: [Self; 4] = [
        Self::AsAsked,
        Self::Fenced,
        Self::Thinking,
        Self::TellsProgress,
    ];

    /// The name in messages and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::AsAsked => "as-asked",
            Self::Fenced => "fenced",
            Self::Thinking => "thinking",
            Self::TellsProgress => "tells-progress",
            Self::RestartsItem => "restarts-item",
            Self::RestartsDocument => "restarts-document",
            Self::OtherSpaces => "other-spaces",
            Self::OtherEscapes => "other-escapes",
            Self::RepeatsLess => "repeats-less",
            Self::RepeatsMore => "repeats-more",
            Self::Apologises => "apologises",
            Self::OnlyRepeats => "only-repeats",
            Self::SaysNothing => "says-nothing",
            Self::SendsForeignJson => "sends-foreign-json",
            Self::RemembersBlanks => "remembers-blanks",
        }
    }
    /// Whether the answer contains new text.
    pub fn has_new_text(self) -> bool {
        !matches!(
            self,
            Self::Apologises | Self::OnlyRepeats | Self::SaysNothing | Self::SendsForeignJson
        )
    }

    /// Whether the repeated text, if any, equals the overlap byte for byte.
    pub(super) fn repeats_exactly(self) -> bool {
        Self::AS_ASKED.contains(&self) || self == Self::RemembersBlanks || !self.has_new_text()
    }
}
