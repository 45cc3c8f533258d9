//! Resolves the text of `-e` to events of a machine with given PMUs.

use super::hits::{of_jvm, of_probe};
use super::modifiers::Modifiers;
use super::pmu::{Pmu, number};
use super::syntax::{self, EventSpec, EventText, GroupText, Term};
use super::{Encoding, Event, Group, HitSource, JvmEvent, Rate, TimeEvent, names};
use crate::SamplerError;
use varid_model::{nearest, perf};

/// The events that all `-e` name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The groups, in order.
    pub groups: Vec<Group>,
    /// Sentences for the user about differences from the request.
    pub notes: Vec<String>,
}

/// Resolves the texts of all `-e`. Events without a rate of their own (`freq=`, `period=`) get `rate`.
pub fn resolve<'a>(
    texts: impl IntoIterator<Item = &'a str>,
    rate: Rate,
    pmus: &[Pmu],
) -> Result<Resolved, SamplerError> {
    let mut resolved = Resolved {
        groups: Vec::new(),
        notes: Vec::new(),
    };
    for text in texts {
        for group in syntax::parse(text)? {
            let group = resolved.group(&group, rate, pmus)?;
            resolved.groups.push(group);
        }
    }
    Ok(resolved)
}

impl Resolved {
    fn group(&mut self, text: &GroupText, rate: Rate, pmus: &[Pmu]) -> Result<Group, SamplerError> {
        let mut events = text
            .events
            .iter()
            .map(|text| self.event(text, rate, pmus))
            .collect::<Result<Vec<_>, _>>()?;
        if text.braces
            && let Some(event) = events.iter().find(|event| event.needs_bpf())
        {
            let reason = "the time of threads, tracepoints, probes and HotSpot's events are no members of a group: write them without braces";
            return Err(bad_terms(&event.name, reason.to_owned()));
        }
        let reads = events.len() > 1 && events.iter().any(|event| event.modifiers.read_group);
        if reads {
            for member in events.iter_mut().skip(1) {
                member.rate = Rate::READ;
            }
        }
        Ok(Group { events, reads })
    }

    fn event(&mut self, text: &EventText, rate: Rate, pmus: &[Pmu]) -> Result<Event, SamplerError> {
        match &text.spec {
            EventSpec::Tracepoint { system, name } => {
                return Ok(HitSource::named(system, name)?.event(&text.text, rate));
            }
            EventSpec::Probe(probe) => return of_probe(&text.text, probe, rate, pmus),
            EventSpec::Name(name) | EventSpec::Pmu { pmu: name, .. } => {
                if let Some(time) = TimeEvent::named(name) {
                    let terms = RateTerms::of(text, time.name(), rate)?;
                    return Ok(time.event(&terms.name, terms.rate));
                }
                if let Some(event) = JvmEvent::named(name) {
                    let terms = RateTerms::of(text, event.name(), rate)?;
                    return of_jvm(&terms.name, event, terms.rate, pmus);
                }
            }
        }
        let mut event = match &text.spec {
            EventSpec::Pmu { pmu, terms } => by_terms(text, pmu, terms, rate, pmus)?,
            // A tracepoint's name may look like modifiers, as in printk:console.
            EventSpec::Name(name)
                if !Modifiers::are_known(&text.modifiers) && by_name(name, pmus).is_err() =>
            {
                let source = HitSource::named(name, &text.modifiers)?;
                return Ok(source.event(&format!("{name}:{}", text.modifiers), rate));
            }
            _ => Event {
                name: text.text.clone(),
                encodings: by_name(&text.text, pmus)?,
                modifiers: Modifiers::default(),
                rate,
                time: None,
                hits: None,
            },
        };
        let shown: String = text
            .modifiers
            .chars()
            .filter(|letter| *letter != 'S')
            .collect();
        if !shown.is_empty() {
            let separator = if event.name.ends_with('/') { "" } else { ":" };
            event.name = format!("{}{separator}{shown}", event.name);
        }
        let max_precise = event.encodings.iter().map(|encoding| encoding.max_precise);
        let max_precise = max_precise.max().unwrap_or(0);
        event.modifiers = Modifiers::parse(&event.name, &text.modifiers, max_precise)?;
        if event.modifiers.precise > max_precise {
            let name = &event.name;
            self.notes.push(format!(
                "'{name}' asks for more precision than there is: this PMU {}, and a sample's address may lie some instructions behind the event",
                match max_precise {
                    0 => "has no precise sampling".to_owned(),
                    most => format!("takes {most} 'p' at most"),
                }
            ));
        }
        Ok(event)
    }
}

