//! A map, and a value that may be missing, in durable memory.

use crate::{Durable, PString, PVec};
use std::mem;

/// A durable type by which a [`PMap`] finds its values. The hash is the same in each build and on each machine: it lies in the pool.
pub trait Key: Durable {
    /// What a lookup takes: `str` for [`PString`], the type itself for numbers.
    type Asked: ?Sized + Eq;
    fn asked(&self) -> &Self::Asked;
    fn hash_of(asked: &Self::Asked) -> u64;
}

/// FNV-1a, whose bits are mixed once more, since the map takes the low ones.
fn hash_of_bytes(bytes: &[u8]) -> u64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
}

macro_rules! keys {
    ($($name:ident)*) => { $(
        impl Key for $name {
            type Asked = $name;
            fn asked(&self) -> &$name {
                self
            }
            fn hash_of(asked: &$name) -> u64 {
                hash_of_bytes(&asked.to_le_bytes())
            }
        }
    )* };
}
keys!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128);

impl Key for PString {
    type Asked = str;
    fn asked(&self) -> &str {
        self
    }
    fn hash_of(asked: &str) -> u64 {
        hash_of_bytes(asked.as_bytes())
    }
}

impl<const N: usize> Key for [u8; N] {
    type Asked = [u8; N];
    fn asked(&self) -> &[u8; N] {
        self
    }
    fn hash_of(asked: &[u8; N]) -> u64 {
        hash_of_bytes(asked)
    }
}

#[repr(C)]
struct Entry<K: Key, V: Durable> {
    hash: u64,
    key: K,
    value: V,
}

// SAFETY: repr(C), of durable members.
unsafe impl<K: Key, V: Durable> Durable for Entry<K, V> {
    fn describe(text: &mut String, depth: usize) {
        K::describe(text, depth);
        text.push_str(", ");
        V::describe(text, depth);
    }
}

/// A hash map. Its order is that of insertion until something is removed. The hash is fixed: a user that chooses the keys can make them collide, and the map slow.
#[repr(C)]
pub struct PMap<K: Key, V: Durable> {
    entries: PVec<Entry<K, V>>,
    /// By hash, with linear probing: the number of an entry plus one, or 0. A power of two, at least twice as many as entries; or none.
    slots: PVec<u64>,
}

// SAFETY: repr(C), of durable vectors.
unsafe impl<K: Key, V: Durable> Durable for PMap<K, V> {
    fn describe(text: &mut String, depth: usize) {
        text.push_str("PMap<");
        if depth != 0 {
            Entry::<K, V>::describe(text, depth - 1);
        }
        text.push('>');
    }
}

impl<K: Key, V: Durable> PMap<K, V> {
    /// Empty, without memory.
    pub const fn new() -> Self {
        Self { entries: PVec::new(), slots: PVec::new() }
    }
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn get(&self, key: &K::Asked) -> Option<&V> {
        self.find(key).map(|(_, entry)| &self.entries[entry].value)
    }
    pub fn get_mut(&mut self, key: &K::Asked) -> Option<&mut V> {
        self.find(key).map(|(_, entry)| &mut self.entries[entry].value)
    }
    pub fn contains_key(&self, key: &K::Asked) -> bool {
        self.find(key).is_some()
    }

    /// The value that was there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some((_, entry)) = self.find(key.asked()) {
            return Some(mem::replace(&mut self.entries[entry].value, value));
        }
        if (self.entries.len() + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let hash = K::hash_of(key.asked());
        self.entries.push(Entry { hash, key, value });
        let slot = self.free_slot(hash);
        self.slots[slot] = self.entries.len() as u64;
        None
    }

    pub fn remove(&mut self, key: &K::Asked) -> Option<V> {
        let (slot, entry) = self.find(key)?;
        self.empty_slot(slot);
        let last = self.entries.len() - 1;
        if entry != last {
            let moved = self.slot_of(self.entries[last].hash, last);
            self.slots[moved] = entry as u64 + 1;
        }
        self.entries.swap(entry, last);
        self.entries.pop().map(|removed| removed.value)
    }

    pub fn clear(&mut self) {
        self.entries.clear();
        self.slots.fill(0);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|entry| (&entry.key, &entry.value))
    }
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.entries.iter_mut().map(|entry| (&entry.key, &mut entry.value))
    }

    /// The first slot from that of the hash on for which `is_it` holds. One does: no more than half of them are taken.
    fn probe(&self, hash: u64, is_it: impl Fn(u64) -> bool) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while !is_it(self.slots[slot]) {
            slot = (slot + 1) & mask;
        }
        slot
    }
    fn free_slot(&self, hash: u64) -> usize {
        self.probe(hash, |number| number == 0)
    }
    fn slot_of(&self, hash: u64, entry: usize) -> usize {
        self.probe(hash, |number| number == entry as u64 + 1)
    }

    /// The slot and the entry.
    fn find(&self, key: &K::Asked) -> Option<(usize, usize)> {
        if self.slots.is_empty() {
            return None;
        }
        let hash = K::hash_of(key);
        let is_it = |number: u64| {
            number == 0 || {
                let entry = &self.entries[number as usize - 1];
                entry.hash == hash && entry.key.asked() == key
            }
        };
        let slot = self.probe(hash, is_it);
        (self.slots[slot] != 0).then(|| (slot, self.slots[slot] as usize - 1))
    }

    /// Those after it that it kept from a place nearer to their hash move up.
    fn empty_slot(&mut self, mut empty: usize) {
        let mask = self.slots.len() - 1;
        let mut next = (empty + 1) & mask;
        while self.slots[next] != 0 {
            let home = self.entries[self.slots[next] as usize - 1].hash as usize & mask;
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(empty) & mask) {
                self.slots[empty] = self.slots[next];
                empty = next;
            }
            next = (next + 1) & mask;
        }
        self.slots[empty] = 0;
    }

    fn grow(&mut self) {
        let count = (self.slots.len() * 2).max(8);
        self.slots.clear();
        self.slots.extend(std::iter::repeat(0).take(count));
        for entry in 0..self.entries.len() {
            let slot = self.free_slot(self.entries[entry].hash);
            self.slots[slot] = entry as u64 + 1;
        }
    }
}

impl<K: Key, V: Durable> Default for PMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// A value that may be missing: `Option` has no fixed layout, this has.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum POption<T: Durable> {
    #[default]
    None,
    Some(T),
}

// SAFETY: repr(C): a number and the value.
unsafe impl<T: Durable> Durable for POption<T> {
    fn describe(text: &mut String, depth: usize) {
        text.push_str("POption<");
        T::describe(text, depth);
        text.push('>');
    }
}

impl<T: Durable> POption<T> {
    pub fn as_ref(&self) -> Option<&T> {
        match self {
            Self::None => None,
            Self::Some(value) => Some(value),
        }
    }
    pub fn as_mut(&mut self) -> Option<&mut T> {
        match self {
            Self::None => None,
            Self::Some(value) => Some(value),
        }
    }
    /// Leaves none.
    pub fn take(&mut self) -> Option<T> {
        mem::take(self).into()
    }
}

impl<T: Durable> From<Option<T>> for POption<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Self::Some)
    }
}
impl<T: Durable> From<POption<T>> for Option<T> {
    fn from(value: POption<T>) -> Self {
        match value {
            POption::None => None,
            POption::Some(value) => Some(value),
        }
    }
}
