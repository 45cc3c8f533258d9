//! How does one VM become many? It boots once and forks a child per line of standard input, with the runtime's own
//! hooks around the fork, as Android's Zygote does.

use std::ffi::c_int;
use std::fs::File;
use std::io::{Error as IoError, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use jni_sys::{jclass, jvalue};

use crate::app::Call;
use crate::error::Error;
use crate::process_name::ProcessName;
use crate::vm::{Env, Vm};

/// How long a thread of the zygote may take to end before a fork.
const THREADS_END: Duration = Duration::from_secs(10);

/// What a line of standard input asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Request {
    package: String,
    call: Call,
}

/// A child that has not been reaped yet. It writes its result to the pipe; the pipe's end is the child's end.
#[derive(Debug)]
struct Child {
    pid: libc::pid_t,
    package: String,
    pipe: File,
    result: Vec<u8>,
}

/// The runtime's hooks around a fork.
struct Hooks {
    env: Env,
    hooks: jclass,
    daemons: jclass,
}

/// Serves the lines of standard input until its end, then waits for the children.
///
/// `prepare` runs in each child before its call. The exit code is 0 if every line was run and every child returned.
pub fn serve(
    vm: Vm,
    process: &ProcessName,
    prepare: impl Fn(Env) -> Result<(), Error>,
) -> Result<ExitCode, Error> {
    let hooks = Hooks::new(vm.env())?;
    let mut children: Vec<Child> = Vec::new();
    let mut input = Input {
        pending: Vec::new(),
        open: true,
    };
    let mut good = true;
    while input.open || !children.is_empty() {
        let (readable, ended) = wait(&input, &mut children)?;
        for child in ended {
            good &= reap(child)?;
        }
        if !readable {
            continue;
        }
        for line in input.read()? {
            let Some(request) = parse(&line) else {
                let _ = writeln!(
                    std::io::stderr(),
                    "artvm: not `PACKAGE CLASS METHOD [N]`: {line:?}"
                );
                good = false;
                continue;
            };
            match fork(&hooks, request.package.clone())? {
                Forked::Parent(child) => children.push(child),
                Forked::Child { token, result } => {
                    drop(children);
                    return become_app(vm, process, &hooks, &request, (token, result), prepare);
                }
            }
        }
    }
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Standard input, read as it comes.
struct Input {
    pending: Vec<u8>,
    open: bool,
}

impl Input {
    /// Reads once and returns the lines that are whole; at the end of input also what is left.
    fn read(&mut self) -> Result<Vec<String>, Error> {
        let mut buffer = [0; 4096];
        // Not through std's buffer: what that has read ahead, poll does not show.
        // SAFETY: the buffer has this length.
        let count = unsafe { libc::read(0, buffer.as_mut_ptr().cast(), buffer.len()) };
        let Ok(count) = usize::try_from(count) else {
            return Err(Error::Zygote {
                what: "reading standard input",
                source: IoError::last_os_error(),
            });
        };
        self.pending.extend(buffer.iter().take(count));
        if count == 0 {
            self.open = false;
            self.pending.push(b'\n');
        }
        let mut lines = Vec::new();
        while let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line).trim().to_owned();
            if !line.is_empty() {
                lines.push(line);
            }
        }
        Ok(lines)
    }
}

/// Parses a line: `PACKAGE CLASS METHOD [N]`.
fn parse(line: &str) -> Option<Request> {
    let mut words = line.split_whitespace().map(str::to_owned);
    let (package, class, method) = (words.next()?, words.next()?, words.next()?);
    let n = words.next().map_or(Some(1), |word| word.parse().ok())?;
    if words.next().is_some() {
        return None;
    }
    Some(Request {
        package,
        call: Call { class, method, n },
    })
}

impl Hooks {
    fn new(env: Env) -> Result<Self, Error> {
        let hooks = env.find_class("dalvik/system/ZygoteHooks")?;
        let daemons = env.find_class("java/lang/Daemons")?;
        Ok(Self {
            env,
            hooks,
            daemons,
        })
    }

    /// Calls a hook that takes and returns nothing.
    fn call(&self, class: jclass, name: &str) -> Result<(), Error> {
        let method = self.env.static_method(class, name, c"()V")?;
        // SAFETY: the method was looked up in this class, with this signature.
        unsafe { self.env.call_static_void(class, method, &[]) };
        self.check(name)
    }

