//! The ways in which models go on after a cut.

/// How a model sends the next piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Behaviour {
    /// Repeats what it was asked to, and goes on.
    AsAsked,
    /// The same, wrapped in a fence and small talk.
    Fenced,
    /// The same, after thinking aloud.
    Thinking,
    /// The same, after a line about its progress, whether it was asked or not.
    TellsProgress,
    /// Starts the item again that was cut.
    RestartsItem,
    /// Starts the document again.
    RestartsDocument,
    /// Repeats what it was asked to, with other white space.
    OtherSpaces,
    /// Repeats what it was asked to, with other escapes.
    OtherEscapes,
    /// Repeats less than it was asked to.
    RepeatsLess,
    /// Repeats more than it was asked to.
    RepeatsMore,
    /// Apologises.
    Apologises,
    /// Repeats what it was asked to, and nothing more.
    OnlyRepeats,
    /// Says nothing.
    SaysNothing,
    /// Sends JSON that has nothing to do with the document.
    SendsForeignJson,
    /// Goes on where it had stopped, even if white space is missing at the end of what was put in
    /// its mouth, if it knows no other behaviour; asked in another way, it does as asked.
    RemembersBlanks,
}

impl Behaviour {
    /// All of them.
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

    /// Those in which the overlap comes back as it was asked for, and then something new.
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
    /// Whether the answer brings anything new.
    pub fn goes_on(self) -> bool {
        !matches!(
            self,
            Self::Apologises | Self::OnlyRepeats | Self::SaysNothing | Self::SendsForeignJson
        )
    }

    /// Whether what is repeated, if anything is, is what was asked for to the byte.
    pub(super) fn repeats_to_the_byte(self) -> bool {
        Self::AS_ASKED.contains(&self) || self == Self::RemembersBlanks || !self.goes_on()
    }
}
