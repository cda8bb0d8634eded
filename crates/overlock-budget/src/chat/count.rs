//! Counts the tokens of a request for a model.
//!
//! Providers put every message between control tokens, so the counts of messages add up exactly.
//! Texts are counted in the form in which they are sent.

use serde_json::{Value, json};

use super::image::{PictureRule, file, recording};
use super::request::{ChatRole, Content, Request, SentMessage, Tool, ToolChoice};
use super::scale::{SCALED_BY, Scale};
use super::tools::{CLOSING, OPENING, function_type};
use crate::count::{CountTokens, Encoding, Provenance, StandIn};
use crate::models::{Found, How};

/// Counts requests for one model.
#[derive(Clone)]
pub struct ChatCounter<'a> {
    tokens: &'a dyn CountTokens,
    name: String,
    provenance: Provenance,
    format: Format,
    template: Option<&'a dyn CountChats>,
    pictures: PictureRule,
    /// The tokens of each role's name, in the order of [`ChatRole::ALL`].
    roles: [u64; 6],
    /// The factor of all counts.
    scale: Scale,
}

/// The tokens of a request, and how exact the count is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatCount {
    /// The whole request. With a template, this is not the sum of the others.
    pub tokens: u64,
    /// Each message.
    pub messages: Vec<u64>,
    /// The tools together.
    pub tools: u64,
    /// The rest: the tokens before the answer, and the schema of the answer.
    pub frame: u64,
    /// The least exact of all counts.
    pub provenance: Provenance,
}

/// Counts complete chats with the chat template of a model.
pub trait CountChats: Send + Sync {
    /// The tokens of these messages and tools, including those before the answer; none if the
    /// template rejects them.
    fn count_chat(&self, messages: &Value, tools: Option<&Value>) -> Option<u64>;
}

/// The format in which messages are written for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// That of `OpenAI`'s chat models.
    Chat,
    /// That of `gpt-oss` and its successors.
    Harmony,
}

const PER_MESSAGE: u64 = 3;
const PER_NAME: u64 = 1;
const PER_CALL: u64 = 3;
const REPLY: u64 = 3;
/// The tokens of the message that contains the tools; half of them if there is a system prompt.
const TOOLS: u64 = 9;
const TOOLS_IN_SYSTEM_PROMPT: u64 = 6;

/// The beginning of a harmony conversation; its dates change, but not their length.
const HARMONY_SYSTEM: &str = "You are ChatGPT, a large language model trained by OpenAI.\n\
    Knowledge cutoff: 2024-06\nCurrent date: 2025-06-28\n\nReasoning: medium\n\n\
    # Valid channels: analysis, commentary, final. Channel must be included for every message.\n\
    Calls to these tools must go to the commentary channel: 'functions'.";

impl ChatCounter<'static> {
    /// A counter with the built-in encoding for a model.
    ///
    /// The tokenizers of most models are not built in. Another one is used for them, as the name of
    /// the counter shows.
    ///
    /// ```
    /// use overlock_budget::{ChatCounter, Models};
    ///
    /// let models = Models::default();
    /// assert_eq!(ChatCounter::for_model(&models.find("gpt-4")).name(), "cl100k_base");
    /// assert_eq!(
    ///     ChatCounter::for_model(&models.find("llama3.2:3b")).name(),
    ///     "o200k_base in place of llama3, times 1.1"
    /// );
    /// ```
    pub fn for_model(found: &Found) -> Self {
        let own = found.model.tokenizer.as_deref();
        if let Some(encoding) = own.and_then(built_in) {
            return Self::with_counter(found, encoding);
        }
        let stand_in = StandIn::for_model(found);
        Self {
            name: stand_in.name().to_owned(),
            scale: stand_in.scale(),
            ..Self::new(found, StandIn::TOKENIZER, Provenance::Estimate)
        }
    }
}

fn built_in(name: &str) -> Option<&'static Encoding> {
    Encoding::ALL
        .iter()
        .find(|encoding| encoding.name() == name)
}

