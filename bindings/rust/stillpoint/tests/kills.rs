//! A program that is killed in the middle finds whole sections; other types are refused; a panic inside a section undoes it by a restart.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use stillpoint::{durable_struct, Level, PBox, PMap, POption, PString, PVec, Pool, Root};

const KILLS: u64 = 8;
const OPTIONS: &str = "quiet durability=process pool_size_mb=8 pool_max_mb=64 interval_ms=5";

durable_struct! {
    struct Entry { from: u64, to: PString, next: PVec<Entry> }
}
durable_struct! {
    struct Ledger { amounts: [i64; 20], entries: PVec<PBox<Entry>>, counts: PMap<PString, u64>, removed: POption<u64>, sections: u64 }
}
durable_struct! {
    struct Other { amounts: [i64; 20], entries: PVec<PBox<Entry>>, sections: i64 }
}

fn ledger_of(pool: &Pool) -> Root<Ledger> {
    pool.root("ledger", || Ledger { amounts: [0; 20], entries: PVec::new(), counts: PMap::new(), removed: POption::None, sections: 0 })
        .expect("the ledger")
}

fn change(pool: &Pool, ledger: &Root<Ledger>, step: u64) {
    pool.section(|tx| {
        let ledger = tx.get_mut(ledger);
        let (from, to) = (step * 7 % 20, step * 11 % 20);
        ledger.amounts[from as usize] -= 1;
        let mut entry = Entry { from, to: PString::from(format!("account {to}").as_str()), next: PVec::new() };
        entry.next.push(Entry { from: step, to: PString::new(), next: PVec::new() });
        ledger.entries.push(PBox::new(entry));
        ledger.amounts[to as usize] += 1;
        if ledger.entries.len() == 100 {
            ledger.entries.clear();
        }
        count(ledger, &format!("account {}", step * 13 % 400), step);
        ledger.sections += 1;
    });
}

/// In the map, whose counts are removed now and then.
fn count(ledger: &mut Ledger, name: &str, step: u64) {
    match ledger.counts.get_mut(name) {
        Some(count) => *count += 1,
        None => assert!(ledger.counts.insert(name.into(), 1).is_none()),
    }
    if step % 3 == 0 {
        let count = ledger.counts.remove(name).expect("it was counted");
        ledger.removed = Some(ledger.removed.take().unwrap_or(0) + count).into();
    }
}

fn child(path: &str, task: &str) {
    let pool = Pool::open(path, OPTIONS).expect("the pool");
    let ledger = ledger_of(&pool);
    let sections = pool.read(|view| {
        let found = view.get(&ledger);
        assert_eq!(found.amounts.iter().sum::<i64>(), 0);
        assert_eq!(found.entries.len() as u64, found.sections % 100);
        assert!(found.entries.iter().all(|entry| entry.to.starts_with("account ") && entry.next.len() == 1 && entry.from < 20));
        let counted: u64 = found.counts.iter().map(|(name, count)| if name.starts_with("account ") { *count } else { 0 }).sum();
        assert_eq!(counted + found.removed.as_ref().copied().unwrap_or(0), found.sections);
        assert!(found.counts.iter().all(|(name, count)| found.counts.get(name) == Some(count)));
        found.sections
    });
    println!("{sections}");
    match task {
        "work" => {
            let threads: Vec<_> = (0..2)
                .map(|i| {
                    thread::spawn(move || {
                        for step in 0.. {
                            change(&pool, &ledger, step + i)
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("a thread"));
        }
        "panic" => {
            pool.checkpoint().expect("a checkpoint");
            pool.section(|tx| {
                tx.get_mut(&ledger).sections += 1;
                panic!("inside");
            });
        }
        "types" => {
            let refused = pool.root("ledger", || Other { amounts: [0; 20], entries: PVec::new(), sections: 0 }).err().expect("refused");
            assert!(refused.text.contains("holds another type than Other"), "{refused}");
            assert!(pool.section(|_| pool.checkpoint()).is_err());
            assert!(Pool::open(path, OPTIONS).is_err());
            pool.wait_durable_at(Level::Local, Some(Duration::from_secs(60))).expect("durable here");
            let alone = pool.wait_durable_at(Level::Remote, None).expect_err("there is no replica");
            assert!(alone.code == 18 && alone.text.contains("has no replica"), "{alone}");
        }
        _ => {}
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).map(String::as_str) == Some("late") {
        let text = PString::from("made without a pool");
        let refused = Pool::open(&arguments[2], OPTIONS).err().expect("refused");
        assert!(refused.text.contains("before the first"), "{refused} {text:?}");
        return;
    }
    if arguments.get(1).map(String::as_str) == Some("child") {
        return child(&arguments[2], &arguments[3]);
    }
    let path = std::env::temp_dir().join(format!("stillpoint-rust-{}.pool", std::process::id()));
    let life = |task: &str| {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["child", path.to_str().expect("a path"), task]).stdout(Stdio::piped());
        command
    };
    let mut before = 0;
    for kill in 0..KILLS {
        let mut run = life("work").spawn().expect("a child");
        let mut line = String::new();
        BufReader::new(run.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        thread::sleep(Duration::from_millis(kill * 37 % 200));
        run.kill().expect("a kill");
        assert_eq!(run.wait().expect("its end").signal(), Some(9), "the child ended by itself");
        let found: u64 = line.trim().parse().expect("a number");
        assert!(found >= before, "{found} sections, and {before} before");
        before = found;
    }
    let last = |task: &str| {
        let done = life(task).output().expect("a child");
        (done.status, String::from_utf8_lossy(&done.stdout).trim().to_owned())
    };
    let (status, found) = last("panic");
    assert_eq!(status.signal(), Some(6), "a panic inside a section ends the program");
    assert_eq!(last("types"), (std::process::ExitStatus::from_raw(0), found));
    let late = Command::new(std::env::current_exe().expect("this program")).args(["late", path.to_str().expect("a path")]).status();
    assert!(late.expect("a child").success());
    assert!(before > 0);
    std::fs::remove_file(path).expect("the pool's file");
    println!("{KILLS} kills: whole sections only");
}
