//! The measures of a profile, and the selection that a view shows.

use varid_recording::ContextCounter;

use crate::{
    error::{Error, Result},
    profile::{EventSummary, Profile},
    unit::Unit,
    view::PercentOf,
    weights::{MAX_COUNTERS, ProfileCounter, SampleWeight, Weight},
};

/// A quantity by which stacks are weighed: samples, their periods, or a counter of calling contexts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// The column of the profile's weights.
    pub counter: ProfileCounter,
    /// Its name on the command line, in columns and in JSON.
    pub name: String,
    /// The unit: `samples`, `ns`, `events`, or the unit of a counter of calling contexts.
    pub unit: String,
    /// How the values were obtained.
    pub origin: MeasureOrigin,
}

/// How the values of a measure were obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasureOrigin {
    /// Some occurrences were recorded.
    Sampled,
    /// Each occurrence was counted.
    Counted,
    /// They were computed from what was counted: `varid estimate` does.
    Estimated,
}

impl MeasureOrigin {
    /// Returns the word for it: `sampled`, `exact`, `estimated`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sampled => "sampled",
            Self::Counted => "exact",
            Self::Estimated => "estimated",
        }
    }
}

impl Measure {
    /// Returns its name, with its unit if that is another word.
    pub(crate) fn title(&self) -> String {
        match self.name == self.unit {
            true => self.name.clone(),
            false => format!("{} ({})", self.name, self.unit),
        }
    }
}

impl Profile {
    /// Returns the measures that a view of an event can show.
    #[must_use]
    pub fn measures(&self, event: &EventSummary) -> Vec<Measure> {
        let [samples, period] = ProfileCounter::of_samples(event.event);
        let sampled = |counter, name: &str, unit: Unit| Measure {
            counter,
            name: name.to_owned(),
            unit: unit.name().to_owned(),
            origin: MeasureOrigin::Sampled,
        };
        let sampled = [
            sampled(samples, PercentOf::Samples.name(), Unit::Samples),
            sampled(
                period,
                PercentOf::Period.name(),
                Unit::of(self.description(event.event)),
            ),
        ];
        sampled.into_iter().chain(self.context_measures()).collect()
    }

    /// Returns the counters of the session's calling contexts.
    pub(crate) fn context_measures(&self) -> impl Iterator<Item = Measure> {
        let estimates = &self.recording.manifest.estimates;
        let measure = move |(counter, of): (_, &ContextCounter)| Measure {
            counter: ProfileCounter::Context(counter),
            name: of.name.clone(),
            unit: of.unit.clone(),
            origin: match estimates.iter().any(|one| one.measure == of.name) {
                true => MeasureOrigin::Estimated,
                false => MeasureOrigin::Counted,
            },
        };
        self.context_counters().map(measure)
    }

    /// Returns the measure that a view shows if none is named: the first exact one of a session without samples. None if
    /// it shows samples.
    #[must_use]
    pub fn default_measure(&self) -> Option<Measure> {
        let has_samples = self.events.iter().any(|event| event.recorded > 0);
        // An event that the options name is shown, with or without samples.
        if has_samples || self.options.event.is_some() {
            return None;
        }
        self.context_measures().next()
    }
}

/// The column layout of measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MeasureColumns {
    /// The number of samples, with percentages of samples or of periods. This is the default if no measures are named.
    Samples,
    /// One group of columns for each measure, under its name.
    Each,
}

/// Returns the known measures with these names.
///
/// # Errors
///
/// One of them is not known.
pub(crate) fn named(known: &[Measure], names: &[String]) -> Result<Vec<Measure>> {
    let find = |name: &String| {
        let found = known.iter().find(|measure| measure.name == *name);
        found.cloned().ok_or_else(|| Error::NoMeasure {
            name: name.clone(),
            known: known.iter().map(|measure| measure.name.clone()).collect(),
        })
    };
    names.iter().map(find).collect()
}

