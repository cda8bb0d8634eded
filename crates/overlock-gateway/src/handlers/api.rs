//! `POST /api/…`: the commands of the command line as JSON, one or several in a request.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{FromRequest, Request, State};
use hyper::StatusCode;
use overlock_budget::Extras;
use overlock_json::{CloseOptions, PartialDocument, Protocol, RenderOptions, RepairOptions};
use overlock_llm::wire::WireRequest;
use overlock_llm::wire::chat::ChatRequest;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::body::{not_utf8, read_bytes};
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::handlers::Handled;
use crate::offload;
use crate::reply::{Reply, reply, whole};
use overlock_json::{
    Object, Refusal, close_object, cut_contexts, cut_object, render_object, repair_object,
    shortened, stitch_object,
};
use overlock_runs::{AnswerLimit, FitRequest};

/// The body of a request, which must be text.
pub(crate) struct RequestText(String);

impl FromRequest<Arc<Gateway>> for RequestText {
    type Rejection = ApiError;

    async fn from_request(request: Request, gateway: &Arc<Gateway>) -> Result<Self, ApiError> {
        let bytes = read_bytes(request.into_body(), &gateway.settings.limits).await?;
        let text = String::from_utf8(bytes.into());
        text.map(Self).map_err(|error| not_utf8(error.utf8_error()))
    }
}

pub(crate) async fn cut(text: RequestText) -> Handled {
    of_object(text, cut_object).await
}

pub(crate) async fn close(text: RequestText) -> Handled {
    of_object(text, |object| close_object(object, CloseOptions::default())).await
}

pub(crate) async fn repair(text: RequestText) -> Handled {
    of_object(text, |object| {
        repair_object(object, RepairOptions::default())
    })
    .await
}

pub(crate) async fn render(text: RequestText) -> Handled {
    of_object(text, |object| {
        render_object(object, RenderOptions::default())
    })
    .await
}

pub(crate) async fn stitch(text: RequestText) -> Handled {
    of_object(text, |object| stitch_object(object, Protocol::Auto)).await
}

pub(crate) async fn fit(State(gateway): State<Arc<Gateway>>, text: RequestText) -> Handled {
    of_text(text, move |text| {
        let (status, answer) = fitted(&gateway, text)?;
        Ok(serialized(status, &answer))
    })
    .await
}

/// Several questions in one request, each answered as if alone. A question that fails is not an error
/// of the request, since the page also asks about unfinished texts.
pub(crate) async fn several(State(gateway): State<Arc<Gateway>>, text: RequestText) -> Handled {
    of_text(text, move |text| {
        let (shared, asked) = questions(text)?;
        let answers = asked.iter().map(|(name, body)| {
            let answer = shared.one_of(&gateway, name, body.get())?;
            Ok((name, answer))
        });
        let answers: BTreeMap<_, _> = answers.collect::<Result<_, Refusal>>()?;
        Ok(serialized(StatusCode::OK, &answers))
    })
    .await
}

/// The body of each question, by its name, and the members shared by all.
fn questions(text: &str) -> Result<(Shared, BTreeMap<String, &RawValue>), Refusal> {
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(text).or_else(|error| {
        // For the same error message as for a single question.
        Object::parse(text, "body")?;
        Err(Refusal::bad_request(error.to_string()))
    })?;
    let mut common = Object::default();
    for name in ["text", "most"] {
        if let Some(value) = members.remove(name) {
            common.set(name, value)?;
        }
    }
    let shared = Shared {
        text: common.optional_text("text")?,
        most: common.number("most")?,
    };
    Ok((shared, members))
}

/// The members shared by all questions.
struct Shared {
    /// The text of questions without one.
    text: Option<String>,
    /// The longest text in an answer; of a longer one only the ends are sent.
    most: Option<usize>,
}

impl Shared {
    /// The answer to one question of several, or why there is none.
    fn one_of(&self, gateway: &Gateway, name: &str, body: &str) -> Result<Box<RawValue>, Refusal> {
        let object = || self.object(name, body);
        let answer = match name {
            "cut" => object().and_then(|mut it| {
                let text = it.text("text")?;
                self.answer(&cut_contexts(&PartialDocument::read(&text)?))
            }),
            "close" => {
                object().and_then(|it| self.answer(&close_object(it, CloseOptions::default())?))
            }
            "repair" => {
                object().and_then(|it| self.answer(&repair_object(it, RepairOptions::default())?))
            }
            "render" => {
                object().and_then(|it| self.answer(&render_object(it, RenderOptions::default())?))
            }
            "stitch" => object().and_then(|it| self.answer(&stitch_object(it, Protocol::Auto)?)),
            "fit" => fitted(gateway, body).map(|(_, answer)| answer),
            name => {
                return Err(Refusal::bad_request(format!(
                    "unknown question `{name}`: expected `cut`, `close`, `repair`, `render`, `stitch` or `fit`"
                )));
            }
        };
        answer.or_else(|refusal| raw(&refusal.of_a_request()))
    }

