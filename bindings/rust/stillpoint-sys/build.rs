//! Finds libstillpoint: in STILLPOINT_PREFIX/lib, else by pkg-config.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=STILLPOINT_PREFIX");
    let folder = match env::var("STILLPOINT_PREFIX") {
        Ok(prefix) => format!("{prefix}/lib"),
        Err(_) => {
            let done = Command::new("pkg-config").args(["--variable=libdir", "stillpoint"]).output();
            let found = done.ok().filter(|output| output.status.success()).and_then(|output| String::from_utf8(output.stdout).ok());
            found.map(|text| text.trim().to_owned()).unwrap_or_else(|| {
                panic!("libstillpoint is not found: install Stillpoint, and set STILLPOINT_PREFIX to its folder or PKG_CONFIG_PATH")
            })
        }
    };
    println!("cargo:rustc-link-search=native={folder}");
    println!("cargo:rustc-link-lib=dylib=stillpoint");
    println!("cargo:libdir={folder}");
}
