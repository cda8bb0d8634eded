//! Counts the parts of a prompt.
//!
//! Counting is the expensive part, so optional pieces are counted in the order in which they stay,
//! and only until no more fit.

use std::collections::HashMap;
use std::ops::Range;

use super::extras::{write_context, write_memories};
use super::line::{CONTEXT, HISTORY, Kept, MEMORIES, PARTS, Pieces, RESULTS, TOOLS};
use super::options::{Extras, Part, PartOptions, PlanOptions, Trim};
use super::results::OldResults;
use crate::chat::{ChatCounter, ChatRole, Content, MessageKind, Request, Tool};
use crate::flex::{FlexError, FlexOptions, Item, Solution, flex};
use crate::history::Units;
use crate::models::Sharing;
use crate::negotiate::Adjustment;

/// The length of the answer: requested, minimum and maximum.
pub(super) struct Answer {
    /// What the caller requests.
    pub(super) requested: u64,
    /// The part of that within the model's limit.
    pub(super) wanted: u64,
    /// Its minimum.
    pub(super) floor: u64,
    /// Its maximum.
    max: u64,
    /// The limit of the model.
    cap: u64,
}

impl Answer {
    pub(super) fn new(requested: Option<u64>, options: &PlanOptions) -> Self {
        let requested = requested.unwrap_or(options.requested);
        let cap = options.answer_cap.unwrap_or(match options.sharing {
            Sharing::Shared => u64::MAX,
            Sharing::Separate => options.window,
        });
        let wanted = requested.min(cap);
        Self {
            requested,
            wanted,
            floor: options.answer_floor.min(wanted),
            max: if options.grow { cap } else { wanted },
            cap,
        }
    }

    /// The tokens of the window that are reserved for it.
    pub(super) fn reserved(&self, options: &PlanOptions) -> u64 {
        match options.sharing {
            Sharing::Shared => self.floor,
            Sharing::Separate => 0,
        }
    }

    /// The available tokens and those it may have, for a known input.
    pub(super) fn settle(&self, input: u64, margin: u64, options: &PlanOptions) -> (u64, u64) {
        let available = match options.sharing {
            Sharing::Shared => options.window.saturating_sub(input.saturating_add(margin)),
            Sharing::Separate => self.cap,
        };
        (available, self.max.min(available))
    }

    pub(super) fn adjustment(&self, adjusted: u64) -> Adjustment {
        if adjusted > self.requested {
            Adjustment::Grown
        } else if adjusted == self.requested {
            Adjustment::Granted
        } else if adjusted == self.cap {
            Adjustment::Capped
        } else {
            Adjustment::Reduced
        }
    }
}

/// The options of the parts that are made of pieces.
pub(super) fn part_options(options: &PlanOptions) -> [PartOptions; PARTS] {
    let others = [
        options.tools,
        options.history,
        options.context,
        options.memories,
    ];
    // Old results become marks before anything else but the answer shrinks.
    let first = others.iter().map(|part| part.priority).min().unwrap_or(0);
    let results = PartOptions::new(first.saturating_sub(1), 1);
    let [tools, history, context, memories] = others;
    let mut parts = [tools, history, context, memories, results];
    if options.trim == Trim::Off {
        parts[TOOLS].required = true;
        parts[HISTORY].required = true;
    }
    // Required parts have no bounds.
    for part in parts.iter_mut().filter(|part| part.required) {
        *part = PartOptions {
            shrink: 0,
            min: 0,
            max: None,
            ..*part
        };
    }
    parts
}

