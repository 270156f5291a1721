/** A process that imports the small ACT checkpoint for a GPU into the folder of its argument, and computes its rows until it is ended. */
import { join } from "node:path";
import { importBundle } from "../../../src/bundle/import/import.ts";
import { sampleFrames } from "../../../src/measure/sample/drawing.ts";
import { present } from "../../../src/std/assert.ts";
import { PUBLISHERS } from "./robots.ts";

const folder = join(PUBLISHERS, "act");
await importBundle(join(folder, "checkpoint"), present(process.argv[2], "a folder"), {
  ...{ id: "lab/act:arm", robot: join(folder, "robot.toml"), precision: "f32", compute: "f16" },
  draw: (size) => sampleFrames(0, size),
  async computeRows(_, { observations }) {
    process.stdout.write("all files are there\n");
    await Bun.sleep(2 ** 30);
    return observations;
  },
});
