//! Containers are as those of the standard library; the allocator keeps its promises. Without a pool: kills.rs has them in one.

use std::alloc::{GlobalAlloc, Layout};
use std::collections::HashMap;
use stillpoint::{PMap, POption, PString, PVec, PoolAllocator};

/// Numbers that look random, the same in each run.
struct Numbers(u64);
impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn same(map: &PMap<PString, PVec<u64>>, model: &HashMap<String, Vec<u64>>) {
    assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
    assert_eq!(map.iter().count(), model.len());
    assert!(map.iter().all(|(key, value)| model[&**key] == **value));
    assert!(model.iter().all(|(key, value)| **map.get(key).expect("a key") == **value));
}

fn vector_of(values: &[u64]) -> PVec<u64> {
    let mut made = PVec::new();
    made.extend(values.iter().copied());
    made
}

#[test]
fn a_map_is_as_a_hash_map() {
    let (mut map, mut model, mut numbers) = (PMap::new(), HashMap::new(), Numbers(5));
    for round in 0..20_000 {
        let key = format!("key {}", numbers.below(300));
        let value: Vec<u64> = (0..numbers.below(4)).collect();
        match numbers.below(8) {
            0..=3 => {
                let before = map.insert(PString::from(key.as_str()), vector_of(&value));
                assert_eq!(before.map(|old| old.to_vec()), model.insert(key, value));
            }
            4..=6 => assert_eq!(map.remove(&key).map(|old| old.to_vec()), model.remove(&key)),
            _ => {
                if let (Some(one), Some(other)) = (map.get_mut(&key), model.get_mut(&key)) {
                    one.push(7);
                    other.push(7);
                }
                assert_eq!(map.contains_key(&key), model.contains_key(&key));
            }
        }
        if round % 500 == 0 {
            same(&map, &model);
        }
    }
    for (_, value) in map.iter_mut() {
        value.clear();
    }
    model.values_mut().for_each(Vec::clear);
    same(&map, &model);
    map.clear();
    same(&map, &HashMap::new());
    assert!(map.insert("again".into(), PVec::new()).is_none() && map.contains_key("again"));
}

#[test]
fn keys_whose_places_collide_are_told_apart() {
    let mut map = PMap::new();
    (0..5_000_i32).for_each(|key| assert!(map.insert(key << 16, key).is_none()));
    (0..5_000_i32).step_by(2).for_each(|key| assert_eq!(map.remove(&(key << 16)), Some(key)));
    (0..5_000_i32).for_each(|key| assert_eq!(map.get(&(key << 16)).copied(), (key % 2 == 1).then_some(key)));
}

#[test]
fn a_value_may_be_missing() {
    let mut value: POption<PString> = None.into();
    assert!(value.as_ref().is_none() && value.take().is_none());
    value = Some(PString::from("there")).into();
    value.as_mut().expect("a value").push_str(" it is");
    assert_eq!(value.take().as_deref(), Some("there it is"));
    assert!(value.as_ref().is_none());
}

#[test]
fn the_allocator_keeps_alignment_and_content() {
    for (bytes, alignment) in [(1, 1), (24, 8), (100, 64), (5_000, 4_096), (1 << 20, 16)] {
        let layout = Layout::from_size_align(bytes, alignment).expect("a layout");
        // SAFETY: the block is written inside its size, and given back with the layout that it has.
        unsafe {
            let block = PoolAllocator.alloc_zeroed(layout);
            assert!(!block.is_null() && block as usize % alignment == 0);
            assert!((0..bytes).all(|byte| *block.add(byte) == 0));
            block.write_bytes(3, bytes);
            let larger = PoolAllocator.realloc(block, layout, bytes * 2);
            assert!(!larger.is_null() && larger as usize % alignment == 0 && (0..bytes).all(|byte| *larger.add(byte) == 3));
            PoolAllocator.dealloc(larger, Layout::from_size_align(bytes * 2, alignment).expect("a layout"));
        }
    }
    // SAFETY: nothing has that size.
    assert!(unsafe { PoolAllocator.alloc(Layout::from_size_align(1 << 60, 8).expect("a layout")) }.is_null());
}
