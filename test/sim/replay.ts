/** Replays one history with its whole trace: `bun test/sim/replay.ts fake|native|llm NUMBER`. */
import { print } from "../../src/cli/frame/print.ts";
import { runLlmHistory } from "./llm-sim.ts";
import { fakeGround, nativeGround, runHistory } from "./sim.ts";

const [name = "fake", number = "0"] = process.argv.slice(2);
const ran =
  name === "llm"
    ? await runLlmHistory(Number(number))
    : await runHistory(name === "native" ? await nativeGround() : fakeGround(), Number(number));
await print(ran.trace.join("\n"));
process.exit(0);
