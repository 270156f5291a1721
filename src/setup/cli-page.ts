/** `docs/cli.md`, made from the tables of the commands: `bun src/setup/cli-page.ts` writes it. */
import { join, resolve } from "node:path";
import { COMMANDS, overview } from "../cli/commands.ts";
import { helpOf } from "../cli/frame/group.ts";

const PATH = join(resolve(import.meta.dir, "../.."), "docs/cli.md");

const INTRODUCTION = `# Command line

This page answers: which commands there are, and which flags each of them takes. It is generated from the commands by
\`bun src/setup/cli-page.ts\`; \`tendon COMMAND --help\` prints the same text.

Flags win over \`TENDON_*\` variables, and these win over the configuration file. Exit codes: 0 done, 1 failed, 2 wrong use,
3 not signed in, 4 service unreachable.
`;

/** The whole page. */
export async function cliPage(): Promise<string> {
  const sections = [INTRODUCTION, `## tendon\n\n${fenced(await overview())}`];
  for (const [name, load] of Object.entries(COMMANDS)) {
    sections.push(`## tendon ${name}\n\n${fenced(helpOf(await load(), []))}`);
  }
  return sections.join("\n");
}

function fenced(text: string): string {
  return `\`\`\`text\n${text.trimEnd()}\n\`\`\`\n`;
}

if (import.meta.main) await Bun.write(PATH, await cliPage());