/// The measures that a view shows. Rows are filtered by the first one and, unless the measures are samples, sorted by it.
#[derive(Debug, Clone)]
pub(crate) struct ShownMeasures {
    /// The measures in the order of the view's weights.
    pub list: Vec<Measure>,
    pub columns: MeasureColumns,
    /// Index of the measure for sorting and for percentages.
    lead: usize,
}

impl ShownMeasures {
    /// Selects the samples of an event with their periods.
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

    /// Selects the measures with these names.
    ///
    /// # Errors
    ///
    /// The profile does not have one of the measures, or there are too many.
    pub fn named(profile: &Profile, event: &EventSummary, names: &[String]) -> Result<Self> {
        if names.len() > MAX_COUNTERS {
            return Err(Error::TooManyMeasures(names.len()));
        }
        Ok(Self::each(named(&profile.measures(event), names)?))
    }

    /// Selects these measures, each with columns of its own.
    const fn each(list: Vec<Measure>) -> Self {
        Self {
            list,
            columns: MeasureColumns::Each,
            lead: 0,
        }
    }

    /// Selects the measures with these names. If there are no names, selects [`Profile::default_measure`] or the samples of
    /// an event.
    ///
    /// # Errors
    ///
    /// As for [`Self::named`].
    pub fn of(
        profile: &Profile,
        event: &EventSummary,
        names: &[String],
        percent_of: PercentOf,
    ) -> Result<Self> {
        match names {
            [] => Ok(match profile.default_measure() {
                Some(measure) => Self::each(vec![measure]),
                None => Self::samples(profile, event, percent_of),
            }),
            [one] if one == PercentOf::Samples.name() => {
                Ok(Self::samples(profile, event, PercentOf::Samples))
            }
            names => Self::named(profile, event, names),
        }
    }

    /// Returns each measure as a selection of its own. Samples with their periods stay one.
    pub fn split(&self) -> Vec<Self> {
        match self.columns {
            MeasureColumns::Samples => vec![self.clone()],
            MeasureColumns::Each => {
                let measures = self.list.iter().cloned();
                measures.map(|measure| Self::each(vec![measure])).collect()
            }
        }
    }

    /// The columns of the profile's weights.
    pub fn counters(&self) -> Vec<ProfileCounter> {
        self.list.iter().map(|measure| measure.counter).collect()
    }

    /// Returns the values of the shown measures in a weight of samples. Exact measures have none.
    pub fn of_samples(&self, weight: SampleWeight) -> Weight {
        Weight::new(self.list.iter().map(|measure| match measure.counter {
            ProfileCounter::Samples(_) => weight.samples(),
            ProfileCounter::Period(_) => weight.period(),
            ProfileCounter::Context(_) => 0,
        }))
    }

    /// Returns the value for sorting and for percentages.
    pub fn value(&self, weight: Weight) -> u64 {
        weight.get(self.lead)
    }

    /// The measure of [`Self::value`].
    pub fn lead(&self) -> Option<&Measure> {
        self.list.get(self.lead)
    }

    /// Returns the value that is shown beside a percentage: samples, or the value of the first measure.
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

    /// Returns [`PercentOf::Samples`] if rows are sorted by the number of samples, else `otherwise`.
    pub fn percent_of(&self, otherwise: PercentOf) -> PercentOf {
        match (self.columns, self.lead) {
            (MeasureColumns::Samples, 0) => PercentOf::Samples,
            _ => otherwise,
        }
    }

    /// Returns true if a measure has an error of sampling.
    pub fn are_sampled(&self) -> bool {
        let mut list = self.list.iter();
        list.any(|measure| measure.origin == MeasureOrigin::Sampled)
    }
}

impl PercentOf {
    /// Returns the number that this option selects.
    pub(crate) const fn value(self, weight: SampleWeight) -> u64 {
        match self {
            Self::Period => weight.period(),
            Self::Samples => weight.samples(),
        }
    }
}
