//! How the columns of a batch are encoded, in a few words each, for reports.

use super::super::anatomy::Part;
use super::ints::Ints;
use super::layout::{Columns, Sparse};

impl Ints<'_> {
    fn describe(&self) -> String {
        let digits = self.digits();
        let each = digits.group();
        let (radix, width) = (digits.radix(), digits.width());
        match (self.len(), self.constant(), each) {
            (0, _, _) => "none".to_owned(),
            (_, Some(all), _) => format!("all {all}"),
            (_, None, _) => format!("radix {radix}, {each} in {width} bit(s)"),
        }
    }
}

impl Sparse<'_> {
    fn describe(&self) -> String {
        match self.set.is_empty() {
            true => "none".to_owned(),
            false => format!("{}; {}", self.set.describe(), self.numbers.describe()),
        }
    }
}

impl Columns<'_> {
    /// A note on each part.
    pub(super) fn notes(&self) -> Vec<(Part, String)> {
        let [tables, zones] = &self.objects.sections;
        let ids = [tables, zones].map(|section| match section.len {
            0 => "none".to_owned(),
            1 => "one".to_owned(),
            _ => format!(
                "every {} from {}: {}",
                section.stride,
                section.first,
                section.steps.describe()
            ),
        });
        let [tables, zones] = ids;
        let holders = match &self.rare_holders {
            None => self.holders.describe(),
            Some(rare) => format!(
                "{} frequent of {}; rare ones: {}",
                self.holders.describe(),
                self.frequent_set.len(),
                rare.describe()
            ),
        };
        let present = &self.objects.present;
        let holes = match present.is_all() {
            true => "none".to_owned(),
            false => format!("partitions with a lease: {}", present.describe()),
        };
        vec![
            (Part::ObjectIds, format!("tables: {tables}; zones: {zones}")),
            (Part::Counts, self.objects.partitions.describe()),
            (Part::Holes, holes),
            (Part::Holders, holders),
            (Part::Candidates, self.candidates.describe()),
            (
                Part::Flags,
                format!(
                    "not accepted: {}; other prolongability: {}",
                    self.unaccepted.describe(),
                    self.irregular.describe()
                ),
            ),
            (Part::Expirations, self.expirations.describe()),
            (Part::StartBases, self.objects.bases.describe()),
            (Part::EventStarts, self.event.describe()),
            (Part::StartOffsets, self.offsets.describe()),
            (Part::OddStarts, self.odd_starts.describe()),
            (Part::StartLogicals, self.start_logicals.describe()),
        ]
    }
}
