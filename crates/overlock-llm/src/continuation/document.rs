//! The document so far, and what is counted of it as it grows.

use overlock_json::{
    Container, Delivered, NoJson, PartialDocument, Scalar, Scanner, Seam, StitchOptions, Visitor,
    stitch,
};

use crate::progress::{Measure, MeasuredKpi};

/// A document that grows by answers. Each costs what it brings.
#[derive(Clone, Debug)]
pub(super) struct Document {
    base: PartialDocument<'static>,
    /// Reads what no later answer writes anew, for those who count.
    settled: Scanner,
    counts: Counts,
}

impl Document {
    /// The document in a first answer.
    pub(super) fn read(answer: &[u8], kpis: &[MeasuredKpi]) -> Result<Self, NoJson> {
        let mut document = Self {
            base: PartialDocument::read(answer)?.into_owned(),
            settled: Scanner::new(),
            counts: Counts {
                delivered: Delivered::default(),
                measures: kpis.iter().map(Measure::new).collect(),
            },
        };
        document.count();
        Ok(document)
    }

    /// The document that was stored, if it is one as it stands: what would have to be found or
    /// mended in it was never accepted.
    pub(super) fn stored(text: &[u8], kpis: &[MeasuredKpi]) -> Option<Self> {
        let document = Self::read(text, kpis).ok()?;
        let base = &document.base;
        let is_same = [base.text().as_bytes(), base.half_character()].concat() == text;
        is_same.then_some(document)
    }

    /// Joins an answer; the document stays as it is if that is refused.
    pub(super) fn stitch(&mut self, answer: &[u8], options: &StitchOptions<'_>) -> Seam {
        let seam = stitch(&mut self.base, answer, options);
        if seam.outcome.is_accepted() {
            self.count();
        }
        seam
    }

    /// Counts these from now on, as far as they can rise from what is there to what is aimed at.
    /// What is left out is not worth counting.
    pub(super) fn measure(&mut self, kpis: &[MeasuredKpi]) -> Vec<MeasuredKpi> {
        let text = &self.base.text().as_bytes()[..self.settled.offset()];
        let mut counts = Counts {
            delivered: Delivered::default(),
            measures: kpis.iter().map(Measure::new).collect(),
        };
        Scanner::new().feed_with(text, &mut counts);
        counts.measures.retain(|measure| {
            measure.can_rise() && measure.kpi().current_value < measure.kpi().target_value
        });
        self.counts.measures = counts.measures;
        self.kpis().cloned().collect()
    }

    pub(super) fn base(&self) -> &PartialDocument<'static> {
        &self.base
    }

    pub(super) fn delivered(&self) -> &Delivered {
        &self.counts.delivered
    }

    pub(super) fn kpis(&self) -> impl Iterator<Item = &MeasuredKpi> {
        self.counts.measures.iter().map(Measure::kpi)
    }

    fn count(&mut self) {
        let text = self.base.text().as_bytes();
        let new = &text[self.settled.offset()..self.base.settled_len()];
        self.settled.feed_with(new, &mut self.counts);
    }
}

/// All that listens to the scan.
#[derive(Clone, Debug)]
struct Counts {
    delivered: Delivered,
    measures: Vec<Measure>,
}

impl Visitor for Counts {
    fn open(&mut self, container: Container) {
        self.delivered.open(container);
        self.measures
            .iter_mut()
            .for_each(|measure| measure.open(container));
    }

    fn close(&mut self, container: Container) {
        self.delivered.close(container);
        self.measures
            .iter_mut()
            .for_each(|measure| measure.close(container));
    }

    fn key(&mut self, raw: &[u8]) {
        self.delivered.key(raw);
        self.measures
            .iter_mut()
            .for_each(|measure| measure.key(raw));
    }

    fn text(&mut self, raw: &[u8]) {
        self.delivered.text(raw);
    }

    fn scalar(&mut self, kind: Scalar) {
        self.delivered.scalar(kind);
        self.measures
            .iter_mut()
            .for_each(|measure| measure.scalar(kind));
    }
}
