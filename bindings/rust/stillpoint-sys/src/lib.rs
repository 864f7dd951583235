//! The functions of stillpoint.h that the crate `stillpoint` uses. That header has their rules.

#![no_std]

use core::ffi::{c_char, c_int, c_void};

pub const SP_OK: c_int = 0;
pub const SP_E_INVALID_ARGUMENT: c_int = 1;
pub const SP_E_UNSUPPORTED: c_int = 18;
pub const SP_LEVEL_LOCAL: c_int = 0;
pub const SP_LEVEL_REMOTE: c_int = 1;

extern "C" {
    pub fn sp_open(path: *const c_char, options: *const c_char) -> c_int;
    pub fn sp_start_kind() -> c_int;
    pub fn sp_last_error() -> *const c_char;
    pub fn sp_malloc(size_bytes: usize) -> *mut c_void;
    pub fn sp_aligned_alloc(alignment_bytes: usize, size_bytes: usize) -> *mut c_void;
    pub fn sp_free(block: *mut c_void);
    pub fn sp_root(handle: *const c_char, size_bytes: usize) -> *mut c_void;
    pub fn sp_root_find(handle: *const c_char, size_bytes: *mut usize) -> *mut c_void;
    pub fn sp_root_delete(handle: *const c_char) -> c_int;
    pub fn sp_fase_begin();
    pub fn sp_fase_end();
    pub fn sp_sections_are_atomic() -> bool;
    pub fn sp_epoch() -> u64;
    pub fn sp_wait_durable(epoch: u64, timeout_ms: i64) -> c_int;
    pub fn sp_wait_durable_at(epoch: u64, level: c_int, timeout_ms: i64) -> c_int;
    pub fn sp_checkpoint() -> c_int;
}
