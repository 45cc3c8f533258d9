//! Which service does a process count for, and when?

use std::collections::HashMap;

use varid_recording::Membership;

/// A service of a [`Profile`](crate::Profile).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceId(pub u32);

/// The services of a recording.
#[derive(Debug, Clone, Default)]
pub(crate) struct Services {
    /// Of each process, by time: from when on it counts for which.
    by_process: HashMap<u32, Vec<(u64, Option<ServiceId>)>>,
    /// By [`ServiceId`].
    names: Vec<String>,
}

impl Services {
    /// What a manifest says.
    pub fn of(memberships: &[Membership]) -> Self {
        let mut services = Self::default();
        let mut ids = HashMap::new();
        for Membership {
            pid,
            since_ns,
            service,
        } in memberships
        {
            let names = &mut services.names;
            let mut id = |name: &String| {
                *ids.entry(name.clone()).or_insert_with(|| {
                    names.push(name.clone());
                    ServiceId(u32::try_from(names.len().saturating_sub(1)).unwrap_or(u32::MAX))
                })
            };
            let entry = (since_ns.get(), service.as_ref().map(&mut id));
            services
                .by_process
                .entry(pid.get())
                .or_default()
                .push(entry);
        }
        // A manifest may come from anywhere.
        let all = services.by_process.values_mut();
        all.for_each(|entries| entries.sort_by_key(|(since, _)| *since));
        services
    }

    /// What a sample counts for.
    pub fn at(&self, pid: u32, time: u64) -> Option<ServiceId> {
        let entries = self.by_process.get(&pid)?;
        let after = entries.partition_point(|(since, _)| *since <= time);
        entries.get(after.checked_sub(1)?)?.1
    }

    /// By [`ServiceId`].
    pub fn into_names(self) -> Vec<String> {
        self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use varid_model::{MonotonicNs, Pid};

    fn member(pid: u32, since_ns: u64, service: Option<&str>) -> Membership {
        Membership {
            pid: Pid::new(pid),
            since_ns: MonotonicNs::new(since_ns),
            service: service.map(str::to_owned),
        }
    }

    #[test]
    fn a_process_counts_for_its_service_of_the_time() {
        let services = Services::of(&[
            member(7, 100, Some("media")),
            member(8, 100, Some("video")),
            member(7, 200, None),
            member(7, 300, Some("video")),
        ]);
        let at = |pid, time| {
            let id = services.at(pid, time)?;
            Some(services.names[id.0 as usize].as_str())
        };
        for (time, expected) in [
            (99, None),
            (100, Some("media")),
            (199, Some("media")),
            (200, None),
            (299, None),
            (300, Some("video")),
        ] {
            assert_eq!(at(7, time), expected, "{time}");
        }
        assert_eq!(at(8, u64::MAX), Some("video"));
        assert_eq!(at(9, 0), None);
    }
}
