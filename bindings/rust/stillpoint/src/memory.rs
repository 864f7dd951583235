//! Containers whose elements lie in durable memory.

use crate::Durable;
use std::alloc::{GlobalAlloc, Layout};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use stillpoint_sys as sys;

/// Memory was given out that does not survive, since no pool was open: none may be opened any more, or it would point there.
pub(crate) static IS_VOLATILE: AtomicBool = AtomicBool::new(false);
const WINDOW_SHIFT: usize = 40;
const WINDOW_INDEX: usize = 0x48;

/// Durable memory by the standard library's interface of allocators, for containers of yours: see [`Durable`] for what they have to be. In a
/// section, or before the value is told to others: a crash leaks what no durable value leads to. Null where there is no memory. It is no
/// allocator for a whole program (`#[global_allocator]`): most of what a program allocates has no business in a pool.
#[derive(Debug, Clone, Copy, Default)]
pub struct PoolAllocator;

// SAFETY: blocks are apart, aligned, at least as large as asked for, and stay until they are given back.
unsafe impl GlobalAlloc for PoolAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let bytes = layout.size().max(1);
        // SAFETY: both take any size; the alignment is a power of two.
        let block = unsafe {
            if layout.align() <= 16 {
                sys::sp_malloc(bytes)
            } else {
                sys::sp_aligned_alloc(layout.align(), bytes)
            }
        };
        if !block.is_null() && block as usize >> WINDOW_SHIFT != WINDOW_INDEX {
            IS_VOLATILE.store(true, Ordering::Relaxed);
        }
        block.cast()
    }
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller's promise: alloc() made it.
        unsafe { sys::sp_free(block.cast()) };
    }
}

/// Durable memory for `count` elements. Panics where there is none: inside a section the program ends, and loses that section.
fn allocate<T>(count: usize) -> NonNull<T> {
    let layout = Layout::array::<T>(count).expect("a durable vector is longer than memory");
    // SAFETY: a size of zero is taken, too.
    let block = unsafe { PoolAllocator.alloc(layout) };
    NonNull::new(block.cast()).unwrap_or_else(|| panic!("{}", crate::last_error()))
}

/// A vector. Its elements are freed when it is dropped; one outside durable memory is leaked by a crash.
#[repr(C)]
pub struct PVec<T: Durable> {
    elements: NonNull<T>,
    length: usize,
    capacity: usize,
    owns: PhantomData<T>,
}

// SAFETY: owns its elements, as Vec does.
unsafe impl<T: Durable> Send for PVec<T> {}
// SAFETY: as above.
unsafe impl<T: Durable> Sync for PVec<T> {}
// SAFETY: repr(C); points to durable memory, or dangles while its capacity is 0. The pool lies at the same address in each process.
unsafe impl<T: Durable> Durable for PVec<T> {
    fn describe(text: &mut String, depth: usize) {
        text.push_str("PVec<");
        if depth != 0 {
            T::describe(text, depth - 1);
        }
        text.push('>');
    }
}

impl<T: Durable> PVec<T> {
    /// Empty, without memory.
    pub const fn new() -> Self {
        Self { elements: NonNull::dangling(), length: 0, capacity: 0, owns: PhantomData }
    }

    pub fn push(&mut self, value: T) {
        if self.length == self.capacity {
            self.grow();
        }
        // SAFETY: the place lies within the capacity.
        unsafe { self.elements.as_ptr().add(self.length).write(value) };
        self.length += 1;
    }

    pub fn pop(&mut self) -> Option<T> {
        self.length = self.length.checked_sub(1)?;
        // SAFETY: the element is no longer counted.
        Some(unsafe { self.elements.as_ptr().add(self.length).read() })
    }

    pub fn clear(&mut self) {
        while self.pop().is_some() {}
    }

    fn grow(&mut self) {
        let capacity = (self.capacity * 2).max(4);
        let moved = allocate::<T>(capacity);
        // SAFETY: the old elements move; the old block was allocated if its capacity is not 0.
        unsafe {
            moved.as_ptr().copy_from_nonoverlapping(self.elements.as_ptr(), self.length);
            if self.capacity != 0 {
                sys::sp_free(self.elements.as_ptr().cast());
            }
        }
        self.elements = moved;
        self.capacity = capacity;
    }
}

impl<T: Durable> Drop for PVec<T> {
    fn drop(&mut self) {
        self.clear();
        if self.capacity != 0 {
            // SAFETY: allocated by grow(), and not used any more.
            unsafe { sys::sp_free(self.elements.as_ptr().cast()) };
        }
    }
}

impl<T: Durable> Default for PVec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Durable> Deref for PVec<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `length` elements are initialised.
        unsafe { std::slice::from_raw_parts(self.elements.as_ptr(), self.length) }
    }
}

impl<T: Durable> DerefMut for PVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in deref(), and the caller is alone.
        unsafe { std::slice::from_raw_parts_mut(self.elements.as_ptr(), self.length) }
    }
}

impl<T: Durable> Extend<T> for PVec<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

/// Text.
#[repr(C)]
#[derive(Default)]
pub struct PString {
    bytes: PVec<u8>,
}

// SAFETY: repr(C) around a durable vector.
unsafe impl Durable for PString {
    fn describe(text: &mut String, _: usize) {
        text.push_str("PString");
    }
}

impl PString {
    pub const fn new() -> Self {
        Self { bytes: PVec::new() }
    }
    pub fn push_str(&mut self, text: &str) {
        self.bytes.extend(text.bytes());
    }
}

impl From<&str> for PString {
    fn from(text: &str) -> Self {
        let mut made = Self::new();
        made.push_str(text);
        made
    }
}

impl Deref for PString {
    type Target = str;
    fn deref(&self) -> &str {
        // SAFETY: bytes come from push_str() alone.
        unsafe { std::str::from_utf8_unchecked(&self.bytes) }
    }
}

impl fmt::Debug for PString {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, out)
    }
}

/// One value in a block of its own.
#[repr(C)]
pub struct PBox<T: Durable> {
    value: NonNull<T>,
    owns: PhantomData<T>,
}

// SAFETY: owns its value, as Box does.
unsafe impl<T: Durable> Send for PBox<T> {}
// SAFETY: as above.
unsafe impl<T: Durable> Sync for PBox<T> {}
// SAFETY: repr(C); points to durable memory.
unsafe impl<T: Durable> Durable for PBox<T> {
    fn describe(text: &mut String, depth: usize) {
        text.push_str("PBox<");
        if depth != 0 {
            T::describe(text, depth - 1);
        }
        text.push('>');
    }
}

impl<T: Durable> PBox<T> {
    pub fn new(value: T) -> Self {
        let place = allocate::<T>(1);
        // SAFETY: fresh memory of the right size and alignment.
        unsafe { place.as_ptr().write(value) };
        Self { value: place, owns: PhantomData }
    }
}

impl<T: Durable> Drop for PBox<T> {
    fn drop(&mut self) {
        // SAFETY: made by new(), and not used any more.
        unsafe {
            self.value.as_ptr().drop_in_place();
            sys::sp_free(self.value.as_ptr().cast());
        }
    }
}

impl<T: Durable> Deref for PBox<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: initialised by new().
        unsafe { self.value.as_ref() }
    }
}

impl<T: Durable> DerefMut for PBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in deref(), and the caller is alone.
        unsafe { self.value.as_mut() }
    }
}
