//! As loop.c, with an array in a root.

use std::time::Instant;
use stillpoint::{durable_struct, Pool};

durable_struct! {
    struct Numbers { all: [i64; 1000] }
}

fn main() -> Result<(), stillpoint::Error> {
    let arguments: Vec<String> = std::env::args().collect();
    let seconds: f64 = arguments[1].parse().expect("seconds");
    let per_section: usize = arguments[2].parse().expect("operations of a section");
    let pool = Pool::current()?;
    let numbers = pool.root("numbers", || Numbers { all: [0; 1000] })?;
    let (begin, mut done) = (Instant::now(), 0);
    while begin.elapsed().as_secs_f64() < seconds {
        for _ in 0..100 {
            pool.section(|tx| {
                let all = &mut tx.get_mut(&numbers).all;
                for _ in 0..per_section {
                    let place = std::hint::black_box(&mut all[done % 1000]);
                    *place += 1;
                    done += 1;
                }
            });
        }
    }
    println!("{:.0}", done as f64 / begin.elapsed().as_secs_f64());
    Ok(())
}
