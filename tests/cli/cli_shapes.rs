// Enums of each form in a pool, for `stillpoint dump` and `stillpoint diff`. With the argument "change" other variants are stored, and one that there
// is not.

use std::ffi::{c_char, c_void};
use std::ptr;

extern "C" {
    fn sp_root(name: *const c_char, size_bytes: usize) -> *mut c_void;
    fn sp_malloc(size_bytes: usize) -> *mut c_void;
    fn sp_fase_begin();
    fn sp_fase_end();
}

pub enum Shape {
    Circle(f64),
    Rectangle { width: f64, height: f64 },
    Nothing,
}

#[derive(Clone, Copy)]
pub enum Kind {
    First,
    Second,
    Third = 9,
}

#[repr(i8)]
pub enum Signed {
    Low(u32) = -3,
    High = 4,
}

pub enum Only {
    One(u64),
}

pub struct Node {
    pub value: u64,
    pub next: Option<&'static Node>,
}

pub struct Root {
    pub shapes: [Shape; 3],
    pub some: Option<u32>,
    pub none: Option<u32>,
    pub kind: Kind,
    pub niche: Option<Kind>,
    pub no_niche: Option<Kind>,
    pub signed: [Signed; 2],
    pub only: Only,
    pub first: Option<&'static Node>,
}

unsafe fn node(value: u64, next: Option<&'static Node>) -> Option<&'static Node> {
    let place = sp_malloc(size_of::<Node>()) as *mut Node;
    ptr::write(place, Node { value, next });
    place.as_ref()
}

fn main() {
    let changes = std::env::args().nth(1).as_deref() == Some("change");
    unsafe {
        let root = sp_root(c"root".as_ptr(), size_of::<Root>()) as *mut Root;
        assert!(!root.is_null());
        sp_fase_begin();
        if changes {
            (*root).shapes[0] = Shape::Nothing;
            (*root).some = Some(8);
            (*root).first = None;
            *(ptr::addr_of_mut!((*root).signed[1]) as *mut u8) = 100; // As damage would leave it.
        } else {
            ptr::write(
                root,
                Root {
                    shapes: [Shape::Circle(2.5), Shape::Rectangle { width: 1.5, height: 2.0 }, Shape::Nothing],
                    some: Some(7),
                    none: None,
                    kind: Kind::Third,
                    niche: Some(Kind::Second),
                    no_niche: None,
                    signed: [Signed::Low(11), Signed::High],
                    only: Only::One(12),
                    first: node(1, node(2, None)),
                },
            );
        }
        sp_fase_end();
        let first = Kind::First; // Each variant is made somewhere.
        assert!((*root).kind as u8 >= first as u8);
    }
}