/// Returns the encodings of a name: from the kernel's ABI, from a PMU's own table, or of a raw code. A PMU's event with exactly this
/// spelling precedes the kernel's, whose names also match in upper case and with underscores.
fn by_name(name: &str, pmus: &[Pmu]) -> Result<Vec<Encoding>, SamplerError> {
    let max_precise = pmus
        .iter()
        .filter(|pmu| pmu.core)
        .map(|pmu| pmu.max_precise);
    let max_precise = max_precise.max().unwrap_or(0);
    let generic = |kind: u32, config| {
        let software = kind == perf::PERF_TYPE_SOFTWARE;
        vec![Encoding {
            kind,
            config: [config, 0, 0],
            cpus: None,
            max_precise: if software { 0 } else { max_precise },
        }]
    };
    let known = names::lookup(name);
    let own: Vec<_> = pmus
        .iter()
        .filter(|pmu| pmu.core)
        .filter_map(|pmu| Some((pmu, pmu.event(name)?)))
        .collect();
    let is_own_spelling = own.iter().any(|(_, event)| *event == name);
    match known {
        Some((kind, config)) if !is_own_spelling => return Ok(generic(kind, config)),
        _ if own.is_empty() => {}
        _ => {
            let encode = |(pmu, event): (&Pmu, &str)| {
                let term = Term {
                    name: event.to_owned(),
                    value: None,
                };
                encoding(pmu, &[term]).map_err(|reason| bad_terms(name, reason))
            };
            return own.into_iter().map(encode).collect();
        }
    }
    if let Some(code) = raw_code(name) {
        // The kernel passes the code to the PMU of each CPU.
        return Ok(generic(perf::PERF_TYPE_RAW, code));
    }
    let all = super::all_names(pmus);
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    Err(SamplerError::UnknownEvent {
        event: name.to_owned(),
        meant: nearest(name, &all).map(str::to_owned),
        known: similar(name, pmus).join(", "),
    })
}

/// Parses a raw event: `r` and hexadecimal digits.
fn raw_code(name: &str) -> Option<u64> {
    let digits = name.strip_prefix('r')?;
    let digits = Some(digits).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u64::from_str_radix(digits, 16).ok()
}

/// Returns the names that contain a word of this one. If there are none, returns the names of the kernel's ABI without most cache
/// events.
fn similar(name: &str, pmus: &[Pmu]) -> Vec<String> {
    let name = name.to_ascii_lowercase();
    let words: Vec<_> = name
        .split(['-', '_', '.'])
        .filter(|word| word.len() > 2)
        .collect();
    let mut similar = super::all_names(pmus);
    similar.retain(|known| {
        let known = known.to_ascii_lowercase();
        words.iter().any(|word| known.contains(word))
    });
    if similar.is_empty() {
        similar = names::listed();
        similar.retain(|name| !name.contains("-load") && !name.contains("prefetch"));
    }
    similar
}

