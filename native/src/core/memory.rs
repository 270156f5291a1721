//! Tensor memory: whole pages, zeroed, page-locked where the system allows it.
//!
//! A locked frame is not paged out between its decode and its inference, and a GPU copies from locked memory without a staging buffer once
//! its driver knows it (`Block::register`). Locking may fail: the limit of an ordinary user is often 8 MiB. `tendon doctor` shows how much
//! was locked.

use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};

static TENSOR_BYTES: AtomicU64 = AtomicU64::new(0);
static LOCKED_BYTES: AtomicU64 = AtomicU64::new(0);

/// Bytes of tensor memory of the process, and the page-locked ones among them.
pub fn totals() -> (u64, u64) {
    (TENSOR_BYTES.load(Ordering::Relaxed), LOCKED_BYTES.load(Ordering::Relaxed))
}

/// Returns the free memory of the C library's heap to the system.
pub fn trim_heap() {
    // SAFETY: it touches free memory alone, from any thread.
    unsafe { libc::malloc_trim(0) };
}

/// Blocks of this size and more go back to the system as soon as they are free.
const LARGE_BYTES: i32 = 4 << 20;

/// Has the C library map each large block by itself, for the rest of the process. Its default limit grows to 32 MiB with the first such
/// block that is freed. Smaller blocks then leave holes: 1.3 GB after an inference of 3 billion weights that needed 0.5 GB at a time.
pub fn return_large_blocks() {
    // SAFETY: it changes where later blocks come from, at any time, from any thread.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES) };
}

/// Bytes of the whole pages that hold `bytes`, one page at least.
fn pages(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(4096)
}

/// Keeps host memory registered with the driver of a GPU until it is dropped.
pub trait Registration: Send + Sync {
    /// The driver keeps the memory when this is dropped, because its device is lost.
    fn is_left(&self) -> bool;
}

/// A fixed block of bytes, zeroed when made, at a page boundary, never moved.
pub struct Block {
    start: *mut u8,
    len: usize,
    bytes: usize,
    /// It counts as tensor memory.
    tensor: bool,
    locked: bool,
    /// The driver of a GPU copies from and to it by itself.
    registered: Option<Box<dyn Registration>>,
}

// SAFETY: a Block owns its pages as a Box owns its slice.
unsafe impl Send for Block {}
// SAFETY: shared access only reads, but through `address`, whose users ensure that no thread reads what they write.
unsafe impl Sync for Block {}

impl Block {
    /// `len` zeroes, page-locked at their first write if the system allows it.
    pub fn locked(len: usize) -> Result<Block, String> {
        let mut block = Block::lazy(len)?;
        block.tensor = true;
        // Pages are locked at their first write: most slots of a service are never used.
        // SAFETY: the range is the mapping just made.
        block.locked = unsafe { libc::mlock2(block.start.cast(), block.bytes, libc::MLOCK_ONFAULT) } == 0;
        TENSOR_BYTES.fetch_add(block.bytes as u64, Ordering::Relaxed);
        if block.locked {
            LOCKED_BYTES.fetch_add(block.bytes as u64, Ordering::Relaxed);
        }
        Ok(block)
    }

    /// `count` blocks of `len` zeroes in one mapping, which is far cheaper than one mapping each. They use memory only where they were
    /// written. With `lock` they are page-locked, as many as the system allows.
    pub fn several(len: usize, count: usize, lock: bool) -> Result<Vec<Block>, String> {
        let bytes = pages(len);
        let mut whole = Block::lazy(count.max(1) * bytes)?;
        // SAFETY: the range lies inside the mapping just made.
        let locks = |at: usize, bytes: usize| unsafe {
            libc::mlock2(whole.start.add(at).cast(), bytes, libc::MLOCK_ONFAULT) == 0
        };
        let mut locked = if !lock {
            0
        } else if locks(0, whole.bytes) {
            count
        } else {
            (0..count).take_while(|index| locks(index * bytes, bytes)).count()
        };
        let blocks = (0..count).map(|index| {
            // SAFETY: inside the mapping, at a page boundary.
            let start = unsafe { whole.start.add(index * bytes) };
            let is_locked = locked > 0;
            locked -= usize::from(is_locked);
            TENSOR_BYTES.fetch_add(if lock { bytes as u64 } else { 0 }, Ordering::Relaxed);
            LOCKED_BYTES.fetch_add(if is_locked { bytes as u64 } else { 0 }, Ordering::Relaxed);
            Block { start, len, bytes, tensor: lock, locked: is_locked, registered: None }
        });
        let blocks = blocks.collect();
        // Each block unmaps its own part from here on.
        whole.bytes = 0;
        Ok(blocks)
    }

