//! Counts heap allocations per thread: `LD_PRELOAD=libtendon_malloc_count.so`, for the bench of memory only.
//!
//! The library replaces the names of the C allocator and calls glibc's own. The engine finds `tendon_malloc_count` by name and takes the
//! difference over a run on its thread. The product does not contain it.

use libc::{c_int, c_void, size_t};
use std::cell::Cell;

unsafe extern "C" {
    fn __libc_malloc(size: size_t) -> *mut c_void;
    fn __libc_calloc(count: size_t, size: size_t) -> *mut c_void;
    fn __libc_realloc(block: *mut c_void, size: size_t) -> *mut c_void;
    fn __libc_memalign(align: size_t, size: size_t) -> *mut c_void;
}

thread_local! {
    // Without a destructor or lazy start: the first allocation of a thread must not allocate here.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    COUNT.set(COUNT.get() + 1);
}

/// Allocations by the calling thread so far.
#[unsafe(no_mangle)]
pub extern "C" fn tendon_malloc_count() -> u64 {
    COUNT.get()
}

/// # Safety
/// The contract is that of malloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(size: size_t) -> *mut c_void {
    count();
    // SAFETY: the caller's contract, passed on; likewise below.
    unsafe { __libc_malloc(size) }
}

/// # Safety
/// The contract is that of calloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(blocks: size_t, size: size_t) -> *mut c_void {
    count();
    // SAFETY: passed on.
    unsafe { __libc_calloc(blocks, size) }
}

/// # Safety
/// The contract is that of realloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: size_t) -> *mut c_void {
    count();
    // SAFETY: passed on.
    unsafe { __libc_realloc(block, size) }
}

/// # Safety
/// The contract is that of memalign(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(align: size_t, size: size_t) -> *mut c_void {
    count();
    // SAFETY: passed on.
    unsafe { __libc_memalign(align, size) }
}

/// # Safety
/// The contract is that of aligned_alloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(align: size_t, size: size_t) -> *mut c_void {
    count();
    // SAFETY: passed on.
    unsafe { __libc_memalign(align, size) }
}

/// # Safety
/// The contract is that of posix_memalign(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: size_t, size: size_t) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    count();
    // SAFETY: passed on; `out` is the caller's.
    unsafe {
        let block = __libc_memalign(align, size);
        if block.is_null() {
            return libc::ENOMEM;
        }
        *out = block;
    }
    0
}
