//! Measures: what the stacks of a profile are weighed by, and which of them a view shows.

use varid_recording::ContextCounter;

use crate::{
    error::{Error, Result},
    profile::{EventSummary, Profile},
    unit::Unit,
    view::PercentOf,
    weights::{MAX_COUNTERS, ProfileCounter, SampleWeight, Weight},
};

/// What stacks are weighed by: samples, their periods, or a counter of calling contexts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// The column of the profile's weights.
    pub counter: ProfileCounter,
    /// Its name on the command line, in columns and in JSON.
    pub name: String,
    /// What it counts: `samples`, `ns`, `events`, or the unit of a counter of calling contexts.
    pub unit: String,
    /// Whether each occurrence was counted. A sampled measure is an estimate.
    pub exact: bool,
}

impl Profile {
    /// The measures that a view of an event can show.
    #[must_use]
    pub fn measures(&self, event: &EventSummary) -> Vec<Measure> {
        let [samples, period] = ProfileCounter::of_samples(event.event);
        let sampled = |counter, name: &str, unit: Unit| Measure {
            counter,
            name: name.to_owned(),
            unit: unit.name().to_owned(),
            exact: false,
        };
        let exact = |(counter, of): (_, &ContextCounter)| Measure {
            counter: ProfileCounter::Context(counter),
            name: of.name.clone(),
            unit: of.unit.clone(),
            exact: true,
        };
        let sampled = [
            sampled(samples, PercentOf::Samples.name(), Unit::Samples),
            sampled(
                period,
                PercentOf::Period.name(),
                Unit::of(self.description(event.event)),
            ),
        ];
        sampled
            .into_iter()
            .chain(self.context_counters().map(exact))
            .collect()
    }
}

/// How the columns of measures look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MeasureColumns {
    /// The number of samples, with percentages of samples or of periods: what a view shows unless measures are named.
    Samples,
    /// Columns of each measure, under its name.
    Each,
}

/// The measures that a view shows. The first one is what rows are filtered and, unless it is of samples, sorted by.
#[derive(Debug, Clone)]
pub(crate) struct ShownMeasures {
    /// The weights of the view have their values, in this order.
    pub list: Vec<Measure>,
    pub columns: MeasureColumns,
    /// The place of the measure that rows are sorted by and that percentages are of.
    lead: usize,
}

impl ShownMeasures {
    /// The samples of an event, with their periods.
    pub fn samples(profile: &Profile, event: &EventSummary, percent_of: PercentOf) -> Self {
        let mut list = profile.measures(event);
        list.truncate(2);
        Self {
            list,
            columns: MeasureColumns::Samples,
            lead: match percent_of {
                PercentOf::Samples => 0,
                PercentOf::Period => 1,
            },
        }
    }

    /// The measures of these names.
    ///
    /// # Errors
    ///
    /// The profile does not have one of them; there are too many.
    pub fn named(profile: &Profile, event: &EventSummary, names: &[String]) -> Result<Self> {
        if names.len() > MAX_COUNTERS {
            return Err(Error::TooManyMeasures(names.len()));
        }
        let known = profile.measures(event);
        let find = |name: &String| {
            let found = known.iter().find(|measure| measure.name == *name);
            found.cloned().ok_or_else(|| Error::NoMeasure {
                name: name.clone(),
                known: known.iter().map(|measure| measure.name.clone()).collect(),
            })
        };
        Ok(Self {
            list: names.iter().map(find).collect::<Result<_>>()?,
            columns: MeasureColumns::Each,
            lead: 0,
        })
    }

    /// The measures of these names; the samples of an event if there are no names.
    ///
    /// # Errors
    ///
    /// Those of [`Self::named`].
    pub fn of(
        profile: &Profile,
        event: &EventSummary,
        names: &[String],
        percent_of: PercentOf,
    ) -> Result<Self> {
        match names {
            [] => Ok(Self::samples(profile, event, percent_of)),
            [one] if one == PercentOf::Samples.name() => {
                Ok(Self::samples(profile, event, PercentOf::Samples))
            }
            names => Self::named(profile, event, names),
        }
    }

    /// The columns of the profile's weights.
    pub fn counters(&self) -> Vec<ProfileCounter> {
        self.list.iter().map(|measure| measure.counter).collect()
    }

    /// The value that rows are sorted by, and that percentages are of.
    pub fn value(&self, weight: Weight) -> u64 {
        weight.get(self.lead)
    }

    /// The measure of [`Self::value`].
    pub fn lead(&self) -> Option<&Measure> {
        self.list.get(self.lead)
    }

    /// The value that is shown beside a percentage: samples, or the value of the first measure.
    pub fn count(&self, weight: Weight) -> u64 {
        weight.get(0)
    }

    /// The unit of [`Self::count`].
    pub fn count_unit(&self) -> &str {
        self.list.first().map_or("", |measure| &measure.unit)
    }

    /// Returns true if the weights are samples with their periods.
    pub fn are_samples(&self) -> bool {
        self.columns == MeasureColumns::Samples
    }

    /// What percentages of samples are of: what the measures are, if they are samples.
    pub fn percent_of(&self, otherwise: PercentOf) -> PercentOf {
        match (self.columns, self.lead) {
            (MeasureColumns::Samples, 0) => PercentOf::Samples,
            _ => otherwise,
        }
    }

    /// Returns true if each measure is exact.
    pub fn are_exact(&self) -> bool {
        self.list.iter().all(|measure| measure.exact)
    }
}

impl PercentOf {
    /// The value of samples.
    pub(crate) const fn value(self, weight: SampleWeight) -> u64 {
        match self {
            Self::Period => weight.period(),
            Self::Samples => weight.samples(),
        }
    }
}