impl<'a> ChatCounter<'a> {
    /// A counter with this tokenizer for a model.
    ///
    /// Counts are exact if the tokenizer is the encoding in the table, and the model was found by its
    /// own name. Any other tokenizer is assumed to be that of the model. The format of its chats is
    /// unknown, so exact counts need a template.
    pub fn with_counter(found: &Found, tokens: &'a dyn CountTokens) -> Self {
        let own = found.model.tokenizer.as_deref().and_then(built_in);
        let brought = built_in(tokens.name());
        let provenance = match found.how {
            _ if !tokens.is_exact() || own != brought => Provenance::Estimate,
            _ if own.is_none() => Provenance::Calibrated,
            How::Exact | How::Alias => Provenance::Exact,
            How::Prefix => Provenance::Calibrated,
            How::Default => Provenance::Estimate,
        };
        Self::new(found, tokens, provenance)
    }

    fn new(found: &Found, tokens: &'a dyn CountTokens, provenance: Provenance) -> Self {
        let harmony = found.model.tokenizer.as_deref() == Some("o200k_harmony");
        Self {
            tokens,
            name: tokens.name().to_owned(),
            // The server adds a system message, of which only the form is known.
            provenance: if harmony {
                provenance.max(Provenance::Calibrated)
            } else {
                provenance
            },
            template: None,
            format: if harmony {
                Format::Harmony
            } else {
                Format::Chat
            },
            pictures: PictureRule::for_entry(found.entry.as_deref()),
            roles: ChatRole::ALL.map(|role| tokens.count(role.name())),
            scale: Scale::default(),
        }
    }

    /// A counter with the tokenizer and the chat template of a model.
    ///
    /// Only the count of a whole request is exact. The counts of its parts are those without the
    /// template.
    pub fn with_template(
        found: &Found,
        tokens: &'a dyn CountTokens,
        template: &'a dyn CountChats,
    ) -> Self {
        let provenance = if tokens.is_exact() {
            Provenance::Exact
        } else {
            Provenance::Estimate
        };
        Self {
            provenance,
            format: Format::Chat,
            template: Some(template),
            ..Self::new(found, tokens, provenance)
        }
    }

    /// The same counter with a factor for every count of a request. [`ChatCounter::tokens`] is
    /// unchanged.
    ///
    /// ```
    /// use overlock_budget::{ChatCounter, Models, Scale};
    ///
    /// let counter = ChatCounter::for_model(&Models::default().find("llama3.2:3b"));
    /// let scaled = counter.scaled(Scale::of(5, 2));
    /// assert_eq!(scaled.name(), "o200k_base in place of llama3, times 2.5");
    /// assert_eq!(scaled.text("eins zwei"), counter.text("eins zwei") * 5 / 2);
    /// ```
    #[must_use]
    pub fn scaled(&self, scale: Scale) -> Self {
        let unscaled = match self.name.rsplit_once(SCALED_BY) {
            Some((unscaled, _)) if self.scale != Scale::default() => unscaled,
            _ => &self.name,
        };
        Self {
            name: scale.named(unscaled),
            scale,
            ..self.clone()
        }
    }

    /// Whether it counts with a tokenizer other than that of the model.
    pub fn is_estimate(&self) -> bool {
        self.provenance == Provenance::Estimate
    }

    /// The factor of all counts of a request.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// The tokens of a text in a request.
    pub fn text(&self, text: &str) -> u64 {
        self.scale.apply(self.tokens.count(text))
    }

    /// The same counter without the template, for requests that the template rejects.
    pub(crate) fn without_template(&self) -> Self {
        Self {
            provenance: Provenance::Estimate,
            template: None,
            ..self.clone()
        }
    }

    /// Whether a template is used, so that a request is not the sum of its parts.
    pub(crate) fn has_template(&self) -> bool {
        self.template.is_some()
    }

