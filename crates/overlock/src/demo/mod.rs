//! Shows the product at work with nothing set up: a model that is cut off again and
//! again, and a document that comes out whole.
//!
//! Nothing here is prepared. [`play`] makes a [`Story`] with the library's public
//! functions alone, as a program that uses it would, and [`tell`](Teller::tell) tells it.

mod check;
mod model;
mod random;
mod tell;

use overlock_json::{Base, ContextOptions, Cut, NoJson, Seam, StitchOptions, delivered, stitch};

use crate::draw;
pub(crate) use check::{Measures, whole_document};
use model::{Answer, Model};
pub(crate) use tell::Teller;

/// The document that is played when no other is given.
pub(crate) const REPORT: &str = include_str!("report.json");

/// What happened from the first call to the last.
pub(crate) struct Story<'a> {
    pub(crate) document: &'a str,
    pub(crate) seed: u64,
    pub(crate) calls: Vec<Call>,
    /// The document as it was stitched together.
    pub(crate) result: String,
}

/// One call of the model, and what became of its answer.
pub(crate) struct Call {
    pub(crate) answer: Answer,
    /// How it was joined; the first answer has nothing to be joined to.
    pub(crate) seam: Option<Seam>,
    /// How much of the document was there afterwards.
    pub(crate) base_len: usize,
    pub(crate) stop: Option<Stop>,
}

/// Where the document stood open after a call.
pub(crate) struct Stop {
    pub(crate) cut: Cut,
    /// What was open, as a trail.
    pub(crate) open: String,
    /// The last line of what has been delivered.
    pub(crate) delivered: Option<String>,
    /// What the next answer was asked to begin with.
    pub(crate) overlap: String,
}

impl Story<'_> {
    pub(crate) fn is_identical(&self) -> bool {
        self.result == self.document
    }
}

/// Lets a model that is cut off write `document`, and stitches its answers.
pub(crate) fn play(document: &str, seed: u64) -> Result<Story<'_>, NoJson> {
    /// After as many refusals in a row a program would give up.
    const PATIENCE: usize = 3;
    let mut model = Model::new(document, seed);
    let first = model.begin();
    let first_text = first.text.clone();
    let mut base = Base::read(&first_text)?;
    let mut calls = vec![Call::new(first, None, &base)];
    let mut refusals = 0;
    // A text that went astray is told as it is; there is nothing to go on from.
    while refusals < PATIENCE && document.starts_with(base.text()) {
        let Some(stop) = calls.last().and_then(|call| call.stop.as_ref()) else {
            break;
        };
        let overlap = stop.overlap.clone();
        let answer = model.go_on(base.text().len(), &overlap, refusals > 0);
        let options = StitchOptions {
            protocol: answer.behaviour.protocol(),
            expected_overlap: Some(&overlap),
        };
        let seam = stitch(&mut base, &answer.text, &options);
        refusals = if seam.outcome.is_accepted() {
            0
        } else {
            refusals + 1
        };
        calls.push(Call::new(answer, Some(seam), &base));
    }
    Ok(Story {
        document,
        seed,
        calls,
        result: base.text().to_owned(),
    })
}

impl Call {
    fn new(answer: Answer, seam: Option<Seam>, base: &Base<'_>) -> Self {
        let stop = base.scanner().cut().map(|cut| Stop {
            open: base
                .scanner()
                .closing(false)
                .map_or_else(String::new, |closing| {
                    draw::open_trail(base, &cut, &closing)
                }),
            delivered: delivered(base.text())
                .ok()
                .and_then(|delivered| delivered.lines().pop()),
            overlap: base.contexts(&ContextOptions::default()).overlap_context,
            cut,
        });
        Self {
            answer,
            seam,
            base_len: base.text().len(),
            stop,
        }
    }
}
