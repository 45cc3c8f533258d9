//! The system calls that recording needs.
//!
//! The list contains varid's calls and those that a C library may make for it, on all supported machines. Other calls fail with ENOSYS, as
//! on a kernel that does not have them, so a C library that tries a new system call falls back to an old one. With `VARID_SANDBOX=log` the
//! kernel logs calls outside of the list.

use anyhow::Context;
use libc::*;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use std::collections::BTreeMap;

/// System calls that are allowed with all arguments.
#[rustfmt::skip]
const NEEDED: &[c_long] = &[
    // Files and folders.
    SYS_openat, SYS_openat2, SYS_close, SYS_close_range, SYS_read, SYS_readv, SYS_pread64, SYS_preadv, SYS_write, SYS_writev,
    SYS_pwrite64, SYS_pwritev, SYS_lseek, SYS_fstat, SYS_newfstatat, SYS_statx, SYS_statfs, SYS_fstatfs, SYS_getdents64,
    SYS_readlinkat, SYS_faccessat, SYS_faccessat2, SYS_mkdirat, SYS_unlinkat, SYS_renameat, SYS_renameat2, SYS_linkat,
    SYS_symlinkat, SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync,
    SYS_copy_file_range, SYS_sendfile, SYS_splice, SYS_utimensat, SYS_flock, SYS_fcntl, SYS_dup, SYS_dup3, SYS_pipe2, SYS_umask, SYS_getcwd,
    SYS_chdir, SYS_fchdir, SYS_memfd_create,
    // Memory.
    SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_brk,
    // Events, BPF programs, and memory of sampled processes.
    SYS_perf_event_open, SYS_bpf, SYS_process_vm_readv,
    // Clients of the daemon, and the helper process that reads for a session.
    SYS_socketpair, SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_connect, SYS_sendmsg, SYS_recvmsg, SYS_sendto, SYS_recvfrom,
    SYS_getsockopt, SYS_setsockopt, SYS_getsockname, SYS_getpeername, SYS_shutdown,
    // Waiting.
    SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_eventfd2, SYS_timerfd_create, SYS_timerfd_settime,
    SYS_futex, SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday, SYS_sched_yield,
    // Threads and processes.
    SYS_clone, SYS_clone3, SYS_execve, SYS_wait4, SYS_waitid, SYS_exit, SYS_exit_group, SYS_kill, SYS_tkill, SYS_tgkill, SYS_pidfd_open,
    SYS_pidfd_send_signal, SYS_set_tid_address, SYS_set_robust_list, SYS_get_robust_list, SYS_rseq, SYS_membarrier,
    SYS_sched_getaffinity, SYS_sched_setaffinity, SYS_getcpu, SYS_getpid, SYS_gettid, SYS_getppid, SYS_getpgid, SYS_setpgid,
    SYS_getsid, SYS_setsid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getgroups, SYS_capget, SYS_prctl,
    SYS_prlimit64, SYS_getrlimit, SYS_setrlimit, SYS_getrusage, SYS_getpriority, SYS_setpriority,
    // Signals.
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigtimedwait, SYS_sigaltstack, SYS_restart_syscall,
    // The machine.
    SYS_uname, SYS_sysinfo, SYS_getrandom,
];

/// Older forms of the same calls, which newer architectures do not have.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLDER: &[c_long] = &[
    SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_mkdir, SYS_rmdir, SYS_unlink, SYS_rename, SYS_link, SYS_symlink,
    SYS_chmod, SYS_chown, SYS_lchown, SYS_getdents, SYS_pipe, SYS_dup2, SYS_poll, SYS_select, SYS_epoll_create, SYS_epoll_wait,
    SYS_eventfd, SYS_fork, SYS_vfork, SYS_getpgrp, SYS_arch_prctl, SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[c_long] = &[];

/// Installs the filter for this thread and those that it starts. With `log`, the kernel logs other calls and executes them.
pub fn install(log: bool) -> anyhow::Result<()> {
    let other = match log {
        true => SeccompAction::Log,
        false => SeccompAction::Errno(ENOSYS.cast_unsigned()),
    };
    let filter = SeccompFilter::new(
        rules()?,
        other,
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into()?,
    )?;
    let program: BpfProgram = filter.try_into()?;
    apply_filter(&program).context("the kernel does not take the filter")
}

/// Returns the rules of each allowed system call. A call without rules is allowed with all arguments.
fn rules() -> anyhow::Result<BTreeMap<i64, Vec<SeccompRule>>> {
    let only = |operator, value: u32, argument| {
        let value = u64::from(value);
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?;
        anyhow::Ok(vec![SeccompRule::new(vec![condition])?])
    };
    let needed = NEEDED.iter().chain(OLDER);
    let mut rules: BTreeMap<_, _> = needed.map(|call| (*call, Vec::new())).collect();
    // Only Unix sockets: no network.
    let local = only(SeccompCmpOp::Eq, AF_UNIX.cast_unsigned(), 0)?;
    rules.insert(SYS_socket, local);
    // No TIOCSTI, which injects input into the terminal that varid was started in.
    let no_input = only(SeccompCmpOp::Ne, TIOCSTI as u32, 1)?;
    rules.insert(SYS_ioctl, no_input);
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

    #[test]
    fn system_calls_that_recording_does_not_need_are_refused() {
        let tried = std::thread::spawn(|| {
            install(false).unwrap();
            let socket =
                |family| socket(family, SockType::Stream, SockFlag::empty(), None).map(drop);
            // SAFETY: none of these calls is made.
            let (typed, mounted) = unsafe {
                let typed = (ioctl(0, TIOCSTI as _, c"x".as_ptr()), nix::Error::last());
                let null = std::ptr::null();
                let mounted = mount(null, null, null, 0, null.cast());
                (typed, (mounted, nix::Error::last()))
            };
            (
                socket(AddressFamily::Unix),
                socket(AddressFamily::Inet),
                typed,
                mounted,
                std::fs::read("/proc/self/comm").is_ok(),
            )
        });
        let refused = nix::Error::ENOSYS;
        assert_eq!(
            tried.join().unwrap(),
            (Ok(()), Err(refused), (-1, refused), (-1, refused), true)
        );
    }
}