fn by_terms(
    text: &EventText,
    pmu: &str,
    terms: &[Term],
    rate: Rate,
    pmus: &[Pmu],
) -> Result<Event, SamplerError> {
    let failed = |reason| bad_terms(&text.text, reason);
    let named: Vec<_> = pmus.iter().filter(|known| known.is_called(pmu)).collect();
    if named.is_empty() {
        return Err(SamplerError::UnknownPmu {
            event: text.text.clone(),
            pmu: pmu.to_owned(),
            known: pmus
                .iter()
                .map(|pmu| pmu.name.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        });
    }
    let mut event = Event {
        name: text.text.clone(),
        encodings: Vec::new(),
        modifiers: Modifiers::default(),
        rate,
        time: None,
        hits: None,
    };
    let fields = own_terms(&mut event.name, &mut event.rate, terms).map_err(failed)?;
    event.encodings = named
        .into_iter()
        .map(|pmu| {
            encoding(pmu, &fields).map_err(|reason| {
                let known: Vec<_> = pmu.fields().collect();
                failed(format!("{reason}; its fields are {}", known.join(", ")))
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(event)
}

/// Extracts the terms of a rate and a name, and returns the others.
fn own_terms(name: &mut String, rate: &mut Rate, terms: &[Term]) -> Result<Vec<Term>, String> {
    let mut others = Vec::new();
    for term in terms {
        let value = term.value.as_deref();
        let counted = || {
            let number = value.and_then(number).filter(|number| *number > 0);
            number.ok_or_else(|| format!("'{}' is to be a number above 0", term.name))
        };
        match term.name.as_str() {
            "period" => *rate = Rate::Period(counted()?),
            "freq" => *rate = Rate::Frequency(counted()?),
            "name" => *name = value.unwrap_or_default().to_owned(),
            _ => others.push(term.clone()),
        }
    }
    Ok(others)
}

/// The terms of an event of time, or of HotSpot: `off-cpu`, `alloc/period=100000/`.
struct RateTerms {
    name: String,
    rate: Rate,
}

impl RateTerms {
    /// Reads the terms of an event with a name and a rate of its own.
    fn of(text: &EventText, name: &str, mut rate: Rate) -> Result<Self, SamplerError> {
        let failed = |reason| bad_terms(&text.text, reason);
        let mut name = name.to_owned();
        if let EventSpec::Pmu { terms, .. } = &text.spec
            && let Some(term) = own_terms(&mut name, &mut rate, terms)
                .map_err(failed)?
                .first()
        {
            let reason = format!("it has no '{}', only period, freq and name", term.name);
            return Err(failed(reason));
        }
        match text.modifiers.is_empty() {
            true => Ok(Self { name, rate }),
            false => Err(failed("this event has no modifiers".to_owned())),
        }
    }
}

fn encoding(pmu: &Pmu, terms: &[Term]) -> Result<Encoding, String> {
    Ok(Encoding {
        kind: pmu.kind,
        config: pmu.encode(terms)?,
        cpus: pmu.cpus.clone(),
        max_precise: pmu.max_precise,
    })
}

fn bad_terms(event: &str, reason: String) -> SamplerError {
    SamplerError::EventSyntax {
        event: event.to_owned(),
        what: reason,
    }
}

#[cfg(test)]
mod tests {
    use super::super::pmu::testing::{big_little, probes, x86};
    use super::*;
    use varid_recording::EventUnit;

    fn events(text: &str, pmus: &[Pmu]) -> Vec<Event> {
        let resolved = resolve([text], Rate::Frequency(997), pmus).unwrap();
        resolved
            .groups
            .into_iter()
            .flat_map(|group| group.events)
            .collect()
    }

    fn refused(text: &str, pmus: &[Pmu]) -> String {
        resolve([text], Rate::Frequency(997), pmus)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn every_event_of_the_boards_that_android_has_files_for_is_resolved() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../android/boards");
        let mut files = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            for line in lines {
                let fields: Vec<_> = line.split('\t').collect();
                let [name, code, meaning] = fields[..] else {
                    panic!("{}: {line:?}", path.display())
                };
                assert!(!name.is_empty() && !meaning.is_empty(), "{line:?}");
                let [event] = &events(code, &[])[..] else {
                    panic!("{line:?}: one event")
                };
                assert_eq!(event.name, code, "{line:?}");
                // A raw code is one of the board's PMU; a name without a code is one of the kernel's ABI.
                let raw = event.encodings[0].kind == perf::PERF_TYPE_RAW;
                assert_eq!(raw, raw_code(code).is_some(), "{line:?}");
            }
            files += 1;
        }
        assert!(files > 0, "{folder}");
    }

    #[test]
    fn a_name_of_two_pmus_is_an_event_of_both_on_their_own_cpus() {
        let board = big_little();
        let [event] = &events("l2d_cache", board.pmus())[..] else {
            panic!("one event")
        };
        let encodings: Vec<_> = event
            .encodings
            .iter()
            .map(|e| (e.kind, e.config[0], e.cpus.clone().unwrap()))
            .collect();
        assert_eq!(
            encodings,
            [(8, 0x16, vec![0, 1, 2, 3]), (9, 0x16, vec![4, 5])]
        );
        assert_eq!(event.attr_on(2).unwrap().type_, 8);
        assert_eq!(event.attr_on(5).unwrap().type_, 9);
        assert!(event.attr_on(6).is_none());
    }

    #[test]
    fn an_event_of_one_pmu_is_not_opened_on_the_other_ones_cpus() {
        let board = big_little();
        let [event] = &events("armv8_cortex_a72/br_mis_pred/u", board.pmus())[..] else {
            panic!("one event")
        };
        assert_eq!(event.name, "armv8_cortex_a72/br_mis_pred/u");
        assert!(event.modifiers.exclude_kernel);
        assert!(event.attr_on(0).is_none());
        assert_eq!(event.attr_on(4).unwrap().config, 0x10);
        assert!(refused("armv8_cortex_a53/br_mis_pred/", board.pmus()).contains("br_mis_pred"));
    }

    #[test]
    fn raw_codes_and_names_of_the_kernel_are_opened_everywhere() {
        let board = big_little();
        for (text, kind, config) in [
            ("r11", 4, 0x11),
            ("CYCLES", 0, 0),
            ("cs:k", 1, 3),
            ("r1B", 4, 0x1b),
        ] {
            let [event] = &events(text, board.pmus())[..] else {
                panic!("one event")
            };
            let attr = event.attr_on(5).unwrap();
            assert_eq!((attr.type_, attr.config), (kind, config), "{text}");
        }
        // The spelling decides between the PMU's event and the kernel's.
        assert_eq!(
            events("cpu_cycles", board.pmus())[0]
                .attr_on(0)
                .unwrap()
                .type_,
            8
        );
        assert_eq!(
            events("cpu-cycles", board.pmus())[0]
                .attr_on(0)
                .unwrap()
                .type_,
            0
        );
    }

    #[test]
    fn terms_are_placed_as_the_format_says() {
        let machine = x86();
        let attr = |text| events(text, machine.pmus())[0].attr_on(0).unwrap();
        assert_eq!(
            attr("cpu/event=0xc0,umask=0x1,inv,cmask=0x10/").config,
            0x1080_01c0
        );
        assert_eq!(attr("cpu/config=0x3c/k").config, 0x3c);
        assert_eq!(attr("cpu/mem-loads,ldlat=30/").config1, 30);
        assert_eq!(attr("cpu/event=0xff12/").config, 0xff_0000_0012);
        let error = refused("cpu/umask=0x100/", machine.pmus());
        assert!(error.contains("more bits"), "{error}");
        let error = refused("cpu/umsk=1/", machine.pmus());
        assert!(
            error.contains("umsk") && error.contains("cmask, "),
            "{error}"
        );
    }

    #[test]
    fn an_event_may_bring_its_own_rate_and_name() {
        let board = big_little();
        let pmus = board.pmus();
        let event = &events("armv8_cortex_a53/cpu_cycles,period=5000,name=beats/", pmus)[0];
        assert_eq!(
            (event.rate, event.name.as_str()),
            (Rate::Period(5000), "beats")
        );
        let event = &events("armv8_cortex_a53/cpu_cycles,freq=10/", pmus)[0];
        assert_eq!(event.rate, Rate::Frequency(10));
        assert!(refused("armv8_cortex_a53/cpu_cycles,period=0/", pmus).contains("above 0"));
    }

    #[test]
    fn members_are_read_if_the_group_says_so_and_sample_themselves_if_not() {
        let rates = |text| {
            let groups = resolve([text], Rate::Period(7), &[]).unwrap().groups;
            let [Group { events, reads }] = &groups[..] else {
                panic!("one group")
            };
            (
                *reads,
                events.iter().map(|event| event.rate).collect::<Vec<_>>(),
            )
        };
        let own = Rate::Period(7);
        assert_eq!(rates("{cycles,instructions}"), (false, vec![own, own]));
        assert_eq!(
            rates("{cycles,instructions}:S"),
            (true, vec![own, Rate::READ])
        );
        assert_eq!(rates("cycles:S"), (false, vec![own]));
        let names: Vec<_> = events("{cycles,r8:k}:Su", &[])
            .into_iter()
            .map(|e| e.name)
            .collect();
        assert_eq!(names, ["cycles:u", "r8:ku"]);
    }

    #[test]
    fn time_of_threads_has_a_period_in_nanoseconds_and_no_group() {
        let waits = &events("off-cpu,runnable/period=50000/", &[])[..];
        let rates: Vec<_> = waits.iter().map(|event| event.rate).collect();
        assert_eq!(rates, [Rate::Period(1_003_009), Rate::Period(50_000)]);
        assert!(waits.iter().all(|event| !event.is_opened()));
        let wall = &events("wall", &[])[0];
        assert!(wall.is_opened() && wall.is_timer());
        assert_eq!(wall.rate, Rate::Frequency(997));
        for (text, what) in [
            ("{cycles,off-cpu}", "no members of a group"),
            ("off-cpu:u", "no modifiers"),
            ("alloc:u", "no modifiers"),
            ("alloc/tlab/", "only period, freq and name"),
            ("park", "no PMU 'uprobe'"),
            ("wall/event=1/", "no 'event'"),
        ] {
            let error = refused(text, &[]);
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn each_hit_of_a_tracepoint_has_a_sample_unless_a_period_is_asked_for() {
        let event = &events("sched:sched_switch", &[])[0];
        assert_eq!(event.name, "sched:sched_switch");
        let expected = HitSource::Tracepoint("sched_switch".to_owned());
        assert_eq!(event.hits, Some(expected));
        assert!(event.rate == Rate::Period(1) && !event.is_opened());
        let periodic = resolve(["irq:irq_handler_entry"], Rate::Period(7), &[]).unwrap();
        assert_eq!(periodic.groups[0].events[0].rate, Rate::Period(7));
        assert!(refused("{cycles,sched:sched_switch}", &[]).contains("no members of a group"));
        let without_underscore = &events("printk:console", &[])[0];
        assert_eq!(without_underscore.name, "printk:console");
        let expected = HitSource::Tracepoint("console".to_owned());
        assert_eq!(without_underscore.hits.as_ref(), Some(&expected));
    }

    #[test]
    fn events_of_hotspot_are_sampled_at_each_call_unless_a_period_is_asked_for() {
        let machine = probes();
        let found = &events("alloc,LOCK/period=10/,park/name=waits/", machine.pmus())[..];
        let shown: Vec<_> = found.iter().map(|it| (it.name.as_str(), it.rate)).collect();
        let expected = [
            ("alloc", Rate::Period(1)),
            ("lock", Rate::Period(10)),
            ("waits", Rate::Period(1)),
        ];
        assert_eq!(shown, expected);
        let units: Vec<_> = found.iter().map(Event::unit).collect();
        assert_eq!(units[0], Some(EventUnit::Bytes));
        assert_eq!(units[1..], [Some(EventUnit::Events); 2]);
        let source = HitSource::Jvm {
            event: JvmEvent::Alloc,
            kind: 8,
        };
        assert_eq!(found[0].hits, Some(source));
        let error = refused("{cycles,lock}", machine.pmus());
        assert!(error.contains("no members of a group"), "{error}");
    }

    #[test]
    fn a_probe_is_one_of_its_pmu_at_the_functions_place_in_the_file() {
        let machine = probes();
        let probe = |text: &str| match events(text, machine.pmus()).remove(0).hits {
            Some(HitSource::Probe(probe)) => probe,
            other => panic!("{text}: {other:?}"),
        };
        let kernel = probe("kretprobe:vfs_read");
        assert_eq!((kernel.kind, kernel.config), (7, 1));
        let code = kernel.code.unwrap();
        assert_eq!((code.of.as_c_str(), code.offset), (c"vfs_read", 0));
        // Probes this program's own code. Its section headers give the file offsets.
        let own = std::env::current_exe().unwrap();
        let file = probe(&format!("uprobe:{}:main", own.display()));
        let next = probe(&format!("uprobe:{}:main+1", own.display()));
        assert_eq!((file.kind, file.config), (8, 0));
        let (first, next) = (file.code.unwrap(), next.code.unwrap());
        assert_eq!(first.offset + 1, next.offset);
        let error = refused(&format!("uprobe:{}:mainn", own.display()), machine.pmus());
        assert!(
            error.contains("no function is called 'mainn'. It has 'main'"),
            "{error}"
        );
        let error = refused("{cycles,kprobe:vfs_read}", machine.pmus());
        assert!(error.contains("no members of a group"), "{error}");
        // The kernel's own tracepoint of that name must not be used.
        let error = refused("probe_none:sched_switch", &[]);
        assert!(error.contains("perf probe"), "{error}");
    }

    #[test]
    fn precision_that_the_pmu_lacks_is_reported() {
        let notes = |text, pmus| resolve([text], Rate::Period(7), pmus).unwrap().notes;
        let (board, machine) = (big_little(), x86());
        assert!(notes("cycles:p", board.pmus())[0].contains("no precise sampling"));
        assert!(notes("cycles:pp", machine.pmus()).is_empty());
        assert!(notes("cycles:ppp", machine.pmus())[0].contains("2 'p' at most"));
        assert_eq!(
            events("cycles:P", machine.pmus())[0]
                .attr_on(0)
                .unwrap()
                .precise_ip(),
            2
        );
    }

    #[test]
    fn what_is_unknown_is_answered_with_what_is_like_it() {
        let board = big_little();
        let error = refused("l2d_cash", board.pmus());
        assert!(error.contains("armv8_cortex_a53/l2d_cache/"), "{error}");
        assert!(refused("no-such", &[]).contains("cpu-clock"));
        assert!(refused("rxyz", &[]).contains("unknown event"));
        assert!(refused("cylces", &[]).contains("did you mean 'cycles'?"));
        let error = refused("uncore/clock/", board.pmus());
        assert!(error.contains("armv8_cortex_a72"), "{error}");
    }
}