    /// Before the fork: no thread but this one may live, the heap becomes the children's common part.
    fn before_fork(&self) -> Result<i64, Error> {
        self.call(self.daemons, "stop")?;
        let method = self
            .env
            .static_method(self.hooks, "nativePreFork", c"()J")?;
        // SAFETY: the method was looked up in this class, with this signature.
        let token = unsafe { self.env.call_static_long(self.hooks, method, &[]) };
        self.check("nativePreFork")?;
        // The hook ends the JIT's threads.
        wait_for_threads()?;
        Ok(token)
    }

    /// After the fork, in the child: no debug flags, no system server, no child zygote, the VM's own instruction set.
    fn after_fork_in_child(&self, token: i64) -> Result<(), Error> {
        let method = self.env.static_method(
            self.hooks,
            "nativePostForkChild",
            c"(JIZZLjava/lang/String;)V",
        )?;
        let no = jvalue { z: false };
        let arguments = [
            jvalue { j: token },
            jvalue { i: 0 },
            no,
            no,
            jvalue {
                l: std::ptr::null_mut(),
            },
        ];
        // SAFETY: the method was looked up in this class, with this signature.
        unsafe { self.env.call_static_void(self.hooks, method, &arguments) };
        self.check("nativePostForkChild")
    }

    /// After the fork, on both sides.
    fn after_fork(&self) -> Result<(), Error> {
        self.call(self.hooks, "nativePostZygoteFork")?;
        self.call(self.daemons, "start")
    }

    /// Fails if a hook threw.
    fn check(&self, what: &str) -> Result<(), Error> {
        match self.env.take_exception() {
            Some(thrown) => Err(Error::Hook {
                name: what.to_owned(),
                thrown: self.env.describe(thrown),
            }),
            None => Ok(()),
        }
    }
}

/// Waits until this thread is the only one: a joined thread may still be on its way out of the runtime's thread list,
/// and a child that inherits its entry waits for it for ever.
fn wait_for_threads() -> Result<(), Error> {
    let deadline = Instant::now() + THREADS_END;
    loop {
        let mut others = Vec::new();
        let tasks = std::fs::read_dir("/proc/self/task");
        for task in tasks.map_err(|source| Error::Zygote {
            what: "/proc/self/task",
            source,
        })? {
            let task = task.map_err(|source| Error::Zygote {
                what: "/proc/self/task",
                source,
            })?;
            // A thread that has ended meanwhile has no comm.
            others.extend(std::fs::read_to_string(task.path().join("comm")));
        }
        if others.len() <= 1 {
            return Ok(());
        }
        if Instant::now() > deadline {
            let names: Vec<_> = others.iter().map(|name| name.trim_end()).collect();
            return Err(Error::Threads(names.join(", ")));
        }
        std::thread::yield_now();
    }
}

/// Forks, with the hooks of the parent's side; the child's side is [`become_app`].
fn fork(hooks: &Hooks, package: String) -> Result<Forked, Error> {
    let (reader, writer) = pipe()?;
    let token = hooks.before_fork()?;
    // SAFETY: the hook has ended every other thread of the VM; the child goes on with the VM's hook for children.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => {
            let source = IoError::last_os_error();
            hooks.after_fork()?;
            Err(Error::Zygote {
                what: "fork",
                source,
            })
        }
        0 => Ok(Forked::Child {
            token,
            result: File::from(writer),
        }),
        pid => {
            drop(writer);
            hooks.after_fork()?;
            Ok(Forked::Parent(Child {
                pid,
                package,
                pipe: File::from(reader),
                result: Vec::new(),
            }))
        }
    }
}

/// Which side of a fork this is.
enum Forked {
    /// The zygote, with its new child.
    Parent(Child),
    /// The child, with the hook's token and the pipe for its result.
    Child { token: i64, result: File },
}

/// What a child does: takes its name, completes the fork, calls, and ends.
fn become_app(
    vm: Vm,
    process: &ProcessName,
    hooks: &Hooks,
    request: &Request,
    (token, result): (i64, File),
    prepare: impl Fn(Env) -> Result<(), Error>,
) -> Result<ExitCode, Error> {
    process.set(&request.package)?;
    hooks.after_fork_in_child(token)?;
    hooks.after_fork()?;
    prepare(vm.env())?;
    let code = request.call.run(vm.env())?.report(&result);
    // The pipe closes with the process: the VM may still wait for threads, and the zygote must not wait with it.
    let _ = result.into_raw_fd();
    Ok(code)
}

