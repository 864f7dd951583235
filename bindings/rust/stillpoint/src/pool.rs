//! The pool of the process, its roots, and sections.

use crate::memory::IS_VOLATILE;
use crate::{check, last_error, Durable, Error};
use std::cell::Cell;
use std::ffi::{c_void, CString};
use std::marker::PhantomData;
use std::mem::{align_of, size_of};
use std::sync::atomic::Ordering;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;
use stillpoint_sys as sys;

/// Sections have durable memory for themselves, reads share it. Stillpoint does not see this lock: a section begins after it is taken.
static ACCESS: RwLock<()> = RwLock::new(());
thread_local! { static INSIDE: Cell<bool> = const { Cell::new(false) }; }

const MAGIC: u64 = 0x3154_4f4f_5254_5352; // "RSTROOT1"
const DEPTH: usize = 4;

/// Lies before the value in the block of its name.
#[repr(C)]
struct Header {
    magic: u64,
    size_bytes: u64,
    alignment_bytes: u64,
    type_hash: u64,
}

/// How the process has found its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    Volatile,
    Fresh,
    Clean,
    Crashed,
}

/// How safe work is to be, of a pool with a replica (option `replica`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Durable on this machine.
    Local,
    /// In the replica too: it survives the loss of the machine.
    Remote,
}

/// The open pool. It closes when the process ends.
#[derive(Debug, Clone, Copy)]
pub struct Pool(());

/// A named value in the pool.
pub struct Root<T: Durable> {
    value: *mut T,
}

// SAFETY: an address; the value is reached through a Transaction or a View alone.
unsafe impl<T: Durable> Send for Root<T> {}
// SAFETY: as above.
unsafe impl<T: Durable> Sync for Root<T> {}
impl<T: Durable> Clone for Root<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Durable> Copy for Root<T> {}

/// Gives access to roots inside a section.
pub struct Transaction<'a>(PhantomData<&'a mut ()>);
/// Gives access to roots in a read.
pub struct View<'a>(PhantomData<&'a ()>);

impl Transaction<'_> {
    pub fn get<T: Durable>(&self, root: &Root<T>) -> &T {
        // SAFETY: the section is alone, and get_mut() borrows the transaction.
        unsafe { &*root.value }
    }
    pub fn get_mut<T: Durable>(&mut self, root: &Root<T>) -> &mut T {
        // SAFETY: the section is alone, and `self` is borrowed as long as the result.
        unsafe { &mut *root.value }
    }
}
impl View<'_> {
    pub fn get<T: Durable>(&self, root: &Root<T>) -> &T {
        // SAFETY: no section runs as long as the view lives.
        unsafe { &*root.value }
    }
}

/// Marks the thread as inside. Panics where it is: a nested call would wait for itself.
struct Entered;
impl Entered {
    fn new() -> Self {
        assert!(!INSIDE.replace(true), "a section or read cannot begin inside another one: pass the transaction or view on");
        Self
    }
}
impl Drop for Entered {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// Between sp_fase_begin and sp_fase_end. A panic inside ends the program: the next start finds the state from before the section.
struct Fase;
impl Fase {
    fn new() -> Self {
        // SAFETY: may be called anywhere.
        unsafe { sys::sp_fase_begin() };
        Self
    }
}
impl Drop for Fase {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("stillpoint: a panic inside a section: the program ends, so that half of the section does not become durable");
            std::process::abort();
        }
        // SAFETY: ends what new() began, on the same thread.
        unsafe { sys::sp_fase_end() };
    }
}

fn invalid(text: String) -> Error {
    Error { code: sys::SP_E_INVALID_ARGUMENT, text }
}

fn c_text(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| invalid(format!("{text:?} holds a zero byte")))
}

fn header_of<T: Durable>() -> Header {
    let mut text = String::new();
    T::describe(&mut text, DEPTH);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    Header { magic: MAGIC, size_bytes: size_of::<T>() as u64, alignment_bytes: align_of::<T>() as u64, type_hash: hash }
}

impl Pool {
    /// Opens or makes the pool, once in a process, before the first durable value is made. `options` are those of `stillpoint run`: "engine=pronto interval_ms=20".
    pub fn open(path: &str, options: &str) -> Result<Self, Error> {
        if IS_VOLATILE.load(Ordering::Relaxed) {
            return Err(invalid(
                "open the pool before the first PVec, PString, PBox or root gets memory: what was made before cannot survive".to_owned(),
            ));
        }
        let (path, options) = (c_text(path)?, c_text(options)?);
        // SAFETY: two C strings.
        check(unsafe { sys::sp_open(path.as_ptr(), options.as_ptr()) })?;
        Self::current()
    }

    /// The pool of `stillpoint run`; without one, ordinary memory: the program runs, and nothing survives.
    pub fn current() -> Result<Self, Error> {
        // SAFETY: may be called anywhere.
        if unsafe { sys::sp_sections_are_atomic() } {
            return Ok(Self(()));
        }
        let text = "this pool's engine wants to be told of each store: make the pool with another engine, such as pmthreads";
        Err(Error { code: sys::SP_E_UNSUPPORTED, text: text.to_owned() })
    }