    /// `len` zeroes that use memory only where they were written.
    pub fn lazy(len: usize) -> Result<Block, String> {
        let bytes = pages(len);
        // SAFETY: a new private anonymous mapping; the result is checked.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(format!("no {bytes} bytes of memory: {}", std::io::Error::last_os_error()));
        }
        Ok(Block { start: start.cast(), len, bytes, tensor: false, locked: false, registered: None })
    }

    /// Registers the block with the driver of a GPU, which then copies from and to it without its own buffer. Its pages are in memory and
    /// locked from now on. No other block shares them.
    ///
    /// `register` takes the first byte and the length: whole pages, which stay mapped until the registration is dropped.
    pub fn register<E>(
        &mut self,
        register: impl FnOnce(*mut c_void, usize) -> Result<Box<dyn Registration>, E>,
    ) -> Result<(), E> {
        if self.registered.is_none() && self.bytes > 0 {
            self.registered = Some(register(self.start.cast(), self.bytes)?);
            if !self.locked && self.tensor {
                self.locked = true;
                LOCKED_BYTES.fetch_add(self.bytes as u64, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    pub fn registered_bytes(&self) -> usize {
        if self.registered.is_some() { self.bytes } else { 0 }
    }

    /// Returns the pages after the first `keep` values to the system; they read as zero afterwards.
    pub fn release_beyond(&mut self, keep: usize) {
        assert!(self.registered.is_none(), "a driver would go on with pages that the block has no more");
        let from = keep.next_multiple_of(4096);
        if from < self.bytes {
            // SAFETY: the range lies inside this mapping, and `&mut self` is the only reference.
            unsafe { libc::madvise(self.start.add(from).cast(), self.bytes - from, libc::MADV_DONTNEED) };
        }
    }

    /// Returns all pages to the system; they read as zero afterwards.
    ///
    /// # Safety
    /// No other thread reads or writes the block meanwhile.
    pub unsafe fn release(&self) {
        assert!(self.registered.is_none(), "a driver would go on with pages that the block has no more");
        // SAFETY: the range is this mapping, or its part of one; the caller has it alone.
        unsafe { libc::madvise(self.start.cast(), self.bytes, libc::MADV_DONTNEED) };
    }

    /// The address, for a library that is bound to this memory. Valid for the life of the block.
    pub fn address(&self) -> *mut u8 {
        self.start
    }

    /// The bytes as floats, for a tensor of f32.
    pub fn floats(&self) -> &[f32] {
        // SAFETY: the floats lie in the mapping, which begins at a page boundary; any four bytes are one.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.len / size_of::<f32>()) }
    }

    /// The bytes as floats, to be written.
    pub fn floats_mut(&mut self) -> &mut [f32] {
        // SAFETY: as above, and `&mut self` makes it the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.len / size_of::<f32>()) }
    }
}

impl Deref for Block {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping holds `len` values, zeroed at first, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` makes it the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let is_left = self.registered.take().is_some_and(|registered| registered.is_left());
        // SAFETY: a mapping made in `lazy`, or a part of one, unmapped once. Of one that became several nothing is left.
        if self.bytes > 0 && !is_left {
            unsafe { libc::munmap(self.start.cast(), self.bytes) };
        }
        if self.locked {
            LOCKED_BYTES.fetch_sub(self.bytes as u64, Ordering::Relaxed);
        }
        if self.tensor {
            TENSOR_BYTES.fetch_sub(self.bytes as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_blocks_lie_side_by_side_and_are_given_back_each_by_itself() {
        let mut blocks = Block::several(6000, 3, false).expect("memory");
        let addresses: Vec<usize> = blocks.iter().map(|block| block.address() as usize).collect();
        assert_eq!((addresses[1] - addresses[0], addresses[2] - addresses[1]), (8192, 8192));
        for (value, block) in blocks.iter_mut().enumerate() {
            assert!(block.len() == 6000 && block.iter().all(|&zero| zero == 0));
            block.fill(value as u8);
        }
        drop(blocks.remove(1));
        assert!(blocks[0].iter().all(|&value| value == 0) && blocks[1].iter().all(|&value| value == 2));
    }
}