/// Every part of a prompt, counted as far as it can matter.
pub(super) struct Measured<'a> {
    system: (usize, u64),
    last_user_message: (usize, u64),
    /// With marks for old results.
    open_turn: (usize, u64),
    /// By how many tokens the results of the open turn are truncated.
    truncated: u64,
    frame: u64,
    has_system: bool,
    /// The fixed tokens of tools without and with a system message.
    tools_frame: [u64; 2],
    /// The required tools, and their tokens.
    named: (Vec<usize>, u64),
    /// The other tools, in the order in which they stay.
    tools: Vec<usize>,
    /// How many of them are called if none, one, two … units of the history stay.
    called: Vec<usize>,
    pub(super) pieces: [Pieces; PARTS],
    options: [PartOptions; PARTS],
    units: &'a Units,
    /// The index where the history begins if none, one, two … of its units stay.
    starts: Vec<usize>,
    messages: usize,
    blocks: usize,
    memories: usize,
}

impl<'a> Measured<'a> {
    pub(super) fn new(
        request: &'a dyn Request,
        extras: &Extras,
        memories: &[usize],
        results: &OldResults,
        counter: &ChatCounter,
        options: [PartOptions; PARTS],
        room: u64,
    ) -> Self {
        let message = |place: usize, limit: u64| match results.mark(place) {
            Some(mark) => Some(mark.tokens),
            None => counter.message_up_to(request, place, limit),
        };
        let offered = request.tools();
        let count = |places: &[usize]| {
            let tokens = places.iter();
            let tokens = tokens.map(|&place| message(place, u64::MAX).unwrap_or(u64::MAX));
            (places.len(), tokens.fold(0, u64::saturating_add))
        };
        let outline = request.outline();
        let conversation = Conversation::new(&outline.units, &outline.messages);
        let system = count(&conversation.system);
        let last_user_message = count(conversation.last_user_message.as_slice());
        let open_turn = count(&conversation.open_turn);
        let frame = counter.frame(request);
        let has_system = outline.has_system();
        let calls = conversation.calls(request, !offered.is_empty());
        let Tools {
            named,
            others: tools,
            called,
        } = Tools::order(&offered, extras, &calls, conversation.free_units.len());
        let tool = |place: &usize| counter.tool(&offered[*place]);
        let named_tokens = named.iter().map(tool).fold(0, u64::saturating_add);

        let required = [
            system.1,
            last_user_message.1,
            open_turn.1,
            frame,
            named_tokens,
        ];
        let required = required.into_iter().fold(0, u64::saturating_add);
        let room = room.saturating_sub(required);
        let limit = |part: usize| limit(part, &options, room);

        let mut sum = 0_u64;
        let sums = tools.iter().map(|place| {
            sum = sum.saturating_add(tool(place));
            sum
        });
        let tool_pieces = Pieces::from_sums(sums);
        let units = &conversation.free_units;
        let history = Pieces::gather(units.len(), limit(HISTORY), |unit, limit| {
            let mut left = limit;
            for place in conversation.units.free(units[unit].clone()) {
                left = left.checked_sub(message(place, left)?)?;
            }
            Some(limit - left)
        });
        let context = Pieces::gather(extras.context.len(), limit(CONTEXT), |block, _| {
            let block = &extras.context[block];
            let text = write_context(block, block.text);
            Some(counter.text_message(ChatRole::System, &text))
        });
        let told = (1..=memories.len()).map(|count| {
            let told = memories[..count]
                .iter()
                .map(|&place| &extras.memories[place]);
            counter.text_message(ChatRole::System, &write_memories(told))
        });
        Self {
            system,
            last_user_message,
            open_turn,
            truncated: 0,
            frame,
            has_system,
            tools_frame: [false, true].map(|has_system| counter.tools_frame(request, has_system)),
            named: (named, named_tokens),
            tools,
            called,
            pieces: [
                tool_pieces,
                history,
                context,
                Pieces::from_sums(told),
                results.unmarked(request, counter, limit(RESULTS)),
            ],
            options,
            starts: conversation.starts(),
            units: conversation.units,
            messages: outline.messages.len(),
            blocks: extras.context.len(),
            memories: memories.len(),
        }
    }

    /// Adds the difference that a template makes.
    pub(super) fn correct(&mut self, correction: i64) {
        let figures = [
            &mut self.frame,
            &mut self.last_user_message.1,
            &mut self.open_turn.1,
            &mut self.system.1,
        ];
        correct(figures, correction);
    }

