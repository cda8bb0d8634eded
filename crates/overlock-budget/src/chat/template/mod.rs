//! Renders a chat with the template of an open model.
//!
//! A `tokenizer_config.json` contains a Jinja template that writes the chat in the format of the
//! model. It behaves as in Hugging Face's `transformers`: the same white space, the same functions,
//! JSON as Python writes it. Its steps and its output are limited, but not its memory, because the
//! template is part of the configuration and therefore trusted.

mod date;
mod look_alikes;
mod python;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle};

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, ErrorKind, UndefinedBehavior};
use serde_json::Value;

use crate::TokenizerFile;
use look_alikes::LookAlikes;

/// How deep messages and tools may be nested, which is the default limit of `serde_json`.
const DEPTH: usize = 128;

/// How deep a template may recurse, in minijinja's units. A call of a macro takes several of them,
/// and in a build without optimisation far more of the stack.
const RECURSION: usize = 150;

/// The stack for a template. Dropping a value that is nested once in every step takes some hundred
/// bytes for each level, and far more without optimisation.
const STACK: usize = 64 << 20;

/// The maximum steps of a template: a constant, plus some for every value in the messages and tools.
/// Known templates take a tenth of it.
const STEPS: u64 = 50_000;
const STEPS_PER_VALUE: u64 = 1_000;

/// The maximum output in bytes: a constant, plus some for every byte of the input.
const OUTPUT: usize = 1 << 20;
const OUTPUT_PER_BYTE: usize = 16;

/// A chat template, ready to render.
///
/// ```
/// use overlock_budget::{ChatTemplate, RenderOptions};
/// use serde_json::json;
///
/// let config = json!({
///     "bos_token": "<s>",
///     "chat_template": "{{ bos_token }}{% for message in messages %}
///         [{{ message.role }}] {{ message.content }}
///     {% endfor %}"
/// });
/// let template = ChatTemplate::new(&config.to_string())?;
/// let messages = json!([{ "role": "user", "content": "Hello" }]);
/// let rendered = template.render(&messages, &RenderOptions::default())?;
/// assert_eq!(rendered, "<s>        [user] Hello\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ChatTemplate {
    environment: Environment<'static>,
    /// The tokens that a template can use by name, such as `bos_token`.
    tokens: Vec<(String, String)>,
    has_tool_use: bool,
}

/// Options of rendering.
#[derive(Clone, Copy, Debug)]
pub struct RenderOptions<'chat> {
    /// The tools, as a list of schemas.
    pub tools: Option<&'chat Value>,
    /// Whether to write the beginning of the answer, as in every request.
    pub add_generation_prompt: bool,
    /// The user's local time, in seconds since 1970. Without it, a template that writes the date uses
    /// a fixed one.
    pub now: Option<i64>,
}

impl Default for RenderOptions<'_> {
    fn default() -> Self {
        Self {
            tools: None,
            add_generation_prompt: true,
            now: None,
        }
    }
}

/// Why a chat template cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ChatTemplateError {
    /// The configuration is not JSON.
    #[error("the tokenizer configuration is not JSON")]
    Json {
        /// Where the text stops being JSON.
        #[from]
        source: serde_json::Error,
    },
    /// The model has none, or it is in a separate file.
    #[error("the tokenizer configuration has no `chat_template`")]
    Missing,
    /// There are several, and none is for a plain chat.
    #[error("none of the chat templates is the default: there are `{}`", names.join("`, `"))]
    NoDefault {
        /// Their names.
        names: Vec<String>,
    },
    /// It is not valid in this Jinja.
    #[error("the chat template cannot be read: {reason}")]
    Syntax {
        /// The error and its position.
        reason: String,
    },
}

/// Why a chat cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The template rejects these messages.
    #[error("the chat template refuses the messages: {message}")]
    Refused {
        /// The message of the template.
        message: String,
    },
    /// The template failed.
    #[error("the chat template failed: {reason}")]
    Failed {
        /// The error.
        reason: String,
    },
    /// The template took too many steps.
    #[error("the chat template was stopped after {steps} steps")]
    Endless {
        /// The limit.
        steps: u64,
    },
    /// The template wrote too much.
    #[error("the chat template was stopped after writing {bytes} bytes")]
    TooLong {
        /// The limit.
        bytes: usize,
    },
    /// The messages or tools are nested too deep.
    #[error("the messages are nested more than {DEPTH} deep")]
    TooDeep,
}

impl ChatTemplate {
    /// Reads the template and the tokens it names from the content of a `tokenizer_config.json`.
    pub fn new(tokenizer_config: &str) -> Result<Self, ChatTemplateError> {
        let config: Value = serde_json::from_str(tokenizer_config)?;
        let templates = match &config["chat_template"] {
            Value::String(template) => vec![("default", template.as_str())],
            Value::Array(templates) => templates.iter().filter_map(named_template).collect(),
            _ => return Err(ChatTemplateError::Missing),
        };
        Self::from_templates(&templates, named_tokens(&config))
    }