/// Waits until standard input can be read (true) or children have ended (they are taken out of the list).
fn wait(input: &Input, children: &mut Vec<Child>) -> Result<(bool, Vec<Child>), Error> {
    let entry = |fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // A negative descriptor is skipped.
    let mut polled = vec![entry(if input.open { 0 } else { -1 })];
    polled.extend(children.iter().map(|child| entry(child.pipe.as_raw_fd())));
    let count = libc::nfds_t::try_from(polled.len()).unwrap_or(libc::nfds_t::MAX);
    // SAFETY: the array has this many entries.
    while unsafe { libc::poll(polled.as_mut_ptr(), count, -1) } == -1 {
        let source = IoError::last_os_error();
        if source.kind() != ErrorKind::Interrupted {
            return Err(Error::Zygote {
                what: "poll",
                source,
            });
        }
    }
    let mut ready = polled.iter().map(|entry| entry.revents != 0);
    let readable = ready.next().unwrap_or(false);
    let mut ended = Vec::new();
    for (mut child, ready) in std::mem::take(children)
        .into_iter()
        .zip(ready.collect::<Vec<_>>())
    {
        if ready && child.read()? {
            ended.push(child)
        } else {
            children.push(child)
        }
    }
    Ok((readable, ended))
}

impl Child {
    /// Reads what the child has written; true at its end.
    fn read(&mut self) -> Result<bool, Error> {
        let mut buffer = [0; 64];
        let count = self
            .pipe
            .read(&mut buffer)
            .map_err(|source| Error::Zygote {
                what: "reading a child's result",
                source,
            })?;
        self.result.extend(buffer.iter().take(count));
        Ok(count == 0)
    }
}

/// Takes a child's status and prints `PACKAGE PID RESULT`; true if it returned a result.
fn reap(child: Child) -> Result<bool, Error> {
    let mut status: c_int = 0;
    // SAFETY: writes the status of a child of this process.
    while unsafe { libc::waitpid(child.pid, &mut status, 0) } == -1 {
        let source = IoError::last_os_error();
        if source.kind() != ErrorKind::Interrupted {
            return Err(Error::Zygote {
                what: "waitpid",
                source,
            });
        }
    }
    let exited = libc::WIFEXITED(status);
    let good = exited && libc::WEXITSTATUS(status) == 0;
    let result = if good {
        String::from_utf8_lossy(&child.result).trim_end().to_owned()
    } else if exited {
        format!("exit {}", libc::WEXITSTATUS(status))
    } else {
        format!("signal {}", libc::WTERMSIG(status))
    };
    let _ = writeln!(
        std::io::stdout(),
        "{} {} {result}",
        child.package,
        child.pid
    );
    Ok(good)
}

/// A pipe: reading end, writing end.
fn pipe() -> Result<(OwnedFd, OwnedFd), Error> {
    let mut ends = [-1; 2];
    // SAFETY: writes two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } == -1 {
        return Err(Error::Zygote {
            what: "pipe",
            source: IoError::last_os_error(),
        });
    }
    let [reader, writer] = ends;
    // SAFETY: both are open and owned by nobody else.
    Ok(unsafe { (OwnedFd::from_raw_fd(reader), OwnedFd::from_raw_fd(writer)) })
}

#[cfg(test)]
mod tests {
    use super::{Call, Request, parse};

    #[test]
    fn a_line_is_a_package_a_class_a_method_and_perhaps_a_number() {
        let request = |n| Request {
            package: "org.example.app".to_owned(),
            call: Call {
                class: "org.example.Main".to_owned(),
                method: "run".to_owned(),
                n,
            },
        };
        assert_eq!(
            parse("org.example.app org.example.Main run"),
            Some(request(1))
        );
        assert_eq!(
            parse("org.example.app org.example.Main run -7"),
            Some(request(-7))
        );
        assert_eq!(parse("org.example.app org.example.Main run seven"), None);
        assert_eq!(parse("org.example.app org.example.Main run 7 8"), None);
        assert_eq!(parse("org.example.app org.example.Main"), None);
    }
}
