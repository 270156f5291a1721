//! Counts the heap allocations of this library, so that "nothing per chunk" can be measured.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

/// The system allocator behind a counter.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system allocator unchanged; the counter touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

/// Allocations and reallocations since the library was loaded.
pub fn allocations() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// Allocations of the calling thread, counted by the library that a bench preloads (native/malloc-count); None without it.
pub fn thread_mallocs() -> Option<u64> {
    type Count = extern "C" fn() -> u64;
    static COUNTER: std::sync::OnceLock<Option<Count>> = std::sync::OnceLock::new();
    let counter = COUNTER.get_or_init(|| {
        // SAFETY: a look-up by name in the libraries already loaded; the symbol, where it exists, has this signature.
        let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"tendon_malloc_count".as_ptr()) };
        // SAFETY: as above.
        (!symbol.is_null()).then(|| unsafe { std::mem::transmute::<*mut libc::c_void, Count>(symbol) })
    });
    counter.map(|count| count())
}
