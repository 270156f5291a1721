/** The service without its ledger (at-once-store.ts): `bun bench/at-once-child.ts serve FLAGS…` is else `tendon serve`. */
import { given } from "../src/cli/command.ts";
import { serve, serveWith } from "../src/cli/serve.ts";
import { Problem } from "../src/error.ts";
import { openAtOnceStore } from "./at-once-store.ts";

const parsed = given(serve, process.argv.slice(3));
const end = parsed instanceof Problem ? parsed : await serveWith(parsed, openAtOnceStore);
if (end instanceof Problem) process.stderr.write(`error: ${end.message}\n`);
process.exit(end instanceof Problem ? end.exit : end);
