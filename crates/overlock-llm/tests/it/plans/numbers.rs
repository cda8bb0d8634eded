//! Random sketches, the same every time.

use overlock_budget::Trim;

use super::sketch::{LETTERS, Sketch};

/// A fast deterministic random number generator.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn byte(&mut self, end: u8) -> u8 {
        u8::try_from(self.below(end.into())).unwrap_or(0)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn sketch(&mut self) -> Sketch {
        let place = |number: u64| usize::try_from(number).unwrap_or(0);
        let messages = 1 + self.below(10);
        let mut messages: Vec<(u8, u8)> = (0..messages)
            .map(|_| {
                (
                    LETTERS[place(self.below(LETTERS.len() as u64))],
                    self.byte(40),
                )
            })
            .collect();
        // The open turn is kept, so only messages before a later user message can be trimmed.
        if self.one_in(3) {
            messages.extend([(b'u', 4), (b'W', 4), (b'w', self.byte(200))]);
        } else if !self.one_in(4) {
            messages.push((b'u', self.byte(40)));
        }
        let tools = if self.one_in(3) { self.below(4) } else { 0 };
        let memories = if self.one_in(4) { self.below(4) } else { 0 };
        let context = if self.one_in(4) { self.below(4) } else { 0 };
        let small = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
        Sketch {
            messages,
            tools: (0..tools).map(|_| self.byte(30)).collect(),
            named: (tools > 0 && self.one_in(4)).then_some(0),
            schema: self.one_in(8),
            memories: (0..memories)
                .map(|_| (self.byte(11), self.byte(10), self.byte(40)))
                .collect(),
            context: (0..context).map(|_| self.byte(60)).collect(),
            requested: (!self.one_in(4)).then(|| small(self.below(400))),
            window: small(120 + self.below(500)),
            cap: self.one_in(4).then(|| small(self.below(300))),
            separate: self.one_in(8),
            grow: self.one_in(8),
            truncate: self.one_in(4),
            fill_gaps: !self.one_in(4),
            results: (self.byte(3), 1 + self.byte(3)),
            trim: match self.below(8) {
                0 => Trim::Off,
                1 => Trim::Summary,
                _ => Trim::Oldest,
            },
        }
    }
}
