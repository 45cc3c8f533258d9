//! A report can be made of any recording. Sums do not overflow, and no address causes an invalid access.

use crate::with_session;
use std::io::sink;
use varid_recording::PERF_DATA;
use varid_report::{Options, OutputFormat, Profile, View, render};

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    with_session(&[(PERF_DATA, bytes)], |session| {
        let Ok(profile) = Profile::from_session(session, &Options::default()) else {
            return;
        };
        for format in [OutputFormat::Text, OutputFormat::Json, OutputFormat::Csv] {
            render(&profile, &View::default(), format, &mut sink())
                .expect("a sink takes everything");
        }
    });
}
