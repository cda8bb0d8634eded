//! Counts the parts of a prompt.
//!
//! Counting is the expensive part, so optional pieces are counted in the order in which they stay,
//! and only until no more fit.

use std::ops::Range;

use super::extras::{write_context, write_memories};
use super::line::{CONTEXT, HISTORY, Kept, MEMORIES, PARTS, Pieces, TOOLS};
use super::options::{Extras, Part, PartOptions, PlanOptions, Trim};
use crate::chat::{ChatCounter, ChatRole, MessageKind, Request, Tool};
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
    let mut parts = [
        options.tools,
        options.history,
        options.context,
        options.memories,
    ];
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
    open_turn: (usize, u64),
    frame: u64,
    has_system: bool,
    /// The fixed tokens of tools without and with a system message.
    tools_frame: [u64; 2],
    /// The required tools, and their tokens.
    named: (Vec<usize>, u64),
    /// The other tools, in the order in which they stay.
    tools: Vec<usize>,
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
        offered: &[Tool],
        extras: &Extras,
        memories: &[usize],
        counter: &ChatCounter,
        options: [PartOptions; PARTS],
        room: u64,
    ) -> Self {
        let count = |places: &[usize]| {
            let tokens = places.iter().map(|&place| counter.message(request, place));
            (places.len(), tokens.fold(0, u64::saturating_add))
        };
        let outline = request.outline();
        let conversation = Conversation::new(&outline.units, &outline.messages);
        let system = count(&conversation.system);
        let last_user_message = count(conversation.last_user_message.as_slice());
        let open_turn = count(&conversation.open_turn);
        let frame = counter.frame(request);
        let has_system = outline.has_system();
        let (named, tools) = order_tools(offered, extras);
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
        // Required parts are counted to their end, and so are parts that share their priority with
        // others, because they shrink in proportion to their total. Whether a piece is within the
        // bounds of its part must not depend on the available tokens.
        let limit = |part: usize| {
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
        };

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
                left -= counter.message_up_to(request, place, left)?;
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
            frame,
            has_system,
            tools_frame: [false, true].map(|has_system| counter.tools_frame(request, has_system)),
            named: (named, named_tokens),
            tools,
            pieces: [tool_pieces, history, context, Pieces::from_sums(told)],
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

    /// The tokens of all required parts and these pieces, sent together.
    pub(super) fn total(&self, kept: Kept, has_inserted: bool) -> u64 {
        let has_system = self.has_system_with(kept, has_inserted);
        let messages =
            [HISTORY, CONTEXT, MEMORIES].map(|part| self.pieces[part].tokens(kept[part]));
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
        [TOOLS, HISTORY, CONTEXT, MEMORIES].map(part)
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
            Part::OpenTurn => whole(self.open_turn),
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
        let item = |part: Part| Item::required(part.name(), figures(part).asked);
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
            let whole = item(part);
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
            item(Part::SystemPrompt),
            item(Part::LastUserMessage),
            item(Part::OpenTurn),
            item(Part::Frame),
            flexible(Part::Tools, TOOLS),
            flexible(Part::History, HISTORY),
            flexible(Part::Context, CONTEXT),
            flexible(Part::Memories, MEMORIES),
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

    fn starts(&self) -> Vec<usize> {
        let units = self.free_units.iter().map(|unit| unit.start);
        std::iter::once(self.units.open_start())
            .chain(units)
            .collect()
    }
}

/// The indices of the required tools, and of the others in the order in which they stay.
fn order_tools(tools: &[Tool], extras: &Extras) -> (Vec<usize>, Vec<usize>) {
    let (named, mut others): (Vec<usize>, Vec<usize>) =
        (0..tools.len()).partition(|&place| tools[place].is_required);
    let importance = |place: usize| extras.tool_importance.get(place).copied().unwrap_or(0.0);
    others.sort_by(|&one, &other| importance(other).total_cmp(&importance(one)));
    (named, others)
}
