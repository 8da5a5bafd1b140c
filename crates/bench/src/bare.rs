//! The minimal client: a hand-written epoll loop that sends a prepared read, takes the reply, checks its number, and sends the next
//! one. No clock, no statistics, no choice of keys. It is the baseline for the cost of the load engine.

use anyhow::{Context, Result, ensure};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

const EVENTS: usize = 256;

/// Loads `address` over `connections` connections for `duration`; returns the number of answers.
pub fn run(
    address: SocketAddr,
    connections: usize,
    duration: Duration,
    command: &[u8],
) -> Result<u64> {
    let mut streams = (0..connections)
        .map(|_| {
            let stream = TcpStream::connect(address).context("cannot connect to the responder")?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        })
        .collect::<Result<Vec<_>>>()?;
    // SAFETY: no pointers are passed.
    let epoll = unsafe { libc::epoll_create1(0) };
    ensure!(epoll >= 0, "epoll_create1 failed");
    let mut request = command.to_vec();
    for (index, stream) in streams.iter_mut().enumerate() {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: index as u64 };
        // SAFETY: `event` lives through the call.
        let added =
            unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, stream.as_raw_fd(), &mut event) };
        ensure!(added == 0, "epoll_ctl failed");
        stream.write_all(&request)?;
    }
    let mut buffer = vec![0u8; 64 * 1024];
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
    let (mut answers, mut number) = (0u64, 0u32);
    let end = Instant::now() + duration;
    while Instant::now() < end {
        // SAFETY: the buffer holds EVENTS events.
        let ready = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), EVENTS as i32, 100) };
        for event in &events[..ready.max(0) as usize] {
            let stream = &mut streams[event.u64 as usize];
            let count = stream.read(&mut buffer)?;
            let length = i32::from_le_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]);
            ensure!(count as i64 == i64::from(length), "a reply did not arrive in one piece");
            answers += 1;
            number = number.wrapping_add(1);
            request[4..8].copy_from_slice(&number.to_le_bytes());
            stream.write_all(&request)?;
        }
    }
    // SAFETY: the descriptor is ours and is not used any more.
    unsafe { libc::close(epoll) };
    Ok(answers)
}