    /// A question, with the shared text unless it has its own.
    fn object(&self, name: &str, body: &str) -> Result<Object, Refusal> {
        let mut object = Object::parse(body, name)?;
        if let Some(text) = &self.text {
            match name {
                "stitch" => object.put_first("parts", text),
                _ => object.put_if_missing("text", text),
            }
        }
        Ok(object)
    }

    fn answer(&self, answer: &impl Serialize) -> Result<Box<RawValue>, Refusal> {
        match self.most {
            Some(most) => raw(&shortened(answer, most)?),
            None => raw(answer),
        }
    }
}

fn raw(answer: &impl Serialize) -> Result<Box<RawValue>, Refusal> {
    // Every key of an answer is a string, so this never fails.
    to_raw_value(answer).map_err(|error| Refusal::unusable(error.to_string()))
}

async fn of_object<R: Serialize>(
    text: RequestText,
    answer: impl FnOnce(Object) -> Result<R, Refusal> + Send + 'static,
) -> Handled {
    of_text(text, move |text| {
        Ok(serialized(
            StatusCode::OK,
            &answer(Object::parse(text, "body")?)?,
        ))
    })
    .await
}

async fn of_text(
    RequestText(text): RequestText,
    answer: impl FnOnce(&str) -> Result<Reply, Refusal> + Send + 'static,
) -> Handled {
    let answered = offload::with_text(text.len(), move || answer(&text)).await?;
    Ok(answered.unwrap_or_else(|refusal| {
        let refusal = refusal.of_a_request();
        let status = if refusal.is_no_json() {
            StatusCode::UNPROCESSABLE_ENTITY
        } else {
            StatusCode::BAD_REQUEST
        };
        serialized(status, &refusal)
    }))
}

/// The result of fitting a request, with the request that this gateway would send.
#[derive(Serialize)]
struct FittedRequest<'a, T> {
    #[serde(flatten)]
    fitted: T,
    /// The output limit that is sent. The tokens planned for the answer are not a limit by themselves.
    limit: AnswerLimit,
    /// The exact body for the upstream, if the request fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<Cow<'a, str>>,
}

/// Fits a request. A request that cannot fit is an answer too.
fn fitted(gateway: &Gateway, text: &str) -> Result<(StatusCode, Box<RawValue>), Refusal> {
    let request =
        ChatRequest::from_json(text).map_err(|error| Refusal::bad_request(error.to_string()))?;
    let Some(model) = request.model() else {
        return Err(Refusal::bad_request("`model` is missing"));
    };
    let known = gateway.model_cache.get(&gateway.settings, model);
    let asked = FitRequest {
        model,
        found: &known.found,
        request: &request,
        text,
        extras: &Extras::default(),
        counter: &known.counter,
    };
    match asked.fit(known.plan.clone()) {
        Ok(Ok(fitted)) => {
            let sent = Box::new(request.clone()).forwarded(text, &fitted.plan);
            let sent = sent.map_or(text.into(), Cow::from);
            let answer = FittedRequest {
                fitted: fitted.report(),
                limit: AnswerLimit::of(request.requested(), &fitted.plan),
                sent: Some(sent),
            };
            Ok((StatusCode::OK, raw(&answer)?))
        }
        Ok(Err(refused)) => {
            let help = refused.help("set `budget.trim` to `oldest`");
            let limit = AnswerLimit {
                asked: request.requested(),
                sent: None,
            };
            let fitted = refused.report(help);
            let refused = raw(&FittedRequest {
                fitted,
                limit,
                sent: None,
            })?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, refused))
        }
        Err(error) => Err(Refusal::bad_request(error.to_string())),
    }
}

pub(super) fn serialized(status: StatusCode, answer: &impl Serialize) -> Reply {
    let text = serde_json::to_string(answer).expect("every key of an answer is a string");
    reply(status, "application/json", whole(text))
}