    /// Truncates results of the open turn by so many tokens.
    pub(super) fn truncate(&mut self, tokens: u64) {
        self.open_turn.1 = self.open_turn.1.saturating_sub(tokens);
        self.truncated = tokens;
    }

    /// The tokens of all required parts and these pieces, sent together.
    pub(super) fn total(&self, kept: Kept, has_inserted: bool) -> u64 {
        let has_system = self.has_system_with(kept, has_inserted);
        let messages =
            [HISTORY, CONTEXT, MEMORIES, RESULTS].map(|part| self.pieces[part].tokens(kept[part]));
        let rest = [
            self.system.1,
            self.last_user_message.1,
            self.open_turn.1,
            self.frame,
        ];
        messages.into_iter().chain(rest).fold(
            self.tools_tokens(kept[TOOLS], has_system),
            u64::saturating_add,
        )
    }

    fn has_system_with(&self, kept: Kept, has_inserted: bool) -> bool {
        self.has_system || has_inserted || kept[CONTEXT] > 0 || kept[MEMORIES] > 0
    }

    fn tools_tokens(&self, kept: usize, has_system: bool) -> u64 {
        if kept == 0 && self.named.0.is_empty() {
            return 0;
        }
        let tools = self.pieces[TOOLS].tokens(kept).saturating_add(self.named.1);
        tools.saturating_add(self.tools_frame[usize::from(has_system)])
    }

    /// The required pieces.
    pub(super) fn required(&self) -> Kept {
        let part = |part: usize| {
            if self.options[part].required {
                self.pieces[part].len()
            } else {
                0
            }
        };
        let kept = [TOOLS, HISTORY, CONTEXT, MEMORIES, RESULTS].map(part);
        self.with_called_tools(kept)
    }

    /// The same pieces with the tools that the history calls.
    pub(super) fn with_called_tools(&self, mut kept: Kept) -> Kept {
        let called = self.called.get(kept[HISTORY]).copied().unwrap_or(0);
        kept[TOOLS] = kept[TOOLS].max(called);
        kept
    }

    pub(super) fn keeps_all(&self, part: usize, kept: usize) -> bool {
        self.pieces[part].complete && kept == self.pieces[part].len()
    }

    /// Where the history begins if this many of its units stay.
    pub(super) fn history_start(&self, pieces: usize) -> usize {
        self.starts.get(pieces).copied().unwrap_or(0)
    }

    pub(super) fn kept_messages(&self, pieces: usize) -> impl Iterator<Item = usize> {
        self.units.kept_from(self.history_start(pieces))
    }

    pub(super) fn dropped_messages(&self, pieces: usize) -> impl Iterator<Item = usize> {
        self.units.dropped_before(self.history_start(pieces))
    }

    pub(super) fn last_user_message_place(&self) -> Option<usize> {
        self.units.last_user_message()
    }

    /// The indices of the tools that stay, in order.
    pub(super) fn kept_tools(&self, pieces: usize) -> Vec<usize> {
        let mut kept = self.named.0.clone();
        kept.extend(&self.tools[..pieces]);
        kept.sort_unstable();
        kept
    }

    /// The indices of the dropped tools, in order.
    pub(super) fn dropped_tools(&self, pieces: usize) -> Vec<usize> {
        let mut dropped = self.tools[pieces..].to_vec();
        dropped.sort_unstable();
        dropped
    }