    /// Takes the template from the content of a `chat_template.jinja`, and only the tokens it names
    /// from a `tokenizer_config.json`.
    pub fn with_template(
        template: &str,
        tokenizer_config: &str,
    ) -> Result<Self, ChatTemplateError> {
        let config = serde_json::from_str(tokenizer_config)?;
        Self::from_templates(&[("default", template)], named_tokens(&config))
    }

    fn from_templates(
        templates: &[(&str, &str)],
        tokens: Vec<(String, String)>,
    ) -> Result<Self, ChatTemplateError> {
        let mut environment = environment();
        for (name, template) in templates {
            let template = without_generation_tags(template).into_owned();
            environment
                .add_template_owned((*name).to_owned(), template)
                .map_err(|error| ChatTemplateError::Syntax {
                    reason: error.to_string(),
                })?;
        }
        let has = |name| environment.get_template(name).is_ok();
        if templates.is_empty() {
            return Err(ChatTemplateError::Missing);
        }
        if !has("default") {
            return Err(ChatTemplateError::NoDefault {
                names: templates
                    .iter()
                    .map(|(name, _)| (*name).to_owned())
                    .collect(),
            });
        }
        Ok(Self {
            has_tool_use: has("tool_use"),
            environment,
            tokens,
        })
    }

    /// Renders a chat, a list of messages in the form of `OpenAI`, in the format of the model.
    pub fn render(
        &self,
        messages: &Value,
        options: &RenderOptions<'_>,
    ) -> Result<String, RenderError> {
        self.render_with(messages, options, &|text| Cow::Borrowed(text))
    }

    /// The tokens of a chat in the format of the model.
    ///
    /// Control tokens that the template writes count as such. Text in a message or a tool that looks
    /// like one counts as text, unless the template itself treats it specially.
    pub fn count(
        &self,
        tokenizer: &TokenizerFile,
        messages: &Value,
        options: &RenderOptions<'_>,
    ) -> Result<u64, RenderError> {
        let rendered = self.render(messages, options)?;
        let look_alikes = LookAlikes::new(tokenizer.control_tokens(), &rendered);
        let marked = self.render_with(messages, options, &|text| look_alikes.marked(text));
        Ok(match marked {
            // A mark must not change any other text.
            Ok(marked) if marked.replace(look_alikes.mark, "") == rendered => {
                tokenizer.count_marked(&marked, look_alikes.mark)
            }
            _ => tokenizer.count_with_control(&rendered),
        })
    }

    fn render_with(
        &self,
        messages: &Value,
        options: &RenderOptions<'_>,
        text: &dyn Fn(&str) -> Cow<'_, str>,
    ) -> Result<String, RenderError> {
        let mut given = Given::default();
        let tools = options.tools.unwrap_or(&Value::Null);
        let mut context = vec![
            ("messages", given.pass(messages, text, 0)?),
            ("tools", given.pass(tools, text, 0)?),
            ("documents", minijinja::Value::from(())),
            (
                "add_generation_prompt",
                options.add_generation_prompt.into(),
            ),
        ];
        for (name, token) in &self.tokens {
            context.push((name, token.into()));
        }
        if let Some(now) = options.now {
            let format = move |format: &str| date::format(now, format);
            context.push(("strftime_now", minijinja::Value::from_function(format)));
        }
        let name = match options.tools {
            Some(_) if self.has_tool_use => "tool_use",
            _ => "default",
        };
        let steps = STEPS.saturating_add(STEPS_PER_VALUE.saturating_mul(given.values));
        // An environment is a handful of shared tables, and its limit is that of one run.
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(steps));
        let template = environment
            .get_template(name)
            .map_err(|error| failed(&error, steps))?;
        let mut output = Output {
            bytes: Vec::new(),
            limit: OUTPUT.saturating_add(given.bytes.saturating_mul(OUTPUT_PER_BYTE)),
            is_full: false,
        };
        let run = || {
            let context = minijinja::Value::from_pairs(context);
            template.render_captured_to(context, &mut output).map(drop)
        };
        let result = thread::scope(|scope| {
            let thread = thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, run);
            thread.map(ScopedJoinHandle::join)
        });
        let result = match result {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(error) => {
                return Err(RenderError::Failed {
                    reason: format!("no thread to run it on: {error}"),
                });
            }
        };
        match result {
            _ if output.is_full => Err(RenderError::TooLong {
                bytes: output.limit,
            }),
            Ok(()) => Ok(String::from_utf8_lossy(&output.bytes).into_owned()),
            Err(error) => Err(failed(&error, steps)),
        }
    }
}

impl fmt::Debug for ChatTemplate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ChatTemplate")
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}

