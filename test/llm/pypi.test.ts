/** The official `openai` client of PyPI against the service. `python3` of PATH must have it. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { testRequirement } from "../../src/config/environment.ts";
import { LLM_IDS } from "../../src/llm/models.ts";
import { PROTOCOLS } from "./asking.ts";
import type { Script } from "./script.ts";
import type { Exchange } from "./scripted-provider.ts";
import { JOB, LIVE, LlmStage } from "./stage.ts";

const PYTHON = "python3";
const REASON = "python3 has no openai; in a virtual environment whose bin is first in PATH, pip install openai==3.54.0";

const installed =
  Bun.which(PYTHON) !== null && Bun.spawnSync([PYTHON, "-c", "import openai"], { stderr: "ignore" }).exitCode === 0;
const absent = !installed && testRequirement() === "none";

/** The answer follows from the question. */
function answer({ body }: Exchange): Script {
  const asked = JSON.stringify(body);
  if (asked.includes("function_call_output") || asked.includes('"role":"tool"')) return { kind: "answer" };
  if (asked.includes('"call"')) return { kind: "answer", calls: [{ id: "call_7", name: "add", arguments: '{"a":1}' }] };
  return asked.includes('"json"') ? { kind: "answer", text: '{"a":1}' } : { kind: "answer" };
}

describe.skipIf(absent)(absent ? `openai of PyPI: skipped, ${REASON}` : "openai of PyPI", () => {
  test.each(PROTOCOLS)(
    "%s: create, stream, the stream helper, background, tools, structured output, errors",
    async (protocol) => {
      await using stage = await LlmStage.start({ protocol });
      stage.provider.otherwise = answer;
      const script = join(import.meta.dir, "openai-client.py");
      const child = Bun.spawn([PYTHON, script, `${stage.url}/v1`, stage.key, LIVE, JOB], {
        stdout: "pipe",
        stderr: "pipe",
      });
      const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
      expect([await child.exited, errors]).toEqual([0, ""]);
      const hello = "Hello from the provider.";
      expect(JSON.parse(out)).toEqual({
        plain: ["completed", hello, 20],
        retrieved: hello,
        types: [
          "response.created",
          "response.in_progress",
          "response.output_item.added",
          "response.content_part.added",
          ...Array.from({ length: 5 }, () => "response.output_text.delta"),
          "response.output_text.done",
          "response.content_part.done",
          "response.output_item.done",
          "response.completed",
        ],
        deltas: hello,
        final: ["completed", hello],
        background: ["completed", hello],
        tool: ["add", '{"a":1}', hello],
        structured: { a: 1 },
        ids: 1,
        models: [...LLM_IDS],
        error: [422, "invalid_request", "model"],
      });
    },
  );
});
