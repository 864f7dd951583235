use std::{sync::{mpsc, Arc, Condvar, Mutex, RwLock}, thread};
fn main() { let s = Arc::new((Mutex::new(0u64), Condvar::new())); let r = Arc::new(RwLock::new(1u64)); let (tx, rx) = mpsc::channel();
  let t: Vec<_> = (0..4u64).map(|i| { let (s, r, tx) = (s.clone(), r.clone(), tx.clone()); thread::spawn(move || { for k in 0..5000u64 {
    *s.0.lock().unwrap() += *r.read().unwrap() * k; s.1.notify_one(); } tx.send(i).unwrap(); }) }).collect();
  drop(tx); let n: u64 = rx.iter().sum(); for x in t { x.join().unwrap(); } println!("{} {}", n, *s.0.lock().unwrap()); }