    /// The requested and the used tokens of a part, and its numbers of pieces.
    pub(super) fn figures(&self, part: Part, kept: Kept, has_inserted: bool) -> Figures {
        let of = |index: usize, all: usize| Figures {
            asked: self.pieces[index].all(),
            at_least: !self.pieces[index].complete,
            given: self.pieces[index].tokens(kept[index]),
            kept: kept[index],
            dropped: all - kept[index],
        };
        let whole = |(pieces, tokens): (usize, u64)| Figures {
            asked: tokens,
            at_least: false,
            given: tokens,
            kept: pieces,
            dropped: 0,
        };
        match part {
            Part::SystemPrompt => whole(self.system),
            Part::LastUserMessage => whole(self.last_user_message),
            Part::OpenTurn => Figures {
                asked: self.open_turn.1.saturating_add(self.truncated),
                ..whole(self.open_turn)
            },
            Part::Frame | Part::Completion => whole((1, self.frame)),
            Part::Tools => {
                let brought = self.has_system_with(self.required(), false);
                let all = self.tools_tokens(self.tools.len(), brought);
                let has_system = self.has_system_with(kept, has_inserted);
                let given = self.tools_tokens(kept[TOOLS], has_system);
                let figures = of(TOOLS, self.tools.len());
                Figures {
                    asked: all,
                    given,
                    kept: figures.kept + self.named.0.len(),
                    ..figures
                }
            }
            Part::History => {
                let dropped = self.dropped_messages(kept[HISTORY]).count();
                let elsewhere = self.system.0 + self.last_user_message.0 + self.open_turn.0;
                Figures {
                    kept: self.messages - dropped - elsewhere,
                    dropped,
                    ..of(HISTORY, self.pieces[HISTORY].len())
                }
            }
            Part::Context => of(CONTEXT, self.blocks),
            Part::Memories => of(MEMORIES, self.memories),
            Part::Results => of(RESULTS, self.pieces[RESULTS].len()),
        }
    }

    /// Divides the window.
    pub(super) fn flex(
        &self,
        answer: &Answer,
        gap: u64,
        options: &PlanOptions,
    ) -> Result<Solution, FlexError> {
        let figures = |part: Part| self.figures(part, self.required(), false);
        let fixed = |part: Part| Item::required(part.name(), figures(part).given);
        let flexible = |part: Part, index: usize| {
            let PartOptions {
                priority,
                shrink,
                min,
                max,
                required,
            } = self.options[index];
            // Named tools are required; only the others may be dropped.
            let must = figures(part).given;
            let whole = Item::required(part.name(), figures(part).asked);
            let item = Item {
                priority,
                max: max.map(|max| max.max(must)),
                ..whole
            };
            if required || must > 0 {
                Item {
                    shrink: shrink.max(1),
                    min: must,
                    ..item
                }
            } else {
                Item {
                    shrink,
                    min: min.min(whole.basis),
                    droppable: true,
                    ..item
                }
            }
        };
        let mut items = vec![
            fixed(Part::SystemPrompt),
            fixed(Part::LastUserMessage),
            fixed(Part::OpenTurn),
            fixed(Part::Frame),
            flexible(Part::Tools, TOOLS),
            flexible(Part::History, HISTORY),
            flexible(Part::Context, CONTEXT),
            flexible(Part::Memories, MEMORIES),
            flexible(Part::Results, RESULTS),
        ];
        if options.sharing == Sharing::Shared {
            items.push(Item {
                grow: u32::from(options.grow),
                shrink: options.completion.shrink.max(1),
                min: answer.floor,
                max: Some(answer.max),
                priority: options.completion.priority,
                ..Item::required(Part::Completion.name(), answer.wanted)
            });
        }
        let window = options.window;
        flex(&items, &FlexOptions { window, gap })
    }
}

/// Up to how many tokens the pieces of a part are counted.
///
/// Required parts are counted to their end, and so are parts that share their priority with others,
/// because they shrink in proportion to their total. Whether a piece is within the bounds of its part
/// must not depend on the available tokens.
fn limit(part: usize, options: &[PartOptions; PARTS], room: u64) -> u64 {
    let PartOptions {
        priority,
        min,
        max,
        required,
        ..
    } = options[part];
    let mut peers = options.iter().filter(|one| one.priority == priority);
    let is_alone = peers.nth(1).is_none();
    if is_alone && !required {
        room.max(min).max(max.unwrap_or(0))
    } else {
        u64::MAX
    }
}

