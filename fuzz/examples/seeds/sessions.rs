//! Seeds of recordings and of their contexts.

use crate::{ART, Result};
use std::path::Path;
use varid_fuzz::manifest;
use varid_model::{
    Address, CodeUnits, Machine, Marker, MonotonicNs, Period, Pid, Precision, Reason, Tid,
};
use varid_recording::{
    CALL_ORDER_DATA, COMPILED_CODE_DATA, CONTEXTS_DATA, CallEvent, ContextCount, ContextCounter,
    ContextMethod, ContextNode, ContextSite, CounterId, CpuMode, MappingRecord, NodeId, PERF_DATA,
    RECORDS_DATA, REMAP_BASE, REMAP_SIZE, RecordedCode, RecordsForm, Sample, SessionRecord,
    SessionWriter, SiteTarget, ThreadSwitch, TraceCompression, rewrite,
};

/// Makes a recording with every kind of record.
pub fn session(folder: &Path) -> Result<Vec<u8>> {
    let mut writer = SessionWriter::create(folder, manifest())?;
    let (pid, tid) = (Pid::new(10), Tid::new(10));
    let (child, thread) = (Pid::new(11), Tid::new(11));
    let mapping = |start, len, path: &str, kernel| {
        let (pid, pgoff) = if kernel {
            (Pid::KERNEL, start)
        } else {
            (pid, 0)
        };
        SessionRecord::Mapping(MappingRecord {
            time: MonotonicNs::new(1),
            pid,
            tid,
            start: Address::new(start),
            len,
            pgoff,
            kernel,
            mode: None,
            path: path.into(),
            build_id: ART.to_vec(),
        })
    };
    let sample = |time, kernel: Vec<u64>, user: Vec<u64>| {
        let mode = if kernel.is_empty() {
            CpuMode::User
        } else {
            CpuMode::Kernel
        };
        SessionRecord::Sample(Sample {
            event: 0,
            time: MonotonicNs::new(time),
            pid,
            tid,
            cpu: 0,
            period: Period::new(1_000_000),
            original_ip: Address::new(0x2000),
            interrupt: None,
            mode,
            uid: 1000,
            frame: None,
            precision: Precision::Exact,
            kernel: kernel.into_iter().map(Address::new).collect(),
            user: user.into_iter().map(Address::new).collect(),
        })
    };
    let torn = varid_recording::remap::address_of(Marker::Reason(Reason::TornFrames)).get();
    for record in [
        mapping(
            0xffff_ffff_8100_0000,
            0x100_0000,
            "[kernel.kallsyms]_text",
            true,
        ),
        SessionRecord::Comm {
            time: MonotonicNs::new(1),
            pid,
            tid,
            exec: true,
            name: "org.example".into(),
        },
        mapping(0x1000, 0x4000, "/nonexistent/app.elf", false),
        mapping(REMAP_BASE, REMAP_SIZE, "/nonexistent/remap.elf", false),
        sample(2, vec![], vec![0x2000, 0x3001]),
        SessionRecord::Fork {
            time: MonotonicNs::new(3),
            pid: child,
            ppid: pid,
            tid: thread,
            ptid: tid,
        },
        sample(4, vec![0xffff_ffff_8100_0010], vec![0x2000, torn + 1]),
        SessionRecord::Lost {
            time: MonotonicNs::new(5),
            count: 3,
        },
        SessionRecord::Exit {
            time: MonotonicNs::new(6),
            pid: child,
            ppid: pid,
            tid: thread,
            ptid: tid,
        },
    ] {
        writer.write(&record)?;
    }
    // The session is not finished because the features of perf.data would contain this machine's name.
    writer.flush()?;
    Ok(std::fs::read(folder.join(PERF_DATA))?)
}

/// Makes the compact form of the session's seed.
pub fn compact(folder: &Path) -> Result<Vec<u8>> {
    session(folder)?;
    rewrite(folder, RecordsForm::Compact)?;
    Ok(std::fs::read(folder.join(RECORDS_DATA))?)
}

