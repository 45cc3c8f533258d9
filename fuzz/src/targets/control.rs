//! A control page is not trusted. It is either rejected and stays unchanged, or contains the order afterwards.
//!
//! The input is the page, followed by tactic, session, and texts that are separated by zeros: the log, and the filters.

use crate::{MappedFile, bounded};
use std::mem::{offset_of, size_of};
use varid_tunnel::abi::{self, CONTROL_LOG, CONTROL_NAME, FILTER_SIZE, FILTERS};
use varid_tunnel::control::{ControlPage, Order};

const PAGE: usize = size_of::<abi::Control>();

thread_local! {
    static FILE: MappedFile = MappedFile::new(CONTROL_NAME);
}

fn order(bytes: &[u8]) -> Option<Order> {
    let (tactic, rest) = bytes.split_first_chunk()?;
    let (session, texts) = rest.split_first_chunk()?;
    let mut texts = texts
        .split(|byte| *byte == 0)
        .map(|text| String::from_utf8_lossy(text).into_owned());
    Some(Order {
        tactic: u32::from_le_bytes(*tactic),
        session: u64::from_le_bytes(*session),
        log: texts.next()?,
        filters: texts.collect(),
    })
}

/// Returns a field of the page.
fn field(page: &[u8], at: usize, len: usize) -> &[u8] {
    &page[at..at + len]
}

fn number(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(field(page, at, 4).try_into().expect("four bytes"))
}

/// Returns true if the field contains the text, padded with zeros.
fn says(field: &[u8], text: &str) -> bool {
    let zeros = field.strip_prefix(text.as_bytes());
    zeros.is_some_and(|zeros| !zeros.is_empty() && zeros.iter().all(|byte| *byte == 0))
}

fn obeyed(page: &[u8], order: &Order) {
    assert!(number(page, offset_of!(abi::Control, generation)).is_multiple_of(2));
    assert_eq!(number(page, offset_of!(abi::Control, tactic)), order.tactic);
    assert_eq!(
        field(page, offset_of!(abi::Control, session), 8),
        order.session.to_le_bytes()
    );
    let count = number(page, offset_of!(abi::Control, filter_count));
    assert_eq!(count as usize, order.filters.len());
    let log = field(page, offset_of!(abi::Control, log), CONTROL_LOG);
    assert!(says(log, &order.log), "another log");
    let filters = field(
        page,
        offset_of!(abi::Control, filters),
        FILTERS * FILTER_SIZE,
    );
    for (index, filter) in filters.chunks_exact(FILTER_SIZE).enumerate() {
        let wanted = order.filters.get(index).map_or("", String::as_str);
        assert!(says(filter, wanted), "another filter {index}");
    }
}

/// Runs the target on one input.
pub(super) fn fuzz(bytes: &[u8]) {
    let (page, rest) = bytes.split_at(bytes.len().min(PAGE));
    FILE.with(|file| {
        let place = file.hold(page);
        let control = bounded(bytes, 1, || {
            ControlPage::take(varid_model::Pid::new(std::process::id()), &place)
        });
        assert_eq!(file.bytes(), page, "taking it changes nothing");
        let (Ok(mut control), Some(order)) = (control, order(rest)) else {
            return;
        };
        let before = number(page, offset_of!(abi::Control, generation));
        let Ok(()) = bounded(bytes, 1, || control.set(&order)) else {
            assert_eq!(
                file.bytes(),
                page,
                "an order that is refused changes nothing"
            );
            return;
        };
        let now = file.bytes();
        assert_eq!(now.len(), PAGE);
        assert_eq!(now[..16], page[..16], "its head is the VM's");
        assert_ne!(before, number(&now, offset_of!(abi::Control, generation)));
        obeyed(&now, &order);
    });
}
