//! `POST /api/…`: one object in, one object out, as on the command line; or several at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::StatusCode;
use overlock_budget::{ChatRequest, Extras};
use overlock_json::{CloseOptions, Protocol, RenderOptions, RepairOptions};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::api::{
    Asked, Object, Refusal, close_object, cut_object, render_object, repair_object, stitch_object,
};
use crate::aside;
use crate::body::{Reply, read_text, reply, whole};
use crate::gateway::Gateway;
use crate::routes::{Call, Handled};

pub(crate) async fn cut(call: Call) -> Handled {
    of_object(call, cut_object).await
}

pub(crate) async fn close(call: Call) -> Handled {
    of_object(call, |object| close_object(object, CloseOptions::default())).await
}

pub(crate) async fn repair(call: Call) -> Handled {
    of_object(call, |object| {
        repair_object(object, RepairOptions::default())
    })
    .await
}

pub(crate) async fn render(call: Call) -> Handled {
    of_object(call, |object| {
        render_object(object, RenderOptions::default())
    })
    .await
}

pub(crate) async fn stitch(call: Call) -> Handled {
    of_object(call, |object| stitch_object(object, Protocol::Auto)).await
}

pub(crate) async fn fit(call: Call) -> Handled {
    let gateway = Arc::clone(&call.gateway);
    of_text(call, move |text| {
        let (status, answer) = fitted(&gateway, text)?;
        Ok(told(status, &answer))
    })
    .await
}

/// Several questions in one request. Each is answered as if it were alone, and one without an
/// answer is no error: whoever types a text asks about it long before it is one.
pub(crate) async fn several(call: Call) -> Handled {
    let gateway = Arc::clone(&call.gateway);
    of_text(call, move |text| {
        let asked = questions(text)?;
        let answers = asked.iter().map(|(name, body)| {
            let answer = one_of(&gateway, name, body.get())?;
            Ok((name, answer))
        });
        let answers: BTreeMap<_, _> = answers.collect::<Result<_, Refusal>>()?;
        Ok(told(StatusCode::OK, &answers))
    })
    .await
}

/// The body of each question, by its name.
fn questions(text: &str) -> Result<BTreeMap<String, Box<RawValue>>, Refusal> {
    // What is wrong with it is told in the same words as of any other.
    Object::parse(text, "body")?;
    serde_json::from_str(text).map_err(|error| Refusal::bad_request(error.to_string()))
}

/// The answer to one question of several, or why there is none.
fn one_of(gateway: &Gateway, name: &str, body: &str) -> Result<Box<RawValue>, Refusal> {
    let object = || Object::parse(body, name);
    let answer = match name {
        "cut" => object().and_then(cut_object),
        "close" => object().and_then(|it| raw(&close_object(it, CloseOptions::default())?)),
        "repair" => object().and_then(|it| raw(&repair_object(it, RepairOptions::default())?)),
        "render" => object().and_then(|it| raw(&render_object(it, RenderOptions::default())?)),
        "stitch" => object().and_then(|it| raw(&stitch_object(it, Protocol::Auto)?)),
        "fit" => fitted(gateway, body).map(|(_, answer)| answer),
        name => {
            return Err(Refusal::bad_request(format!(
                "nobody answers `{name}`: there are `cut`, `close`, `repair`, `render`, `stitch` and `fit`"
            )));
        }
    };
    answer.or_else(|refusal| raw(&refusal.of_a_request()))
}

fn raw(answer: &impl Serialize) -> Result<Box<RawValue>, Refusal> {
    // Every key of an answer is a string, so that this never fails.
    to_raw_value(answer).map_err(|error| Refusal::unusable(error.to_string()))
}

async fn of_object<R: Serialize>(
    call: Call,
    answer: impl FnOnce(Object) -> Result<R, Refusal> + Send + 'static,
) -> Handled {
    of_text(call, move |text| {
        Ok(told(StatusCode::OK, &answer(Object::parse(text, "body")?)?))
    })
    .await
}

async fn of_text(
    call: Call,
    answer: impl FnOnce(&str) -> Result<Reply, Refusal> + Send + 'static,
) -> Handled {
    let text = read_text(call.request.into_body(), &call.gateway.settings.limits).await?;
    let answered = aside::with_text(text.len(), move || answer(&text)).await?;
    Ok(answered.unwrap_or_else(|refusal| {
        let refusal = refusal.of_a_request();
        let status = if refusal.is_no_json() {
            StatusCode::UNPROCESSABLE_ENTITY
        } else {
            StatusCode::BAD_REQUEST
        };
        told(status, &refusal)
    }))
}

/// A request that fits, or one that cannot be made to: both are answers.
fn fitted(gateway: &Gateway, text: &str) -> Result<(StatusCode, Box<RawValue>), Refusal> {
    let request =
        ChatRequest::from_json(text).map_err(|error| Refusal::bad_request(error.to_string()))?;
    let Some(model) = request.model() else {
        return Err(Refusal::bad_request("`model` is missing"));
    };
    let known = gateway.known.get(&gateway.settings, model);
    let asked = Asked {
        model,
        found: &known.found,
        request: &request,
        text,
        extras: &Extras::default(),
        counter: &known.counter,
    };
    match asked.fit(known.plan.clone()) {
        Ok(Ok(fitted)) => Ok((StatusCode::OK, raw(&fitted.told())?)),
        Ok(Err(refused)) => {
            let help = refused.help("set `budget.trim` to `oldest`");
            let refused = raw(&refused.told(help))?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, refused))
        }
        Err(error) => Err(Refusal::bad_request(error.to_string())),
    }
}

pub(super) fn told(status: StatusCode, answer: &impl Serialize) -> Reply {
    let text = serde_json::to_string(answer).expect("every key of an answer is a string");
    reply(status, "application/json", whole(text))
}
