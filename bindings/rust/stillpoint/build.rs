//! Lets the crate's own tests find the library where they were linked with it.

fn main() {
    if let Ok(folder) = std::env::var("DEP_STILLPOINT_LIBDIR") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