    pub fn start(&self) -> Start {
        // SAFETY: may be called anywhere.
        match unsafe { sys::sp_start_kind() } {
            0 => Start::Volatile,
            1 => Start::Fresh,
            2 => Start::Clean,
            _ => Start::Crashed,
        }
    }

    /// The value of that name; made by `make` where there is none. Size, alignment and the names of the type and its members are
    /// compared. A crash meanwhile leaves none; so does a panic of `make`, which ends the program.
    pub fn root<T: Durable>(&self, name: &str, make: impl FnOnce() -> T) -> Result<Root<T>, Error> {
        const { assert!(align_of::<T>() <= 16, "a root has an alignment of 16 bytes at most") };
        let handle = c_text(name)?;
        let _entered = Entered::new();
        let _access = ACCESS.write().unwrap_or_else(PoisonError::into_inner);
        let _fase = Fase::new();
        let bytes = size_of::<Header>() + size_of::<T>();
        let mut found_bytes = 0;
        // SAFETY: a C string and a place for the size.
        let found = unsafe { sys::sp_root_find(handle.as_ptr(), &mut found_bytes) };
        if !found.is_null() {
            return found_root(name, found, found_bytes, bytes);
        }
        // SAFETY: a C string.
        let block = unsafe { sys::sp_root(handle.as_ptr(), bytes) };
        if block.is_null() {
            return Err(invalid(last_error()));
        }
        if runs_volatile() {
            IS_VOLATILE.store(true, Ordering::Relaxed);
        }
        let value = value_in::<T>(block);
        // SAFETY: the block has room for both, and is aligned to 16 bytes, as is the header's size.
        unsafe {
            value.write(make());
            block.cast::<Header>().write(header_of::<T>());
        }
        Ok(Root { value })
    }

    /// All that `body` changes survives a crash, or nothing. One section runs at a time, and no read meanwhile. Nothing is rolled back
    /// where `body` returns an error; a panic ends the program, and the next start finds the state from before.
    pub fn section<R>(&self, body: impl FnOnce(&mut Transaction<'_>) -> R) -> R {
        let _entered = Entered::new();
        let _access = ACCESS.write().unwrap_or_else(PoisonError::into_inner);
        let _fase = Fase::new();
        body(&mut Transaction(PhantomData))
    }

    /// Reads, beside other reads.
    pub fn read<R>(&self, body: impl FnOnce(&View<'_>) -> R) -> R {
        let _entered = Entered::new();
        let _access = ACCESS.read().unwrap_or_else(PoisonError::into_inner);
        body(&View(PhantomData))
    }

    /// Waits until the sections that have ended are durable. An error inside a section.
    pub fn wait_durable(&self) -> Result<(), Error> {
        // SAFETY: may be called anywhere.
        check(unsafe { sys::sp_wait_durable(sys::sp_epoch(), -1) })
    }

    /// As wait_durable(), at that level; `None` waits forever. An error also where `Level::Remote` is asked of a pool in a file that has no
    /// replica, and when the time is over.
    pub fn wait_durable_at(&self, level: Level, timeout: Option<Duration>) -> Result<(), Error> {
        let level = match level {
            Level::Local => sys::SP_LEVEL_LOCAL,
            Level::Remote => sys::SP_LEVEL_REMOTE,
        };
        let timeout_ms = timeout.map_or(-1, |time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
        // SAFETY: may be called anywhere.
        check(unsafe { sys::sp_wait_durable_at(sys::sp_epoch(), level, timeout_ms) })
    }

    /// Makes durable now what was done so far. An error inside a section.
    pub fn checkpoint(&self) -> Result<(), Error> {
        // SAFETY: may be called anywhere.
        check(unsafe { sys::sp_checkpoint() })
    }
}

fn runs_volatile() -> bool {
    // SAFETY: may be called anywhere.
    unsafe { sys::sp_start_kind() == 0 }
}

fn value_in<T>(block: *mut c_void) -> *mut T {
    // SAFETY: the callers' blocks begin with a header.
    unsafe { block.cast::<Header>().add(1).cast() }
}

fn found_root<T: Durable>(name: &str, block: *mut c_void, found_bytes: usize, bytes: usize) -> Result<Root<T>, Error> {
    let wanted = header_of::<T>();
    if found_bytes >= size_of::<Header>() {
        // SAFETY: the block has that size.
        let found = unsafe { block.cast::<Header>().read() };
        if found.magic != MAGIC {
            return Err(invalid(format!("root {name:?} was not made by this crate: use another name")));
        }
        if found_bytes == bytes && found.type_hash == wanted.type_hash && found.alignment_bytes == wanted.alignment_bytes {
            return Ok(Root { value: value_in(block) });
        }
    }
    let mut text = String::new();
    T::describe(&mut text, DEPTH);
    Err(invalid(format!("root {name:?} holds another type than {text}. Nothing converts old data: use the old type, or another name")))
}
