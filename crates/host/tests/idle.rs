//! Memory of idle connections, measured at the allocator.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bentpipe_base::Duration;
use bentpipe_host::{Limits, StackConfig};
use common::{PORT, World, address, config, stack_config};

/// Allocator that counts the bytes in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all calls are passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the pointer came from `alloc` above with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CONNECTIONS: usize = 10_000;

#[test]
fn ten_thousand_idle_connections_fit_into_200_mib() {
    let limits = Limits { half_open: CONNECTIONS, ..Limits::default() };
    let roomy = |end| StackConfig { limits, ..stack_config(end) };
    let mut world = World::new([roomy(0), roomy(1)], 1);
    world.stacks[1].listen(PORT, Arc::new(config()));
    let before = IN_USE.load(Ordering::Relaxed);
    let remote = SocketAddr::new(address(1, false), PORT);
    let ids: Vec<_> =
        (0..CONNECTIONS).map(|_| world.stacks[0].connect(world.now, remote, config()).unwrap()).collect();
    let accepted: Vec<_> = {
        world.run(Duration::from_secs(2));
        std::iter::from_fn(|| world.stacks[1].accept(PORT)).collect()
    };
    assert_eq!(accepted.len(), CONNECTIONS);
    // Each connection has carried data in both directions.
    for (ours, theirs) in ids.iter().zip(&accepted) {
        world.stacks[0].write(world.now, *ours, &[1; 3000]);
        world.stacks[1].write(world.now, *theirs, &[2; 3000]);
    }
    world.run(Duration::from_secs(2));
    for (ours, theirs) in ids.iter().zip(&accepted) {
        assert_eq!(world.stacks[0].discard(world.now, *ours), 3000);
        assert_eq!(world.stacks[1].discard(world.now, *theirs), 3000);
    }
    world.run(Duration::from_secs(2));
    world.stacks.iter_mut().for_each(|stack| stack.trim());
    let each = (IN_USE.load(Ordering::Relaxed) - before) / (2 * CONNECTIONS);
    println!("{each} bytes for each end of an idle connection");
    assert!(each * CONNECTIONS < 200 << 20, "{each} bytes each");
    assert_eq!(world.stacks[0].held_bytes() + world.stacks[1].held_bytes(), 0);
}
