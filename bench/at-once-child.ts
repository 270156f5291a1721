/** `at-once-child.ts KIND serve FLAGS…` is `tendon serve` with one of the stores of at-once-store.ts in place of its ledger. */
import { given } from "../src/cli/frame/command.ts";
import { serve, serveWith } from "../src/cli/serve.ts";
import { Problem } from "../src/std/problem.ts";
import { openInstead } from "./at-once-store.ts";

const [kind, , ...flags] = process.argv.slice(2);
const parsed = given(serve, flags);
const end =
  parsed instanceof Problem ? parsed : await serveWith(parsed, openInstead(kind === "bare" ? "bare" : "at once"));
if (end instanceof Problem) process.stderr.write(`error: ${end.message}\n`);
process.exit(end instanceof Problem ? end.exit : end);
