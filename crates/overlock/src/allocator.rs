//! Where does memory come from?
//!
//! A request of the gateway is a few hundred small pieces of memory, which come and go on several
//! threads: mimalloc takes a seventh fewer instructions for the whole of it than the allocator of
//! glibc. A large text that grows is another matter: the system moves it without copying, and
//! without having it twice.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

use mimalloc::MiMalloc;

/// Small pieces from mimalloc, large ones from the system. Which one a piece came from follows
/// from its size, which is known whenever it changes or goes.
pub(crate) struct BySize;

/// From so many bytes on a piece is large.
const LARGE: usize = 256 << 10;

fn of(size: usize) -> &'static dyn GlobalAlloc {
    if size < LARGE { &MiMalloc } else { &System }
}

// SAFETY: Every piece is given back to the allocator that it came from: both follow from the size
// alone, and the size at which a piece is changed or freed is the one that it was last given.
unsafe impl GlobalAlloc for BySize {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: The caller keeps to the same conditions.
        unsafe { of(layout.size()).alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: The caller keeps to the same conditions.
        unsafe { of(layout.size()).alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: A piece of this size came from there.
        unsafe { of(layout.size()).dealloc(piece, layout) }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if (layout.size() < LARGE) == (size < LARGE) {
            // SAFETY: A piece of this size came from there, and stays there.
            return unsafe { of(size).realloc(piece, layout, size) };
        }
        // SAFETY: The caller vouches that the new size, rounded up, is one that can be.
        let changed = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: The new size is not zero, and both pieces are at least as long as what is copied.
        unsafe {
            let moved = self.alloc(changed);
            if !moved.is_null() {
                ptr::copy_nonoverlapping(piece, moved, layout.size().min(size));
                self.dealloc(piece, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_piece_stays_when_it_grows_and_shrinks() {
        for align in [1, 8, 64] {
            let mut layout = Layout::from_size_align(16, align).expect("a layout");
            // SAFETY: Every size is above zero, and each piece is changed and freed as it was given.
            unsafe {
                let mut piece = BySize.alloc(layout);
                for byte in 0..16 {
                    piece
                        .add(byte)
                        .write(u8::try_from(byte).expect("it is small"));
                }
                for size in [LARGE - 1, LARGE, 3 * LARGE, LARGE, LARGE - 1, 100, 16] {
                    piece = BySize.realloc(piece, layout, size);
                    layout = Layout::from_size_align(size, align).expect("a layout");
                    assert_eq!(piece.align_offset(align), 0);
                    for byte in 0..16 {
                        assert_eq!(usize::from(piece.add(byte).read()), byte, "of {size}");
                    }
                }
                BySize.dealloc(piece, layout);
            }
        }
    }

    #[test]
    fn a_piece_of_zeros_is_one_whatever_its_size() {
        for size in [1, LARGE - 1, LARGE] {
            let layout = Layout::from_size_align(size, 1).expect("a layout");
            // SAFETY: The size is above zero, and the piece is freed as it was given.
            unsafe {
                let piece = BySize.alloc_zeroed(layout);
                assert!((0..size).all(|byte| piece.add(byte).read() == 0));
                BySize.dealloc(piece, layout);
            }
        }
    }
}
