//! Prints `src/engine/abi.ts`: `cargo run --bin abi > ../src/engine/abi.ts`.

fn main() {
    print!("{}", tendon::abi::typescript());
}
