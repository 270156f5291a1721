/** Every command of `tendon`, and the page that lists them. */
import type { Command } from "./frame/command.ts";
import type { CommandGroup } from "./frame/group.ts";

/** Loaded when asked for, so that a command starts without the weight of the others. */
export const COMMANDS: Readonly<Record<string, () => Promise<Command | CommandGroup>>> = {
  serve: async () => (await import("./serve.ts")).serve,
  login: async () => (await import("./login.ts")).login,
  token: async () => (await import("./token.ts")).token,
  status: async () => (await import("./status.ts")).status,
  logout: async () => (await import("./logout.ts")).logout,
  act: async () => (await import("./act.ts")).act,
  ask: async () => (await import("./ask.ts")).ask,
  runs: async () => (await import("./runs.ts")).runs,
  sample: async () => (await import("./sample.ts")).sample,
  models: async () => (await import("./models.ts")).models,
  devices: async () => (await import("./devices.ts")).devices,
  doctor: async () => (await import("./doctor.ts")).doctor,
  setup: async () => (await import("./setup.ts")).setup,
  config: async () => (await import("./config.ts")).config,
  bundle: async () => (await import("./bundle.ts")).bundle,
  bench: async () => (await import("./bench.ts")).bench,
  admin: async () => (await import("./admin.ts")).admin,
};

/** The page of `tendon --help`. */
export async function overview(): Promise<string> {
  const lines = [
    "Usage: tendon COMMAND [flags]",
    "",
    "Serves robot action models: an observation in, the next second of motion out; and language models of providers behind it.",
    "",
  ];
  for (const [name, load] of Object.entries(COMMANDS)) lines.push(`  ${name.padEnd(10)} ${(await load()).summary}`);
  lines.push("", "  tendon COMMAND --help shows a command's flags; tendon --version the version.");
  return lines.join("\n");
}
