/** `tendon bundle …`: making and looking at model bundles. */
import { bundleBuild } from "./bundle/build.ts";
import { bundleImport } from "./bundle/import.ts";
import { bundleShow } from "./bundle/show.ts";
import { bundleVerify } from "./bundle/verify.ts";
import type { CommandGroup } from "./frame/group.ts";

export const bundle: CommandGroup = {
  name: "bundle",
  summary: "Build, import, verify and show model bundles.",
  commands: [bundleBuild, bundleImport, bundleVerify, bundleShow],
};