/// The size of the input of a template, which its limits depend on.
#[derive(Default)]
struct Given {
    values: u64,
    bytes: usize,
}

impl Given {
    /// Converts a value, with its texts changed by `text`.
    ///
    /// Not with serde, because numbers that keep their notation would become objects.
    fn pass(
        &mut self,
        value: &Value,
        text: &dyn Fn(&str) -> Cow<'_, str>,
        depth: usize,
    ) -> Result<minijinja::Value, RenderError> {
        if depth > DEPTH {
            return Err(RenderError::TooDeep);
        }
        self.values = self.values.saturating_add(1);
        Ok(match value {
            Value::Null => minijinja::Value::from(()),
            Value::Bool(value) => minijinja::Value::from(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(number), _, _) => minijinja::Value::from(number),
                (_, Some(number), _) => minijinja::Value::from(number),
                (_, _, number) => minijinja::Value::from(number.unwrap_or(f64::NAN)),
            },
            Value::String(string) => self.pass_text(string, text),
            Value::Array(values) => {
                let passed = values.iter().map(|value| self.pass(value, text, depth + 1));
                minijinja::Value::from(passed.collect::<Result<Vec<_>, _>>()?)
            }
            Value::Object(members) => {
                let mut passed = Vec::with_capacity(members.len());
                for (key, value) in members {
                    let value = self.pass(value, text, depth + 1)?;
                    passed.push((self.pass_text(key, text), value));
                }
                minijinja::Value::from_pairs(passed)
            }
        })
    }

    fn pass_text(&mut self, string: &str, text: &dyn Fn(&str) -> Cow<'_, str>) -> minijinja::Value {
        let string = text(string);
        self.bytes = self.bytes.saturating_add(string.len());
        minijinja::Value::from(&*string)
    }
}

/// The output of a template, up to a limit.
struct Output {
    bytes: Vec<u8>,
    limit: usize,
    is_full: bool,
}

impl std::io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            self.is_full = true;
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The Jinja of `transformers`.
fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    let mut syntax = SyntaxConfig::builder();
    let syntax = syntax.trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("only delimiters can contradict each other"));
    environment.set_recursion_limit(RECURSION);
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.set_formatter(python::write);
    environment.add_filter("tojson", python::to_json);
    environment.add_function("raise_exception", |message: String| {
        let raised = minijinja::Error::new(ErrorKind::InvalidOperation, "raised by the template");
        Err::<minijinja::Value, _>(raised.with_source(Raised(message)))
    });
    environment
}

/// The message of a template that raised an error.
#[derive(Debug)]
struct Raised(String);

impl fmt::Display for Raised {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Error for Raised {}

fn failed(error: &minijinja::Error, steps: u64) -> RenderError {
    let causes = std::iter::successors(Some(error as &dyn Error), |cause| (*cause).source());
    for cause in causes {
        if let Some(Raised(message)) = cause.downcast_ref() {
            return RenderError::Refused {
                message: message.clone(),
            };
        }
    }
    if error.kind() == ErrorKind::OutOfFuel {
        return RenderError::Endless { steps };
    }
    RenderError::Failed {
        reason: error.to_string(),
    }
}

fn named_template(entry: &Value) -> Option<(&str, &str)> {
    Some((entry["name"].as_str()?, entry["template"].as_str()?))
}

/// The named tokens: a text, or an object that contains it.
fn named_tokens(config: &Value) -> Vec<(String, String)> {
    let members = config.as_object().into_iter().flatten();
    members
        .filter(|(name, _)| name.ends_with("_token"))
        .filter_map(|(name, token)| {
            let token = token.as_str().or_else(|| token["content"].as_str())?;
            Some((name.clone(), token.to_owned()))
        })
        .collect()
}

/// Replaces `generation` tags, which mark the answers of the model and write nothing, by conditions
/// that are always true, because Jinja does not have them.
fn without_generation_tags(template: &str) -> Cow<'_, str> {
    if !template.contains("generation") {
        return Cow::Borrowed(template);
    }
    let mut plain = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, tag, after)) = next_tag(rest) {
        let inner = &tag[2..tag.len() - 2];
        let word = inner.trim_matches(['-', '+']).trim();
        let replaced = match word {
            "generation" => inner.replace("generation", " if true "),
            "endgeneration" => inner.replace("endgeneration", " endif "),
            _ => inner.to_owned(),
        };
        plain.push_str(before);
        plain.push_str("{%");
        plain.push_str(&replaced);
        plain.push_str("%}");
        rest = after;
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

fn next_tag(template: &str) -> Option<(&str, &str, &str)> {
    let start = template.find("{%")?;
    let end = start + 2 + template[start + 2..].find("%}")? + 2;
    Some((&template[..start], &template[start..end], &template[end..]))
}
