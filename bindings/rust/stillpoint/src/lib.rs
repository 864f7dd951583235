//! Memory that survives a crash of the process or of the machine.
//!
//! ```no_run
//! use stillpoint::{Pool, PString, PVec};
//! stillpoint::durable_struct! {
//!     struct Visits { pages: PVec<PString>, count: u64 }
//! }
//! let pool = Pool::open("visits.pool", "")?;
//! let visits = pool.root("visits", || Visits { pages: PVec::new(), count: 0 })?;
//! pool.section(|tx| {                        // a crash leaves all of it or nothing
//!     let visits = tx.get_mut(&visits);
//!     visits.pages.push("index.html".into());
//!     visits.count += 1;
//! });
//! println!("{}", pool.read(|view| view.get(&visits).count));
//! # Ok::<(), stillpoint::Error>(())
//! ```

mod durable;
mod map;
mod memory;
mod pool;

pub use durable::Durable;
pub use map::{Key, PMap, POption};
pub use memory::{PBox, PString, PVec, PoolAllocator};
pub use pool::{Level, Pool, Root, Start, Transaction, View};

use std::ffi::CStr;
use std::fmt;

/// A call of the library has failed. `code` is its number in stillpoint/error.h.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub code: i32,
    pub text: String,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}
impl std::error::Error for Error {}

pub(crate) fn last_error() -> String {
    // SAFETY: never null, and valid until the thread's next call.
    unsafe { CStr::from_ptr(stillpoint_sys::sp_last_error()) }.to_string_lossy().into_owned()
}

pub(crate) fn check(code: i32) -> Result<(), Error> {
    if code == stillpoint_sys::SP_OK {
        Ok(())
    } else {
        Err(Error { code, text: last_error() })
    }
}
