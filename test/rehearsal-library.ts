/**
 * Has this process load the native library of the tests, which can rehearse failures. Each `bun test` loads this file first
 * (bunfig.toml). `npm test` builds the library; for one test by hand: `cargo build --release -p tendon-rehearsal` in native/.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";

const library = join(import.meta.dir, "../native/target/release/libtendon_rehearsal.so");
if (!existsSync(library))
  throw new Error(`${library} is missing; run: cargo build --release -p tendon-rehearsal in native/`);
process.env.TENDON_TEST_LIBRARY = library;
