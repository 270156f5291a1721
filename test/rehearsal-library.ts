/** Has this process load the native library of the tests, which can rehearse failures. Each `bun test` loads this file first (bunfig.toml). */
import { join } from "node:path";

process.env.TENDON_TEST_LIBRARY = join(import.meta.dir, "../native/target/release/libtendon_rehearsal.so");
