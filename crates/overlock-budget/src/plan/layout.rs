//! Decides which pieces are in the prompt, and which messages are inserted.

use std::collections::HashMap;

use super::explain;
use super::extras::{choose_memories, summary_line, write_context, write_memories};
use super::line::{self, CONTEXT, HISTORY, Kept, MEMORIES, PARTS, RESULTS, Step, TOOLS};
use super::measure::{Answer, Figures, Measured, correct, part_options};
use super::options::{Extras, Part, PartOptions, PlanOptions, Trim};
use super::results::{self, OldResults, ShortResult};
use super::{Insertion, Margin, Plan, PlanError, PlannedPart, ShortenedResult};
use crate::chat::{ChatCounter, ChatRole, MessageKind, Request, SentMessage, Tool};
use crate::count::{Keep, Provenance};
use crate::flex::{Change, FlexError, Solution};
use crate::history::summarise;
use crate::models::Sharing;

/// The input of a plan.
pub(super) struct Planner<'a> {
    request: &'a dyn Request,
    extras: &'a Extras<'a>,
    counter: &'a ChatCounter<'a>,
    options: &'a PlanOptions,
    parts: [PartOptions; PARTS],
    messages: &'a [MessageKind],
    tools: Vec<Tool<'a>>,
    /// The indices of the memories to include.
    memories: Vec<usize>,
    old_results: OldResults,
    /// The results of the open turn that are truncated, with their messages.
    truncated_results: Vec<(usize, ShortResult)>,
    /// The tokens that stay free in a full window.
    margin: u64,
    answer: Answer,
    measured: Measured<'a>,
    /// The window without the margin and the minimum of the answer.
    room: u64,
}

/// The content of the prompt.
struct Layout {
    kept: Kept,
    /// The summary of dropped messages.
    summary: Option<Inserted>,
    /// A truncated context block.
    truncated: Option<Inserted>,
}

impl Layout {
    fn inserts(&self) -> bool {
        self.summary.is_some() || self.truncated.is_some()
    }
}

/// The progress along the line of pieces.
struct Walk {
    kept: Kept,
    /// The tokens left for them, after an answer of higher priority.
    room: u64,
    /// Whether a piece of each part did not fit.
    stopped: [bool; PARTS],
}

/// A message that is not in the request.
struct Inserted {
    text: String,
    tokens: u64,
}

impl<'a> Planner<'a> {
    pub(super) fn new(
        request: &'a dyn Request,
        extras: &'a Extras<'a>,
        counter: &'a ChatCounter<'a>,
        options: &'a PlanOptions,
        correction: i64,
    ) -> Self {
        let answer = Answer::new(request.outline().requested, options);
        let tools = request.tools();
        let memories = choose_memories(extras.memories, &options.memory);
        let parts = part_options(options);
        let (room, margin) = room(counter.provenance(request), &answer, options);
        let corrected = room.saturating_add_signed(correction.saturating_neg());
        let old_results = match options.trim {
            Trim::Off => OldResults::default(),
            Trim::Oldest | Trim::Summary => OldResults::of(request, counter, &options.results),
        };
        let mut measured = Measured::new(
            request,
            extras,
            &memories,
            &old_results,
            counter,
            parts,
            corrected,
        );
        measured.correct(correction);
        Self {
            request,
            extras,
            counter,
            options,
            parts,
            messages: &request.outline().messages,
            tools,
            memories,
            old_results,
            truncated_results: Vec::new(),
            margin,
            answer,
            measured,
            room,
        }
    }

    pub(super) fn plan(&mut self) -> Result<Plan, PlanError> {
        match self.flex() {
            Ok(solution) => Ok(self.finish(&self.layout(), &solution)),
            // Without the optional parts, the counts may be more exact and need a smaller margin.
            Err(_) => self.plan_least(),
        }
    }

    /// Every part, with all optional pieces dropped.
    pub(super) fn least_parts(&mut self) -> Vec<PlannedPart> {
        self.truncate_results(u64::MAX);
        let nothing = Solution {
            shares: Vec::new(),
            unused: 0,
            blocker: None,
        };
        self.parts_of(&self.least(), &nothing, self.answer.floor)
    }

