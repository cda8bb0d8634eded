//! `POST /api/…`: one object in, one object out, as on the command line.

use std::sync::Arc;

use hyper::StatusCode;
use overlock_budget::{ChatRequest, Extras};
use overlock_json::{CloseOptions, Protocol, RenderOptions, RepairOptions};
use serde::Serialize;

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
    of_text(call, move |text| fitted(&gateway, text)).await
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

fn fitted(gateway: &Gateway, text: &str) -> Result<Reply, Refusal> {
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
        Ok(Ok(fitted)) => Ok(told(StatusCode::OK, &fitted.told())),
        Ok(Err(refused)) => {
            let help = refused.help("set `budget.trim` to `oldest`");
            let refused = refused.told(help);
            Ok(told(StatusCode::UNPROCESSABLE_ENTITY, &refused))
        }
        Err(error) => Err(Refusal::bad_request(error.to_string())),
    }
}

pub(super) fn told(status: StatusCode, answer: &impl Serialize) -> Reply {
    let text = serde_json::to_string(answer).expect("every key of an answer is a string");
    reply(status, "application/json", whole(text))
}