/// Corrects the first figure, and the next ones if it would become negative.
pub(super) fn correct<'f>(figures: impl IntoIterator<Item = &'f mut u64>, correction: i64) {
    let mut left = correction;
    for figure in figures {
        let corrected = figure.saturating_add_signed(left);
        left = left
            .saturating_add_unsigned(*figure)
            .saturating_sub_unsigned(corrected);
        *figure = corrected;
    }
}

/// The figures of a part.
pub(super) struct Figures {
    pub(super) asked: u64,
    pub(super) at_least: bool,
    pub(super) given: u64,
    pub(super) kept: usize,
    pub(super) dropped: usize,
}

/// The messages of a request by kind.
struct Conversation<'a> {
    system: Vec<usize>,
    last_user_message: Option<usize>,
    /// The rest of the open turn.
    open_turn: Vec<usize>,
    units: &'a Units,
    /// The units that may be dropped, the newest first.
    free_units: Vec<Range<usize>>,
}

impl<'a> Conversation<'a> {
    fn new(units: &'a Units, messages: &[MessageKind]) -> Self {
        let is_system = |place: &usize| messages[*place].is_system();
        let last_user_message = units.last_user_message();
        let open_turn = units.open_start()..messages.len();
        Self {
            system: (0..messages.len()).filter(is_system).collect(),
            last_user_message,
            open_turn: open_turn
                .filter(|place| !is_system(place) && last_user_message != Some(*place))
                .collect(),
            units,
            free_units: units.newest_first().collect(),
        }
    }

    /// The first unit that calls each tool, the newest unit being 1 and the open turn 0.
    fn calls<'r>(&self, request: &'r dyn Request, has_tools: bool) -> HashMap<&'r str, usize> {
        let mut calls = HashMap::new();
        if !has_tools {
            return calls;
        }
        let history = self
            .free_units
            .iter()
            .map(|unit| self.units.free(unit.clone()));
        let open = self.open_turn.iter().copied();
        let units = std::iter::once(open.collect::<Vec<_>>());
        for (unit, places) in units.chain(history.map(Iterator::collect)).enumerate() {
            for place in places {
                request.contents(place, &mut |content| {
                    if let Content::Call { name, .. } = content {
                        calls.entry(name).or_insert(unit);
                    }
                });
            }
        }
        calls
    }

    fn starts(&self) -> Vec<usize> {
        let units = self.free_units.iter().map(|unit| unit.start);
        std::iter::once(self.units.open_start())
            .chain(units)
            .collect()
    }
}

/// The indices of the tools by whether they may be dropped.
struct Tools {
    /// Those that the request requires or the open turn calls.
    named: Vec<usize>,
    /// The others in the order in which they stay: those that the newest units call come first.
    others: Vec<usize>,
    /// How many of the others are called in none, one, two … units.
    called: Vec<usize>,
}

impl Tools {
    fn order(tools: &[Tool], extras: &Extras, calls: &HashMap<&str, usize>, units: usize) -> Self {
        // The open turn is before the first unit.
        let unit = |place: usize| calls.get(tools[place].name).copied();
        let is_named = |place: &usize| tools[*place].is_required || unit(*place) == Some(0);
        let (named, mut others): (Vec<usize>, Vec<usize>) = (0..tools.len()).partition(is_named);
        let importance = |place: usize| extras.tool_importance.get(place).copied().unwrap_or(0.0);
        let rank = |place: usize| unit(place).unwrap_or(usize::MAX);
        others.sort_by(|&one, &other| {
            let by_importance = importance(other).total_cmp(&importance(one));
            rank(one).cmp(&rank(other)).then(by_importance)
        });
        let called = (0..=units)
            .map(|units| others.partition_point(|&place| rank(place) <= units))
            .collect();
        Self {
            named,
            others,
            called,
        }
    }
}
