//! The TCP connections of this process on one port, which the server above does not list: their peers, and the bytes received so far.
//!
//! A thread reads every descriptor ten times a second and notes changes. The event loop takes the notes with `read`, which costs some
//! microseconds. A connection is named by its descriptor and the kernel's cookie of the socket, which is never used again. So `end` cannot
//! meet another connection with the same descriptor.

use crate::core::layout::ConnectionNote;
use crate::core::sync::lock;
use std::mem::{size_of, zeroed};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time between two scans. It is longer if a scan takes long, so that scans use at most a tenth of a core.
const SCAN_INTERVAL: Duration = Duration::from_millis(100);

/// Notes that wait for the event loop. A loop that takes none accepts no connections either.
const NOTES_MAX: usize = 65_536;

pub struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    notes: Mutex<Vec<ConnectionNote>>,
    stopped: Mutex<bool>,
    stop: Condvar,
}

#[derive(Clone, Copy)]
struct Socket {
    /// 0 if the descriptor is no socket.
    cookie: u64,
    received: u64,
    scan: u32,
    /// On the port that is watched.
    ours: bool,
    noted: bool,
}

const NOTHING: Socket = Socket { cookie: 0, received: 0, scan: 0, ours: false, noted: false };

/// `tcpi_bytes_received` in the kernel's `tcp_info`, in words of eight bytes; the libc crate's struct ends before it.
const RECEIVED_AT: usize = 16;

impl Watch {
    /// Starts to watch the connections that were accepted on `port`.
    pub fn open(port: u16) -> Result<Watch, String> {
        let shared = Arc::new(Shared::default());
        let watched = shared.clone();
        let thread = crate::core::thread::spawn("tendon-watch", move || {
            // A bug here ends the watch and not the process: connections are then bounded by the server's time-outs alone.
            let _ = catch_unwind(AssertUnwindSafe(|| watched.run(port)));
        })?;
        Ok(Watch { shared, thread: Some(thread) })
    }

    /// Moves the oldest notes to `to`; returns how many.
    pub fn read(&self, to: &mut [ConnectionNote]) -> usize {
        let mut notes = lock(&self.shared.notes);
        let count = notes.len().min(to.len());
        to[..count].copy_from_slice(&notes[..count]);
        notes.drain(..count);
        count
    }

    pub fn close(mut self) {
        *lock(&self.shared.stopped) = true;
        self.shared.stop.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self, port: u16) {
        let mut table: Vec<Socket> = Vec::new();
        let mut scan = 0_u32;
        loop {
            let begun = Instant::now();
            scan = scan.wrapping_add(1);
            for_each_descriptor(|fd| {
                let at = fd as usize;
                if at >= table.len() {
                    table.resize(at + 64, NOTHING);
                }
                self.meet(fd, &mut table[at], scan, port);
            });
            for (fd, socket) in
                table.iter_mut().enumerate().filter(|(_, socket)| socket.cookie != 0 && socket.scan != scan)
            {
                self.gone(fd as i32, socket);
            }
            let pause = SCAN_INTERVAL.max(begun.elapsed() * 10);
            let stopped = lock(&self.stopped);
            let wait = self.stop.wait_timeout_while(stopped, pause, |stopped| !*stopped);
            if wait.map_or(true, |(stopped, _)| *stopped) {
                return;
            }
        }
    }

    fn meet(&self, fd: i32, socket: &mut Socket, scan: u32, port: u16) {
        let cookie = option::<u64>(fd, libc::SOL_SOCKET, libc::SO_COOKIE).unwrap_or(0);
        if cookie != socket.cookie {
            self.gone(fd, socket);
            *socket = Socket { cookie, ours: cookie != 0 && is_accepted(fd, port), ..NOTHING };
        }
        socket.scan = scan;
        if !socket.ours {
            return;
        }
        let Some(info) = option::<[u64; RECEIVED_AT + 1]>(fd, libc::IPPROTO_TCP, libc::TCP_INFO) else { return };
        if !socket.noted || info[RECEIVED_AT] != socket.received {
            socket.noted = true;
            socket.received = info[RECEIVED_AT];
            let (address, port) = name(fd, libc::getpeername).unwrap_or(([0; 4], 0));
            self.note(fd, socket, (address, port), 0);
        }
    }

    fn gone(&self, fd: i32, socket: &mut Socket) {
        if socket.ours {
            self.note(fd, socket, ([0; 4], 0), 1);
        }
        *socket = NOTHING;
    }

    fn note(&self, fd: i32, socket: &Socket, (address, port): ([u32; 4], u16), gone: u32) {
        let Socket { cookie, received, .. } = *socket;
        let mut notes = lock(&self.notes);
        if notes.len() < NOTES_MAX {
            let (port, fd) = (u32::from(port), fd as u32);
            notes.push(ConnectionNote { cookie, received, address, port, fd, gone, reserved: 0 });
        }
    }
}

/// Bytes received so far; None if the descriptor is another connection's.
pub fn received(fd: i32, cookie: u64) -> Option<u64> {
    let same = option::<u64>(fd, libc::SOL_SOCKET, libc::SO_COOKIE) == Some(cookie);
    let info = option::<[u64; RECEIVED_AT + 1]>(fd, libc::IPPROTO_TCP, libc::TCP_INFO).filter(|_| same);
    info.map(|words| words[RECEIVED_AT])
}

