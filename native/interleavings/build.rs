//! The modules of the engine that are compiled here leave their ordinary unit tests out.

fn main() {
    println!("cargo::rustc-cfg=loom");
    println!("cargo::rerun-if-changed=build.rs");
}