    /// Plans only the required parts, with truncated results if they do not fit.
    pub(super) fn plan_least(&mut self) -> Result<Plan, PlanError> {
        let layout = self.least();
        let provenance = self.provenance_of(layout.kept);
        let (room, margin) = room(provenance, &self.answer, self.options);
        let needed = self.measured.total(layout.kept, false);
        let over = needed.saturating_sub(room);
        if over > 0 {
            self.truncate_results(over);
        }
        let solution = self.measured.flex(&self.answer, margin, self.options)?;
        Ok(self.finish(&layout, &solution))
    }

    /// Truncates results of the open turn by so many tokens in all, if possible.
    fn truncate_results(&mut self, over: u64) {
        if self.options.trim == Trim::Off {
            return;
        }
        let open = self.request.outline().units.open_start()..self.messages.len();
        let results = open.filter(|&place| {
            self.messages[place].is_result() && self.old_results.mark(place).is_none()
        });
        let results: Vec<usize> = results.collect();
        let (request, counter) = (self.request, self.counter);
        let floor = self.options.results.floor;
        self.truncated_results = results::truncate(request, counter, &results, over, floor);
        let saved = self.truncated_results.iter().map(|(place, short)| {
            counter
                .message(request, *place)
                .saturating_sub(short.tokens)
        });
        self.measured.truncate(saved.sum());
    }

    /// The tokens of the required parts by the template, and their sum without it.
    pub(super) fn least_tokens(&self) -> Option<(u64, u64)> {
        let kept = self.least().kept;
        let shortened: HashMap<usize, String> = self
            .shortened(kept)
            .into_iter()
            .map(|short| (short.message, short.text))
            .collect();
        let messages = self.measured.kept_messages(kept[HISTORY]);
        let messages = messages.map(|place| match shortened.get(&place) {
            Some(text) => SentMessage::Shortened(place, text),
            None => SentMessage::Kept(place),
        });
        let tools = self.measured.kept_tools(kept[TOOLS]);
        let tokens = self.whole(messages, &tools)?;
        Some((tokens, self.measured.total(kept, false)))
    }

    /// The results that are sent with another text, in order.
    fn shortened(&self, kept: Kept) -> Vec<ShortenedResult> {
        let start = self.measured.history_start(kept[HISTORY]);
        let marked = self.old_results.marked(kept[RESULTS]);
        let marked = marked.filter(|place| *place >= start);
        let marks = marked.filter_map(|place| Some((place, self.old_results.mark(place)?)));
        let truncated = self
            .truncated_results
            .iter()
            .map(|(place, short)| (*place, short));
        let shortened = marks
            .chain(truncated)
            .map(|(message, short)| ShortenedResult {
                message,
                text: short.text.clone(),
            });
        let mut shortened: Vec<ShortenedResult> = shortened.collect();
        shortened.sort_by_key(|short| short.message);
        shortened
    }