/// Makes contexts with every kind of part. Their methods are in the session's seed.
pub fn contexts(folder: &Path) -> Result<Vec<u8>> {
    let session = SessionWriter::create(folder, manifest())?;
    let counters = ["calls", "returns", "unwinds", "bytecodes"].map(|name| ContextCounter {
        name: name.into(),
        unit: name.into(),
    });
    let mut contexts = session.create_contexts(&counters)?;
    let pid = Pid::new(10);
    contexts.add_process(pid, "ART 14")?;
    let method = ContextMethod {
        pid,
        address: Address::new(0x2000),
        code: Some(CodeUnits::new(8)),
    };
    let method = contexts.add_method(&method)?;
    let site = |pc, target| ContextSite {
        method,
        pc: CodeUnits::new(pc),
        opcode: 0x6e,
        target,
    };
    let name = SiteTarget::Name("org.example.Balls.draw()V".into());
    let named = contexts.add_site(&site(3, Some(name)))?;
    contexts.add_site(&site(5, Some(SiteTarget::Method(method))))?;
    contexts.add_site(&site(6, None))?;
    let root = ContextNode {
        pid,
        tid: Some(Tid::new(10)),
        parent: None,
        address: Address::new(0x2000),
        site: None,
        time: MonotonicNs::new(2),
    };
    let caller = contexts.add_node(&root)?;
    let callee = contexts.add_node(&ContextNode {
        parent: Some(caller),
        address: Address::new(REMAP_BASE + REMAP_SIZE / 2),
        site: Some(named),
        time: MonotonicNs::new(4),
        ..root
    })?;
    contexts.add_node(&ContextNode {
        tid: None,
        time: MonotonicNs::new(4),
        ..root
    })?;
    for (node, counter, place, value) in [
        (caller, 0, None, 7),
        (caller, 1, None, 6),
        (caller, 3, Some(0), 40),
        (caller, 3, Some(5), 39),
        (callee, 0, None, u64::MAX),
    ] {
        let counter = CounterId(counter);
        let count = ContextCount {
            counter,
            place,
            value,
        };
        contexts.set_count(node, &count)?;
    }
    for (time, from, to) in [(3, 10, 11), (5, 11, 10)] {
        contexts.add_switch(&ThreadSwitch {
            time: MonotonicNs::new(time),
            from: Tid::new(from),
            to: Tid::new(to),
        })?;
    }
    contexts.add_trace(pid, None, TraceCompression::Plain, b"calls")?;
    contexts.add_process(Pid::new(11), "HotSpot 17")?;
    contexts.end_process(pid, None)?;
    contexts.end_process(Pid::new(11), Some("it was killed"))?;
    contexts.finish()?;
    Ok(std::fs::read(folder.join(CONTEXTS_DATA))?)
}

/// Makes an order of calls with every kind of event, beside contexts that the target has, too.
pub fn call_order(folder: &Path) -> Result<Vec<u8>> {
    let session = SessionWriter::create(folder, manifest())?;
    session.create_contexts(&[])?.finish()?;
    let mut order = session.create_call_order(1 << 16)?;
    let (node, start) = (NodeId(300), CodeUnits::new(7));
    for (tid, incomplete) in [(Some(Tid::new(10)), None), (None, Some("it was killed"))] {
        order.start_thread(Pid::new(10), tid)?;
        for _ in 0..3 {
            order.add(CallEvent::Enter(NodeId(0)))?;
            order.add(CallEvent::Enter(node))?;
            order.add(CallEvent::Block { node, start })?;
        }
        order.end_thread(incomplete)?;
    }
    order.finish()?;
    Ok(std::fs::read(folder.join(CALL_ORDER_DATA))?)
}

/// Makes compiled code of two processes, some of it without instructions.
pub fn compiled_code(folder: &Path) -> Result<Vec<u8>> {
    let session = SessionWriter::create(folder, manifest())?;
    let mut codes = session.create_compiled_code()?;
    for (pid, since, machine, bytes) in [
        (10, 5, Machine::X86_64, vec![0x90, 0xc3]),
        (11, 6, Machine::Aarch64, vec![0; 8]),
        (10, 7, Machine::X86_64, Vec::new()),
    ] {
        codes.add(&RecordedCode {
            pid: Pid::new(pid),
            since: MonotonicNs::new(since),
            start: Address::new(0x7000_0000_1000),
            machine,
            name: "compilation 7 (tier 4) of org.example.App.run".to_owned(),
            bytes,
        })?;
    }
    codes.flush()?;
    Ok(std::fs::read(folder.join(COMPILED_CODE_DATA))?)
}

/// Makes the counts of an old session: those of a method in the session's seed, and of one in the remap range.
pub fn old_counts() -> String {
    let slot = REMAP_BASE + REMAP_SIZE / 2;
    format!(
        "pid\taddress\ttime_ns\tinvokes\treturns\tunwinds\n10\t0x2000\t2\t7\t6\t1\n10\t{slot:#x}\t4\t{}\t0\t0\n",
        u64::MAX
    )
}