    /// The tokens of these messages and tools by the template, if there is one that accepts them.
    pub(crate) fn whole<'s>(
        &self,
        request: &dyn Request,
        messages: impl Iterator<Item = SentMessage<'s>>,
        tools: impl Iterator<Item = Value>,
    ) -> Option<u64> {
        let template = self.template?;
        let mut beyond = 0_u64;
        let messages = messages.map(|message| match message {
            SentMessage::Kept(place) => {
                request.contents(place, &mut |content| {
                    beyond = beyond.saturating_add(self.beyond_text(content));
                });
                request.template_message(place).into_owned()
            }
            SentMessage::Shortened(place, text) => {
                let mut message = request.template_message(place).into_owned();
                message["content"] = text.into();
                message
            }
            SentMessage::Inserted(text) => {
                json!({ "role": ChatRole::System.name(), "content": text })
            }
        });
        let messages = messages.collect();
        let tools: Vec<Value> = tools.collect();
        let tools = (!tools.is_empty()).then_some(Value::Array(tools));
        let tokens = template.count_chat(&messages, tools.as_ref())?;
        Some(self.scale.apply(tokens.saturating_add(beyond)))
    }

    /// The name in results.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The counter of texts.
    pub fn tokens(&self) -> &'a dyn CountTokens {
        self.tokens
    }

    /// Counts a whole request.
    pub fn count(&self, request: &dyn Request) -> ChatCount {
        let outline = request.outline();
        let places = 0..outline.messages.len();
        let messages: Vec<u64> = places
            .clone()
            .map(|place| self.message(request, place))
            .collect();
        let offered = request.tools();
        let blocks = offered.iter().map(|tool| self.tool(tool));
        let tools = self.tools(blocks, request, outline.has_system());
        let frame = self.frame(request);
        let sum = messages
            .iter()
            .fold(0, |sum: u64, one| sum.saturating_add(*one));
        let sum = sum.saturating_add(tools).saturating_add(frame);
        let sent = places.map(SentMessage::Kept);
        let offered = offered.into_iter().map(|tool| tool.template.into_owned());
        let (tokens, provenance) = match self.whole(request, sent, offered) {
            Some(tokens) => (tokens, self.provenance(request)),
            None if self.has_template() => (sum, Provenance::Estimate),
            None => (sum, self.provenance(request)),
        };
        ChatCount {
            tokens,
            messages,
            tools,
            frame,
            provenance,
        }
    }

    /// How exact the count of this request is, without counting it.
    pub fn provenance(&self, request: &dyn Request) -> Provenance {
        let has_tools = !request.tools().is_empty();
        self.provenance_with(request, request.outline().provenance(), has_tools)
    }

    /// How exact a count is for messages of this exactness, with or without tools.
    pub(crate) fn provenance_with(
        &self,
        request: &dyn Request,
        messages: Provenance,
        has_tools: bool,
    ) -> Provenance {
        let rest = if has_tools || request.answer_schema().is_some() {
            Provenance::Calibrated
        } else {
            Provenance::Exact
        };
        let parts = rest.max(messages);
        match (self.template, parts) {
            // A template writes tools and calls as exactly as text.
            (Some(_), Provenance::Calibrated) => self.provenance,
            _ => self.provenance.max(parts),
        }
    }

    /// The tokens of the message of a request at this index.
    pub fn message(&self, request: &dyn Request, place: usize) -> u64 {
        self.message_up_to(request, place, u64::MAX)
            .unwrap_or(u64::MAX)
    }

    /// The tokens of a message, unless there are more than `limit`.
    pub(crate) fn message_up_to(
        &self,
        request: &dyn Request,
        place: usize,
        limit: u64,
    ) -> Option<u64> {
        let role = request.outline().messages[place].role;
        let limit = self.scale.most_counted(limit);
        let mut sum = Sum { tokens: 0, limit };
        sum.add(self.around(role))?;
        let mut fits = Some(());
        request.contents(place, &mut |content| {
            fits = fits.and_then(|()| self.add(content, &mut sum));
        });
        fits.map(|()| self.scale.apply(sum.tokens))
    }

    /// The tokens of a message whose content is replaced by this text.
    pub(crate) fn message_with(&self, request: &dyn Request, place: usize, text: &str) -> u64 {
        let role = request.outline().messages[place].role;
        let mut tokens = self.around(role).saturating_add(self.tokens.count(text));
        request.contents(place, &mut |content| {
            if let Content::Name(name) = content {
                tokens = tokens.saturating_add(PER_NAME + self.tokens.count(name));
            }
        });
        self.scale.apply(tokens)
    }

    /// The tokens of a message without its contents.
    fn around(&self, role: ChatRole) -> u64 {
        let around = match role {
            // The result is addressed to its call.
            ChatRole::Tool => PER_MESSAGE + PER_CALL,
            // The older form is sent only under the name of its function.
            ChatRole::Function => PER_MESSAGE - 2,
            // The channel it speaks on.
            ChatRole::Assistant if self.format == Format::Harmony => PER_MESSAGE + 2,
            _ => PER_MESSAGE,
        };
        around + self.role(role)
    }

    fn add(&self, content: Content, sum: &mut Sum) -> Option<()> {
        match content {
            Content::Text(text) | Content::Refusal(text) => sum.text(self.tokens, text),
            Content::Name(name) => {
                sum.add(PER_NAME)?;
                sum.text(self.tokens, name)
            }
            Content::Call { name, arguments } => {
                sum.add(PER_CALL)?;
                sum.text(self.tokens, name)?;
                sum.text(self.tokens, arguments)
            }
            Content::Other(part) => sum.text(self.tokens, &part.to_string()),
            _ => sum.add(self.beyond_text(content)),
        }
    }

    /// The tokens of pictures, recordings and files, which no template writes.
    fn beyond_text(&self, content: Content) -> u64 {
        match content {
            Content::Picture { base64, is_coarse } => self.pictures.picture(base64, is_coarse),
            Content::Recording {
                bytes,
                is_compressed,
            } => recording(bytes, is_compressed),
            Content::File { bytes } => file(bytes),
            _ => 0,
        }
    }

    /// The tokens of a message with this text.
    pub(crate) fn text_message(&self, role: ChatRole, text: &str) -> u64 {
        let tokens = self.tokens.count(text);
        let tokens = tokens.saturating_add(PER_MESSAGE + self.role(role));
        self.scale.apply(tokens)
    }

    /// The tokens other than messages and tools.
    pub(crate) fn frame(&self, request: &dyn Request) -> u64 {
        let schema = request.answer_schema().map_or(0, |schema| {
            // A heading, its name and the schema itself.
            self.scale.apply(8 + self.tokens.count(&schema.to_string()))
        });
        let opening = match self.format {
            Format::Chat => 0,
            Format::Harmony => self.text_message(ChatRole::System, HARMONY_SYSTEM),
        };
        let reply = self.scale.apply(REPLY);
        opening.saturating_add(schema).saturating_add(reply)
    }

    /// The tokens of one tool among others.
    pub(crate) fn tool(&self, tool: &Tool) -> u64 {
        match &tool.function {
            Some(function) => self.text(&function_type(function)),
            None => self.text(&tool.template.to_string()),
        }
    }

    /// The tokens of these tools together, if there are any.
    pub(crate) fn tools(
        &self,
        blocks: impl Iterator<Item = u64>,
        request: &dyn Request,
        has_system: bool,
    ) -> u64 {
        let mut blocks = blocks.peekable();
        if blocks.peek().is_none() {
            return 0;
        }
        let blocks = blocks.fold(0, u64::saturating_add);
        blocks.saturating_add(self.tools_frame(request, has_system))
    }

    /// The tokens of tools in addition to those of each tool.
    pub(crate) fn tools_frame(&self, request: &dyn Request, has_system: bool) -> u64 {
        let around = if has_system {
            TOOLS_IN_SYSTEM_PROMPT
        } else {
            TOOLS
        };
        let heading = match self.format {
            Format::Chat => 0,
            Format::Harmony => self.tokens.count("# Tools\n\n## functions\n\n"),
        };
        let texts = self.tokens.count(OPENING) + self.tokens.count(CLOSING);
        self.scale
            .apply(around + heading + texts + self.choice(request))
    }

    /// The tokens of the tool choice, which the model sees.
    fn choice(&self, request: &dyn Request) -> u64 {
        match request.tool_choice() {
            ToolChoice::Auto => 0,
            ToolChoice::Word => 1,
            ToolChoice::Named(name) => 4 + self.tokens.count(name),
        }
    }

    fn role(&self, role: ChatRole) -> u64 {
        let place = ChatRole::ALL.iter().position(|one| *one == role);
        place.map_or(1, |place| self.roles[place])
    }
}

/// A sum that stops at its limit.
struct Sum {
    tokens: u64,
    limit: u64,
}

impl Sum {
    fn left(&self) -> u64 {
        self.limit - self.tokens
    }

    fn add(&mut self, tokens: u64) -> Option<()> {
        if tokens > self.left() {
            return None;
        }
        self.tokens += tokens;
        Some(())
    }

    fn text(&mut self, counter: &dyn CountTokens, text: &str) -> Option<()> {
        let tokens = counter.count_up_to(text, self.left())?;
        self.add(tokens)
    }
}
