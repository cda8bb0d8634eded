//! The document so far, with the counters that follow its growth.

use overlock_json::{
    Container, Delivered, NoJson, PartialDocument, Scalar, Scanner, Seam, StitchOptions, Visitor,
    stitch,
};

use crate::progress::{Measure, MeasuredKpi};

/// A document that grows by answers. The work for each is linear in its length.
#[derive(Clone, Debug)]
pub(super) struct Document {
    base: PartialDocument<'static>,
    /// Feeds the counters with the text that no later answer can change.
    settled: Scanner,
    counts: DocumentCounts,
}

impl Document {
    /// The document that starts in a first answer.
    pub(super) fn read(answer: &[u8], kpis: &[MeasuredKpi]) -> Result<Self, NoJson> {
        let mut document = Self {
            base: PartialDocument::read(answer)?.into_owned(),
            settled: Scanner::new(),
            counts: DocumentCounts {
                delivered: Delivered::default(),
                measures: kpis.iter().map(Measure::new).collect(),
            },
        };
        document.count();
        Ok(document)
    }

    /// The document that was stored, if the text is one. Text around it or text that needs repair
    /// was never accepted as a document.
    pub(super) fn stored(text: &[u8], kpis: &[MeasuredKpi]) -> Option<Self> {
        let document = Self::read(text, kpis).ok()?;
        let base = &document.base;
        let is_same = [base.text().as_bytes(), base.half_character()].concat() == text;
        is_same.then_some(document)
    }

    /// Joins an answer; if the join is rejected, the document does not change.
    pub(super) fn stitch(&mut self, answer: &[u8], options: &StitchOptions<'_>) -> Seam {
        let seam = stitch(&mut self.base, answer, options);
        if seam.outcome.is_accepted() {
            self.count();
        }
        seam
    }

    /// Counts these KPIs from now on, and returns those that are kept: only KPIs that can still
    /// rise from their current value to their target.
    pub(super) fn set_kpis(&mut self, kpis: &[MeasuredKpi]) -> Vec<MeasuredKpi> {
        let text = &self.base.text().as_bytes()[..self.settled.offset()];
        let mut counts = DocumentCounts {
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

/// The visitors of the scan.
#[derive(Clone, Debug)]
struct DocumentCounts {
    delivered: Delivered,
    measures: Vec<Measure>,
}

impl Visitor for DocumentCounts {
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
