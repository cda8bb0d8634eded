//! Reports a request that cannot be made to fit: what is too large, by how much, and what would
//! help.

use overlock_budget::{PlanError, Sharing};
use overlock_runs::Refused;

use crate::draw::{self, PartDrawing, Verdict, WindowDrawing, counted};
use crate::ending::{Ending, Failure};
use crate::output::{Notes, Results};

pub(in crate::commands) fn fail(
    json: bool,
    refused: Refused,
    notes: &mut Notes,
) -> Result<Ending, Failure> {
    let help = refused.help("drop the oldest turns with --trim oldest");
    if json {
        Results::new().object(&refused.report(help.clone()))?;
    } else {
        for line in drawing(&refused).lines(draw::terminal_width()) {
            notes.line(line);
        }
    }
    Err(Failure::Refused {
        source: Box::new(refused.error),
        help,
    })
}

/// Settings that contradict each other; only the configuration has both.
pub(in crate::commands) fn contradiction(error: &PlanError) -> Failure {
    Failure::Usage {
        message: error.to_string(),
        hint: "set `min` to no more than `max` under [budget] in overlock.toml".into(),
    }
}

/// The parts that must stay, and by how much they exceed the window.
fn drawing(refused: &Refused) -> WindowDrawing {
    let (asked, least) = (&refused.asked, &refused.least);
    let parts = least.parts.iter();
    let parts = parts.filter(|part| part.asked > 0 || part.given > 0);
    let parts = parts.map(|part| PartDrawing {
        part: part.part,
        asked: part.asked,
        at_least: part.at_least,
        given: part.given,
        note: if part.dropped > 0 {
            "could be dropped".into()
        } else {
            String::new()
        },
    });
    WindowDrawing {
        model: asked.model.to_owned(),
        counted: counted(
            asked.counter.name(),
            asked.counter.provenance(asked.request),
        ),
        window: refused.options.window,
        parts: parts.collect(),
        margin: least.margin,
        input: least.input,
        available: least.available,
        requested: least.requested,
        adjusted: least.answer,
        verdict: Verdict::Over {
            by: refused.overflow,
        },
        shared: refused.options.sharing == Sharing::Shared,
    }
}
