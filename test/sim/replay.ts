/** Replays one history with its whole trace: `bun test/sim/replay.ts fake|native NUMBER`. */
import { print } from "../../src/cli/frame/print.ts";
import { fakeGround, nativeGround, runHistory } from "./sim.ts";

const [name = "fake", number = "0"] = process.argv.slice(2);
const ground = name === "native" ? await nativeGround() : fakeGround();
const { trace } = await runHistory(ground, Number(number));
await print(trace.join("\n"));
process.exit(0);