    /// The tokens of the whole request by the template, if the template accepts it.
    pub(super) fn whole<'s>(
        &self,
        messages: impl Iterator<Item = SentMessage<'s>>,
        tools: &[usize],
    ) -> Option<u64> {
        let tools = tools.iter();
        let tools = tools.map(|&place| self.tools[place].template.as_ref().clone());
        self.counter.whole(self.request, messages, tools)
    }

    /// Corrects a plan by the tokens of its whole request; returns whether it still fits.
    pub(super) fn recount(&self, plan: &mut Plan, tokens: u64) -> bool {
        let planned = plan.input_token_count.cast_signed();
        let correction = tokens.cast_signed().saturating_sub(planned);
        plan.margin.tokens = margin(plan.provenance, tokens, self.options);
        let (available, adjusted) = self.answer.settle(tokens, plan.margin.tokens, self.options);
        plan.input_token_count = tokens;
        plan.available = available;
        plan.adjusted_max_tokens = adjusted;
        plan.adjustment = self.answer.adjustment(adjusted);
        let (mut input, completion): (Vec<&mut PlannedPart>, Vec<&mut PlannedPart>) = plan
            .parts
            .iter_mut()
            .partition(|part| part.part != Part::Completion);
        input.sort_by_key(|part| part.part != Part::Frame);
        correct(input.into_iter().map(|part| &mut part.given), correction);
        for part in completion {
            part.given = adjusted;
        }
        plan.fits() && adjusted >= self.answer.reserved(self.options)
    }

    /// Divides the window.
    fn flex(&self) -> Result<Solution, FlexError> {
        self.measured.flex(&self.answer, self.margin, self.options)
    }

    fn least(&self) -> Layout {
        Layout {
            kept: self.measured.required(),
            summary: None,
            truncated: None,
        }
    }

    /// How exact the count of the request is.
    fn provenance_of(&self, kept: Kept) -> Provenance {
        let places = self.measured.kept_messages(kept[HISTORY]);
        let messages = places.map(|place| self.messages[place].provenance).max();
        let messages = messages.unwrap_or(Provenance::Exact);
        let has_tools = !self.measured.kept_tools(kept[TOOLS]).is_empty();
        self.counter
            .provenance_with(self.request, messages, has_tools)
    }

    fn layout(&self) -> Layout {
        let mut walk = self.walk(0);
        let is_summarised = self.options.trim == Trim::Summary && !self.keeps_history(&walk);
        if is_summarised {
            walk = self.walk(self.summary_reserve());
        }
        self.round_history(&mut walk.kept);
        walk.kept = self.measured.with_called_tools(walk.kept);
        let summary = if is_summarised {
            self.summary(&walk)
        } else {
            None
        };
        let truncated = self.truncated(&walk, summary.as_ref());
        Layout {
            kept: walk.kept,
            summary,
            truncated,
        }
    }

    /// Takes pieces along the line as long as they fit, with `reserve` tokens for a summary.
    fn walk(&self, reserve: u64) -> Walk {
        let mut walk = Walk {
            kept: self.measured.required(),
            room: self.room,
            stopped: [false; PARTS],
        };
        for step in self.line() {
            match step {
                Step::Answer => {
                    let kept = self.measured.with_called_tools(walk.kept);
                    let left = walk.room.saturating_sub(self.measured.total(kept, false));
                    let wanted = self.answer.wanted - self.answer.floor;
                    walk.room -= left.min(wanted);
                }
                Step::Keep { part, .. } if walk.stopped[part] => {}
                // Marks stay as long as turns are dropped, so that they change rarely.
                Step::Keep { part: RESULTS, .. } if !self.keeps_history(&walk) => {}
                Step::Keep { part, pieces } => {
                    let mut more = walk.kept;
                    more[part] = pieces;
                    let sent = self.measured.with_called_tools(more);
                    let aside = if self.is_before_history(part) {
                        0
                    } else {
                        reserve
                    };
                    let tokens = self.measured.total(sent, false).saturating_add(aside);
                    let room = match self.options.results.trigger {
                        Some(trigger) if part == RESULTS => walk.room.min(trigger),
                        _ => walk.room,
                    };
                    if tokens <= room {
                        walk.kept = more;
                        continue;
                    }
                    walk.stopped[part] = true;
                    // What is left of the room goes to a truncated block.
                    let is_truncated = part == CONTEXT && self.options.truncate_context;
                    if is_truncated || !self.options.fill_gaps {
                        break;
                    }
                }
            }
        }
        walk
    }

    fn line(&self) -> Vec<Step> {
        let answer = match self.options.sharing {
            Sharing::Shared => Some(self.options.completion.priority),
            Sharing::Separate => None,
        };
        line::line(&self.measured.pieces, &self.parts, answer)
    }

    fn is_before_history(&self, part: usize) -> bool {
        self.parts[part].priority > self.parts[HISTORY].priority
    }

    fn keeps_history(&self, walk: &Walk) -> bool {
        self.measured.keeps_all(HISTORY, walk.kept[HISTORY])
    }

    /// A summary may take an eighth of the tokens for the history.
    ///
    /// It grows slower than those, so that a larger window never keeps fewer messages.
    fn summary_reserve(&self) -> u64 {
        let mut before = self.measured.required();
        for step in self.line() {
            if let Step::Keep { part, pieces } = step
                && self.is_before_history(part)
            {
                before[part] = pieces;
            }
        }
        let room = self.room.saturating_sub(self.measured.total(before, false));
        self.options.summary_tokens.min(room / 8)
    }

    fn summary(&self, walk: &Walk) -> Option<Inserted> {
        let dropped = self.measured.dropped_messages(walk.kept[HISTORY]);
        let lines = dropped.map(|place| summary_line(self.request, place));
        let lines: Vec<String> = lines.collect();
        let around = self.counter.text_message(ChatRole::System, "");
        let left = walk
            .room
            .saturating_sub(self.measured.total(walk.kept, true));
        let limit = left.min(self.options.summary_tokens).checked_sub(around)?;
        let count = |text: &str| self.counter.text(text);
        let summary = summarise(&lines, limit, &count)?;
        Some(Inserted {
            tokens: self.counter.text_message(ChatRole::System, &summary.text),
            text: summary.text,
        })
    }

    /// Drops more messages, so that the same ones are dropped for several turns.
    fn round_history(&self, kept: &mut Kept) {
        if self.options.drop_step < 2 || self.measured.keeps_all(HISTORY, kept[HISTORY]) {
            return;
        }
        let start = |pieces: usize| self.measured.history_start(pieces);
        let step = self.options.drop_step;
        let Some(rounded) = start(kept[HISTORY]).checked_next_multiple_of(step) else {
            return;
        };
        let mut fewer = (0..=kept[HISTORY]).rev();
        if let Some(fewer) = fewer.find(|&pieces| start(pieces) >= rounded) {
            kept[HISTORY] = fewer;
        }
    }

    /// The first context block that did not fit, truncated to the tokens left.
    fn truncated(&self, walk: &Walk, summary: Option<&Inserted>) -> Option<Inserted> {
        /// A shorter piece is useless.
        const SHORTEST: u64 = 32;
        if !self.options.truncate_context || !walk.stopped[CONTEXT] {
            return None;
        }
        let block = self.extras.context.get(walk.kept[CONTEXT])?;
        let taken = self.measured.total(walk.kept, true);
        let taken = taken.saturating_add(summary.map_or(0, |summary| summary.tokens));
        let left = walk.room.saturating_sub(taken);
        let mut limit = left;
        while limit >= SHORTEST {
            let text = self
                .counter
                .tokens()
                .truncate_to(block.text, limit, Keep::Start);
            let text = write_context(block, text);
            let tokens = self.counter.text_message(ChatRole::System, &text);
            if tokens <= left {
                return Some(Inserted { text, tokens });
            }
            limit -= (tokens - left).min(limit);
        }
        None
    }

    /// The plan with all its figures.
    fn finish(&self, layout: &Layout, solution: &Solution) -> Plan {
        let Layout { kept, .. } = *layout;
        let inserted = [&layout.summary, &layout.truncated].into_iter().flatten();
        let input = inserted.fold(
            self.measured.total(kept, layout.inserts()),
            |sum, inserted| sum.saturating_add(inserted.tokens),
        );
        let provenance = self.provenance_of(kept);
        let margin = margin(provenance, input, self.options);
        let (available, adjusted) = self.answer.settle(input, margin, self.options);
        let parts = self.parts_of(layout, solution, adjusted);
        let kept_messages: Vec<usize> = self.measured.kept_messages(kept[HISTORY]).collect();
        let is_system = |place: &usize| self.messages[*place].is_system();
        Plan {
            window: self.options.window,
            sharing: self.options.sharing,
            margin: Margin {
                tokens: margin,
                reason: self.margin_reason(provenance),
            },
            counter: self.counter.name().to_owned(),
            provenance,
            input_token_count: input,
            available,
            requested: self.answer.requested,
            adjusted_max_tokens: adjusted,
            adjustment: self.answer.adjustment(adjusted),
            message_count: kept_messages
                .iter()
                .filter(|place| !is_system(place))
                .count(),
            memory_count: kept[MEMORIES],
            blocker: solution
                .blocker
                .map(|blocker| explain::blocker(blocker, &parts, self.options.window)),
            parts,
            kept_messages,
            dropped_messages: self.measured.dropped_messages(kept[HISTORY]).collect(),
            shortened: self.shortened(kept),
            kept_tools: self.measured.kept_tools(kept[TOOLS]),
            insertions: self.insertions(layout),
            maker: self.options.maker,
        }
    }

    fn margin_reason(&self, provenance: Provenance) -> String {
        if self.options.margin.is_some() {
            return "that was asked for".to_owned();
        }
        let is = match provenance {
            Provenance::Exact => "exact",
            Provenance::Calibrated => "calibrated",
            Provenance::Estimate => "an estimate",
        };
        format!("the count by `{}` is {is}", self.counter.name())
    }

    fn insertions(&self, layout: &Layout) -> Vec<Insertion> {
        let mut messages = self.messages.iter();
        let behind_system = messages.position(|message| !message.is_system());
        let behind_system = behind_system.unwrap_or(self.messages.len());
        let before_last_user_message = self
            .measured
            .last_user_message_place()
            .unwrap_or(behind_system);

        let told = &self.memories[..layout.kept[MEMORIES]];
        let memories = (!told.is_empty())
            .then(|| write_memories(told.iter().map(|&place| &self.extras.memories[place])));
        let summary = layout.summary.as_ref().map(|summary| summary.text.clone());
        let blocks = self.extras.context[..layout.kept[CONTEXT]].iter();
        let blocks = blocks.map(|block| write_context(block, block.text));
        let truncated = layout.truncated.as_ref().map(|block| block.text.clone());

        let insert = |before| move |text| Insertion { before, text };
        let first = memories
            .into_iter()
            .chain(summary)
            .map(insert(behind_system));
        let second = blocks
            .chain(truncated)
            .map(insert(before_last_user_message));
        // The last user message is never before the leading system messages end.
        first.chain(second).collect()
    }

    fn parts_of(&self, layout: &Layout, solution: &Solution, adjusted: u64) -> Vec<PlannedPart> {
        let tokens = |inserted: &Option<Inserted>| inserted.as_ref().map_or(0, |one| one.tokens);
        let all = Part::ALL.iter().enumerate();
        all.map(|(index, &part)| {
            let mut figures = self.measured.figures(part, layout.kept, layout.inserts());
            match part {
                Part::History => figures.given += tokens(&layout.summary),
                Part::Context => figures.given += tokens(&layout.truncated),
                Part::Results => {
                    let start = self.measured.history_start(layout.kept[HISTORY]);
                    let marks = |batches| {
                        let marked = self.old_results.marked(batches);
                        marked.filter(|place| *place >= start).count()
                    };
                    figures.dropped = marks(layout.kept[RESULTS]);
                    figures.kept = marks(0) - figures.dropped;
                }
                Part::Completion => {
                    figures = Figures {
                        asked: self.answer.requested,
                        given: adjusted,
                        ..figures
                    }
                }
                _ => {}
            }
            // An answer outside the window is not part of the division.
            let share = solution.shares.get(index);
            PlannedPart {
                part,
                asked: figures.asked,
                at_least: figures.at_least,
                share: share.map_or(figures.given, |share| share.given),
                given: figures.given,
                change: share.map_or(Change::Basis, |share| share.change),
                kept: figures.kept,
                dropped: figures.dropped,
                dropped_names: self.dropped_names(part, layout.kept),
            }
        })
        .collect()
    }

    fn dropped_names(&self, part: Part, kept: Kept) -> Vec<String> {
        match part {
            Part::Tools => {
                let dropped = self.measured.dropped_tools(kept[TOOLS]);
                explain::tool_names(&self.tools, &dropped)
            }
            Part::Context => {
                let dropped = self.extras.context[kept[CONTEXT]..].iter();
                dropped.map(|block| block.name.to_owned()).collect()
            }
            Part::Memories => {
                let dropped = self.memories[kept[MEMORIES]..].iter();
                dropped
                    .map(|&place| self.extras.memories[place].text.to_owned())
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}

fn margin(provenance: Provenance, input: u64, options: &PlanOptions) -> u64 {
    options.margin.unwrap_or(provenance.margin(input))
}

/// The most tokens of an input that leave room for the least answer, and the margin of so many.
fn room(provenance: Provenance, answer: &Answer, options: &PlanOptions) -> (u64, u64) {
    let shared = options.window.saturating_sub(answer.reserved(options));
    if let Some(margin) = options.margin {
        return (shared.saturating_sub(margin), margin);
    }
    let room = provenance.most_input(shared);
    (room, (shared - room).max(provenance.margin(0)))
}