/// Ends the connection as its peer would, so that the server sees its end. Only the thread that closes connections calls it, so that the
/// descriptor cannot become another connection's in between. False if it is another's already.
pub fn end(fd: i32, cookie: u64) -> bool {
    if option::<u64>(fd, libc::SOL_SOCKET, libc::SO_COOKIE) != Some(cookie) {
        return false;
    }
    // SAFETY: no memory is involved.
    unsafe { libc::shutdown(fd, libc::SHUT_RDWR) == 0 }
}

/// Allows or forbids other sockets of this user to listen on the port. Returns the number of our listening sockets.
pub fn share(port: u16, on: bool) -> u32 {
    let mut found = 0;
    for_each_listener(port, |fd| {
        set(fd, libc::SO_REUSEPORT, &i32::from(on));
        found += 1;
    });
    found
}

/// Gives every new connection to the socket of the port that joined last. The other sockets still give what waits in their queues, so that
/// they can be closed without a lost connection.
pub fn prefer_last(port: u16) -> bool {
    let mut count = 0;
    let mut one = -1;
    for_each_listener(port, |fd| {
        count += 1;
        one = fd;
    });
    if count < 2 {
        return false;
    }
    // A program of one instruction returns the index of the last socket of the group. Once that socket is alone the index is invalid, and
    // the kernel chooses.
    let mut code = libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: count - 1 };
    let program = libc::sock_fprog { len: 1, filter: &mut code };
    set(one, libc::SO_ATTACH_REUSEPORT_CBPF, &program)
}

/// Bounds the unread bytes of connections of the port that are accepted from now on. Returns how many sockets listen.
pub fn receive_at_most(port: u16, bytes: i32) -> usize {
    let mut count = 0;
    for_each_listener(port, |fd| count += usize::from(set(fd, libc::SO_RCVBUF, &bytes)));
    count
}

fn for_each_listener(port: u16, mut found: impl FnMut(i32)) {
    for_each_descriptor(|fd| {
        let listens = option::<i32>(fd, libc::SOL_SOCKET, libc::SO_ACCEPTCONN) == Some(1);
        if listens && name(fd, libc::getsockname).is_some_and(|(_, local)| local == port) {
            found(fd);
        }
    });
}

fn is_accepted(fd: i32, port: u16) -> bool {
    option::<i32>(fd, libc::SOL_SOCKET, libc::SO_ACCEPTCONN) == Some(0)
        && name(fd, libc::getsockname).is_some_and(|(_, local)| local == port)
}

/// Calls with every descriptor of this process. Only the C library allocates, once a scan.
fn for_each_descriptor(mut call: impl FnMut(i32)) {
    // SAFETY: a static path; the stream is used and closed here alone, its entries are read before the next call.
    unsafe {
        let folder = libc::opendir(c"/proc/self/fd".as_ptr());
        if folder.is_null() {
            return;
        }
        let own_fd = libc::dirfd(folder);
        while let Some(entry) = libc::readdir(folder).as_ref() {
            let fd = libc::atoi(entry.d_name.as_ptr());
            if entry.d_name[0] != b'.' as libc::c_char && fd != own_fd {
                call(fd);
            }
        }
        libc::closedir(folder);
    }
}

/// A socket option that is plain data; None if the descriptor is no such socket.
fn option<T: Copy>(fd: i32, level: i32, name: i32) -> Option<T> {
    // SAFETY: T is one of the C structs and integers above, for which zeroes are a value; the kernel writes at most `len` bytes.
    unsafe {
        let mut value: T = zeroed();
        let mut len = size_of::<T>() as libc::socklen_t;
        (libc::getsockopt(fd, level, name, (&raw mut value).cast(), &mut len) == 0).then_some(value)
    }
}

fn set<T>(fd: i32, name: i32, value: &T) -> bool {
    // SAFETY: the kernel reads the value during the call.
    let done =
        unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, name, (&raw const *value).cast(), size_of::<T>() as u32) };
    done == 0
}

type Naming = unsafe extern "C" fn(i32, *mut libc::sockaddr, *mut libc::socklen_t) -> i32;

/// Address (IPv4 in the form of IPv6, in network order) and port of one end of a TCP socket.
fn name(fd: i32, which: Naming) -> Option<([u32; 4], u16)> {
    // SAFETY: the storage holds an address of whichever family, and is read in the form that its family says.
    unsafe {
        let mut storage: libc::sockaddr_storage = zeroed();
        let mut len = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        if which(fd, (&raw mut storage).cast(), &mut len) != 0 {
            return None;
        }
        match i32::from(storage.ss_family) {
            libc::AF_INET => {
                let at = &*(&raw const storage).cast::<libc::sockaddr_in>();
                Some(([0, 0, 0xffff_u32.to_be(), at.sin_addr.s_addr], u16::from_be(at.sin_port)))
            }
            libc::AF_INET6 => {
                let at = &*(&raw const storage).cast::<libc::sockaddr_in6>();
                let mut words = [0; 4];
                for (word, bytes) in words.iter_mut().zip(at.sin6_addr.s6_addr.chunks_exact(4)) {
                    *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                }
                Some((words, u16::from_be(at.sin6_port)))
            }
            _ => None,
        }
    }
}
