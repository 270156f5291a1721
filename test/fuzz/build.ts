/** `bun test/fuzz/build.ts`: builds the fuzz targets in Rust, so that no test waits for it. */
import { testRequirement } from "../../src/config/environment.ts";
import { buildNative, hasCompiler } from "./native.ts";

const skipped = !hasCompiler() && testRequirement() !== "all";
const problem = skipped ? undefined : await buildNative();
if (skipped) process.stdout.write("no C++ compiler (c++): the fuzz targets in Rust are not built\n");
if (problem !== undefined) process.stderr.write(problem);
process.exit(problem === undefined ? 0 : 1);
