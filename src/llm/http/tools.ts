/** The fields of a request that say what the model may answer with: functions, a JSON schema, reasoning. */
import type { FunctionTool, ReasoningOptions, TextFormat, TextOptions, ToolChoice } from "../request.ts";
import type { Reading } from "./reading.ts";

const TOOLS_MAX = 128;
const WITHOUT_TOOLS = "it asks for a call, but there are no tools; send tools or leave it out";

export function readTools(reading: Reading, value: unknown): FunctionTool[] {
  if (value === undefined || value === null) return [];
  const given = reading.array(value, "tools");
  if (given.length > TOOLS_MAX) reading.bad("tools", `expected at most ${TOOLS_MAX}`);
  const tools = given.slice(0, TOOLS_MAX).map((one, index) => readTool(reading, one, `tools[${index}]`));
  const twice = tools.findIndex(({ name }, index) => tools.findIndex((tool) => tool.name === name) !== index);
  if (twice >= 0) reading.bad(`tools[${twice}].name`, "another tool has this name");
  return tools;
}

function readTool(reading: Reading, value: unknown, at: string): FunctionTool {
  const given = reading.object(value, at);
  if (given.type !== "function")
    reading.bad(`${at}.type`, 'expected "function": other kinds of tools are not supported');
  reading.known(given, at, ["type", "name", "description", "parameters", "strict"]);
  return {
    type: "function",
    name: reading.name(given.name, `${at}.name`),
    description: reading.optionalText(given.description, `${at}.description`),
    parameters:
      given.parameters === undefined || given.parameters === null
        ? null
        : reading.object(given.parameters, `${at}.parameters`),
    strict: reading.flag(given.strict, `${at}.strict`),
  };
}

export function readToolChoice(reading: Reading, value: unknown, tools: readonly FunctionTool[]): ToolChoice {
  if (typeof value !== "object" || value === null) {
    const word = reading.oneOf(value, "tool_choice", ["auto", "none", "required"]) ?? "auto";
    if (word === "required" && tools.length === 0) reading.bad("tool_choice", WITHOUT_TOOLS);
    return word;
  }
  if (tools.length === 0) reading.bad("tool_choice", WITHOUT_TOOLS);
  const given = reading.object(value, "tool_choice");
  if (given.type !== "function") reading.bad("tool_choice.type", 'expected "function"');
  reading.known(given, "tool_choice", ["type", "name"]);
  const name = reading.name(given.name, "tool_choice.name");
  if (!tools.some((tool) => tool.name === name)) reading.bad("tool_choice.name", "no tool has this name");
  return { type: "function", name };
}

export function readText(reading: Reading, value: unknown): TextOptions {
  const given = value === undefined || value === null ? {} : reading.object(value, "text");
  reading.known(given, "text", ["format", "verbosity"]);
  return {
    format: readFormat(reading, given.format),
    verbosity: reading.oneOf(given.verbosity, "text.verbosity", ["low", "medium", "high"]),
  };
}

function readFormat(reading: Reading, value: unknown): TextFormat {
  if (value === undefined || value === null) return { type: "text" };
  const given = reading.object(value, "text.format");
  const type = reading.oneOf(given.type, "text.format.type", ["text", "json_object", "json_schema"]);
  if (type !== "json_schema") {
    if (type === null) reading.bad("text.format.type", "it is missing");
    reading.known(given, "text.format", ["type"]);
    return { type: type ?? "text" };
  }
  reading.known(given, "text.format", ["type", "name", "description", "schema", "strict"]);
  return {
    type,
    name: reading.name(given.name, "text.format.name"),
    description: reading.optionalText(given.description, "text.format.description"),
    schema: reading.object(given.schema, "text.format.schema"),
    strict: reading.flag(given.strict, "text.format.strict"),
  };
}

export function readReasoning(reading: Reading, value: unknown): ReasoningOptions {
  const given = value === undefined || value === null ? {} : reading.object(value, "reasoning");
  reading.known(given, "reasoning", ["effort", "summary"]);
  return {
    effort: reading.oneOf(given.effort, "reasoning.effort", ["none", "minimal", "low", "medium", "high", "xhigh"]),
    summary: reading.oneOf(given.summary, "reasoning.summary", ["auto", "concise", "detailed"]),
  };
}
